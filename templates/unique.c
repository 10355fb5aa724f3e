/* SPDX-License-Identifier: MIT */
/*
 * Unique: the different slices of x[outer, n, inner] along its middle axis. Their indices are sorted by slice, equal
 * ones by index, so that the first of a group is its first occurrence. One worker does it: sorting is most of the work.
 */
#include "kernel.h"

/* legal: double float int64_t int32_t int16_t int8_t uint64_t uint32_t uint16_t uint8_t */
typedef float T;

/* 1: groups in the order of their slices; 0: of their first occurrence.
 * legal: 0 1 */
enum { SORTED = 1 };

typedef struct Slices {
  const T *x;
  int64_t outer, n, inner;
} Slices;

/* Below, equal or above: -1, 0, 1. A NaN is above all numbers, and equal to others. */
static int compare(T a, T b) {
  bool a_is_nan = a != a, b_is_nan = b != b;
  if (a_is_nan || b_is_nan) return a_is_nan - b_is_nan;
  return (a > b) - (a < b);
}

static int compare_slices(const Slices *s, int64_t a, int64_t b) {
  for (int64_t o = 0; o < s->outer; o++)
    for (int64_t i = 0; i < s->inner; i++) {
      int order = compare(s->x[(o * s->n + a) * s->inner + i], s->x[(o * s->n + b) * s->inner + i]);
      if (order) return order;
    }
  return 0;
}

/* Merges runs of `width` from one list into the other. */
static void merge_runs(const Slices *s, const int64_t *from, int64_t *to, int64_t width) {
  for (int64_t first = 0; first < s->n; first += 2 * width) {
    int64_t middle = min_i64(first + width, s->n), end = min_i64(first + 2 * width, s->n), a = first, b = middle;
    for (int64_t at = first; at < end; at++) {
      bool take_a = b == end || (a < middle && compare_slices(s, from[a], from[b]) <= 0);
      to[at] = take_a ? from[a++] : from[b++];
    }
  }
}

/* The places in order: `list` or `other`. */
static int64_t *sort_places(const Slices *s, int64_t *list, int64_t *other) {
  for (int64_t i = 0; i < s->n; i++) list[i] = i;
  for (int64_t width = 1; width < s->n; width *= 2) {
    merge_runs(s, list, other, width);
    int64_t *swap = list;
    list = other;
    other = swap;
  }
  return list;
}

/* first[g]: where group g occurs first; group[i]: of place i. Returns how many there are. */
static int64_t find_groups(const Slices *s, const int64_t *order, int64_t *first, int64_t *group) {
  int64_t found = 0;
  for (int64_t at = 0; at < s->n; at++) {
    bool same = at > 0 && compare_slices(s, order[at - 1], order[at]) == 0;
    if (!same) first[found++] = order[at];
    group[order[at]] = found - 1;
  }
  return found;
}

/* Groups by where they occur first. `renamed` has room for all. */
static void order_by_place(int64_t n, int64_t *first, int64_t *group, int64_t *renamed) {
  int64_t next = 0;
  for (int64_t i = 0; i < n; i++)
    if (first[group[i]] == i) renamed[group[i]] = next++;
  for (int64_t i = 0; i < n; i++) group[i] = renamed[group[i]];
  for (int64_t i = n - 1; i >= 0; i--) first[group[i]] = i;
}

static void write_slices(const Slices *s, T *y, const int64_t *first, int64_t found) {
  for (int64_t o = 0; o < s->outer; o++)
    for (int64_t g = 0; g < found; g++)
      for (int64_t i = 0; i < s->inner; i++)
        y[(o * found + g) * s->inner + i] = s->x[(o * s->n + first[g]) * s->inner + i];
}

/* lists: [4][n]. indices, inverse and counts may be NULL. */
static void unique(const Team *team, const T *x, T *y, int64_t *indices, int64_t *inverse, int64_t *counts,
                   int64_t *measured, int64_t *lists, int64_t outer, int64_t n, int64_t inner) {
  if (team->rank != 0) return;
  Slices s = {x, outer, n, inner};
  int64_t *first = lists + 2 * n, *group = lists + 3 * n;
  int64_t *order = sort_places(&s, lists, lists + n), found = find_groups(&s, order, first, group);
  if (!SORTED) order_by_place(n, first, group, lists);
  *measured = found;
  write_slices(&s, y, first, found);
  for (int64_t g = 0; g < found && counts; g++) counts[g] = 0;
  for (int64_t g = 0; g < found && indices; g++) indices[g] = first[g];
  for (int64_t i = 0; i < n && inverse; i++) inverse[i] = group[i];
  for (int64_t i = 0; i < n && counts; i++) counts[group[i]]++;
}
