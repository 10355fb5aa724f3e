/* SPDX-License-Identifier: MIT */
#include "parts.h"

#include <string.h>

#include "support/list.h"

Part *part_new(Arena *arena, PartKind kind, uint64_t role) {
  Part *part = ARENA_NEW(arena, Part);
  *part = (Part){.kind = kind, .role = role};
  return part;
}

Part *part_copy(Arena *arena, const Part *part) {
  Part *copy = ARENA_NEW(arena, Part);
  *copy = *part;
  copy->parts = ARENA_ARRAY(arena, Part *, part->n_parts);
  copy->capacity = part->n_parts;
  for (int i = 0; i < part->n_parts; i++) copy->parts[i] = part_copy(arena, part->parts[i]);
  return copy;
}

void part_insert(Arena *arena, Part *parent, int place, Part *part) {
  *LIST_ADD(arena, parent->parts, parent->n_parts, parent->capacity) = part;
  for (int i = parent->n_parts - 1; i > place; i--) parent->parts[i] = parent->parts[i - 1];
  parent->parts[place] = part;
}

void part_remove(Part *parent, int place) {
  parent->n_parts--;
  for (int i = place; i < parent->n_parts; i++) parent->parts[i] = parent->parts[i + 1];
}
