/* SPDX-License-Identifier: MIT */
/*
 * Elements whose origins are as far apart as they are themselves are a loop; loops alike, at equal distances, are a
 * loop of loops. What comes in a row is put together as it comes, on three levels. Where loops of several forms take
 * turns (full vectors and a rest), those of each form are put together after, until nothing more is found. Whatever the
 * order, the copies are all elements, each once.
 */
#include "program/weight_copies.h"

#include <stdlib.h>
#include <string.h>

#include "support/list.h"

enum { LEVELS = 3 };

typedef struct Group {
  WeightCopy first; /* the others are like it */
  int64_t count, from_step, to_step, last_from, last_to;
} Group;

typedef struct CopyList {
  int n, capacity;
  WeightCopy *copies;
} CopyList;

struct CopyFinder {
  Arena *scratch;
  int target;
  DType dtype;
  Group levels[LEVELS];
  CopyList found;
};

/* ---- one level ---- */

static int compare_numbers(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int compare_lists(const int64_t *a, const int64_t *b, int n) {
  for (int i = 0; i < n; i++)
    if (a[i] != b[i]) return compare_numbers(a[i], b[i]);
  return 0;
}

/* By all but where they begin. */
static int compare_forms(const WeightCopy *a, const WeightCopy *b) {
  if (a->source != b->source) return a->source - b->source;
  if (a->adds != b->adds) return a->adds - b->adds;
  if (a->rank != b->rank) return a->rank - b->rank;
  int by_extents = compare_lists(a->extents, b->extents, a->rank);
  if (by_extents) return by_extents;
  int by_from = compare_lists(a->from_strides, b->from_strides, a->rank);
  return by_from ? by_from : compare_lists(a->to_strides, b->to_strides, a->rank);
}

/* True if the copy is one more of the group. */
static bool join(Group *group, const WeightCopy *copy) {
  int64_t from_step = copy->from - group->last_from, to_step = copy->to - group->last_to;
  if (!group->count || group->first.rank == COPY_RANK || compare_forms(&group->first, copy) != 0) return false;
  if (group->count > 1 && (from_step != group->from_step || to_step != group->to_step)) return false;
  group->from_step = from_step;
  group->to_step = to_step;
  group->last_from = copy->from;
  group->last_to = copy->to;
  group->count++;
  return true;
}

static void begin(Group *group, const WeightCopy *copy) {
  *group = (Group){.first = *copy, .count = 1, .last_from = copy->from, .last_to = copy->to};
}

static void prepend(int64_t *list, int n, int64_t value) {
  memmove(list + 1, list, (size_t)n * sizeof *list);
  list[0] = value;
}

/* The group as one copy: a loop around the first. */
static WeightCopy whole(const Group *group) {
  WeightCopy copy = group->first;
  if (group->count == 1) return copy;
  prepend(copy.extents, copy.rank, group->count);
  prepend(copy.from_strides, copy.rank, group->from_step);
  prepend(copy.to_strides, copy.rank, group->to_step);
  copy.rank++;
  return copy;
}

/* ---- in a row ---- */

static void push(CopyFinder *finder, int level, const WeightCopy *copy) {
  if (level == LEVELS) {
    CopyList *found = &finder->found;
    *LIST_ADD(finder->scratch, found->copies, found->n, found->capacity) = *copy;
    return;
  }
  Group *group = &finder->levels[level];
  if (join(group, copy)) return;
  WeightCopy done = whole(group);
  if (group->count) push(finder, level + 1, &done);
  begin(group, copy);
}

CopyFinder *copies_begin(Arena *scratch, int target, DType dtype) {
  CopyFinder *finder = ARENA_NEW(scratch, CopyFinder);
  *finder = (CopyFinder){.scratch = scratch, .target = target, .dtype = dtype};
  return finder;
}

void copies_element(CopyFinder *finder, int64_t to, Origin origin) {
  WeightCopy copy = {.source = origin.source,
                     .target = finder->target,
                     .adds = origin.adds,
                     .dtype = finder->dtype,
                     .from = origin.from,
                     .to = to};
  push(finder, 0, &copy);
}

/* ---- afterwards ---- */

static int by_form(const void *a, const void *b) {
  int order = compare_forms(a, b);
  return order ? order : compare_numbers(((const WeightCopy *)a)->to, ((const WeightCopy *)b)->to);
}

/* True if there are fewer than before. */
static bool put_together(CopyList *list) {
  int before = list->n, kept = 0;
  Group group = {.count = 0};
  qsort(list->copies, (size_t)list->n, sizeof *list->copies, by_form);
  for (int i = 0; i < before; i++) {
    WeightCopy copy = list->copies[i];
    if (join(&group, &copy)) continue;
    if (group.count) list->copies[kept++] = whole(&group);
    begin(&group, &copy);
  }
  if (group.count) list->copies[kept++] = whole(&group);
  list->n = kept;
  return kept < before;
}

static void move_last(int64_t *list, int from, int to) {
  int64_t moved = list[from];
  memmove(list + from, list + from + 1, (size_t)(to - from) * sizeof *list);
  list[to] = moved;
}

/* Where the last loop does not read in a row, and another one does: that becomes the last but one, and both are turned
 * in small squares (runtime/repack.c). */
static void turn(WeightCopy *copy) {
  int last = copy->rank - 1;
  if (last < 1 || copy->from_strides[last] == 1) return;
  for (int i = 0; i < last; i++) {
    if (copy->from_strides[i] != 1) continue;
    move_last(copy->extents, i, last - 1);
    move_last(copy->from_strides, i, last - 1);
    move_last(copy->to_strides, i, last - 1);
    return;
  }
}

void copies_end(CopyFinder *finder, Arena *arena, MutableWeights *m) {
  for (int level = 0; level < LEVELS; level++) {
    WeightCopy last = whole(&finder->levels[level]);
    if (finder->levels[level].count) push(finder, level + 1, &last);
    finder->levels[level].count = 0;
  }
  while (put_together(&finder->found)) {
  }
  for (int i = 0; i < finder->found.n; i++) {
    turn(&finder->found.copies[i]);
    *LIST_ADD(arena, m->copies, m->n_copies, m->copy_capacity) = finder->found.copies[i];
  }
}
