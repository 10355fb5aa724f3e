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

/* The address of a new last element, not yet written: `*LIST_ADD(arena, items, n, capacity) = item`. */
#define LIST_ADD(arena, list, count, capacity)                                                                         \
  ((list) = list_room((arena), (list), (count), &(capacity), sizeof *(list)), &(list)[(count)++])

#endif
