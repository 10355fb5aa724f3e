/* SPDX-License-Identifier: MIT */
/* Lists that grow: an array in an arena, its count, and how many it has room for. */
#ifndef RNNCC_LIST_H
#define RNNCC_LIST_H

#include <string.h>

#include "support/arena.h"

/* `list` of `count` elements of `size` bytes with room for one more: itself, or a copy with twice the capacity. */
static inline void *list_room(Arena *arena, void *list, int count, int *capacity, size_t size) {
  if (count < *capacity) return list;
  *capacity = *capacity ? 2 * *capacity : 16;
  void *longer = arena_array(arena, (size_t)*capacity, size);
  if (count) memcpy(longer, list, (size_t)count * size);
  return longer;
}

/* A copy of the list with room for exactly one more. */
static inline void *list_longer(Arena *arena, const void *list, int count, size_t size) {
  void *longer = arena_array(arena, (size_t)count + 1, size);
  if (count) memcpy(longer, list, (size_t)count * size);
  return longer;
}

/* The address of a new last element, not yet written: `*LIST_ADD(arena, items, n, capacity) = item`. */
#define LIST_ADD(arena, list, count, capacity)                                                                         \
  ((list) = list_room((arena), (list), (count), &(capacity), sizeof *(list)), &(list)[(count)++])

/* The same for short lists that others may share: a copy each time. */
#define LIST_APPEND(arena, list, count)                                                                                \
  ((list) = list_longer((arena), (list), (count), sizeof *(list)), &(list)[(count)++])

#endif
