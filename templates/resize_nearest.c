/* SPDX-License-Identifier: MIT */
/*
 * Resize by the nearest element: x[outer, in.., inner] to y[outer, out.., inner], with a table for each axis between
 * from output index to input index; -1: outside the input. A row of the last such axis comes from one input row: each
 * element repeated FACTOR times, or by the table.
 */
#include "kernel.h"

/* The element.
 * legal: bits8 bits16 bits32 bits64 */
typedef bits32 T;

/* Axes that have a table.
 * legal: 1..8 */
enum { AXES = 2 };
/* How often each element of the last axis is repeated; 0: by the table.
 * legal: 0..16 */
enum { FACTOR = 2 };
/* 1: inner is 1.
 * legal: 0 1 */
enum { SINGLE = 1 };

/* The input row of output row `row`; -1: none. */
static int64_t source_row(const int64_t *out, const int64_t *in, const int32_t *table, int64_t row) {
  int64_t at = 0, stride = 1;
  for (int axis = 0; axis < AXES - 1; axis++) table += out[axis];
  for (int axis = AXES - 2; axis >= 0; axis--) {
    table -= out[axis];
    int32_t index = table[row % out[axis]];
    if (index < 0) return -1;
    at += index * stride;
    stride *= in[axis];
    row /= out[axis];
  }
  return at + row * stride; /* the rest of row counts `outer` */
}

static void fill(T *y, T value, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = value;
}

static void repeat(const T *restrict x, T *restrict y, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    for (int k = 0; k < FACTOR; k++) y[i * FACTOR + k] = x[i];
}

static void gather_elements(const T *restrict x, T *restrict y, const int32_t *restrict table, int64_t n, T outside) {
  for (int64_t i = 0; i < n; i++) y[i] = table[i] < 0 ? outside : x[table[i]];
}

static void gather_runs(const T *restrict x, T *restrict y, const int32_t *table, int64_t n, int64_t inner, T outside) {
  for (int64_t i = 0; i < n; i++) {
    if (table[i] < 0)
      fill(y + i * inner, outside, inner);
    else
      for (int64_t k = 0; k < inner; k++) y[i * inner + k] = x[table[i] * inner + k];
  }
}

/* table: those of the axes, one after the other. */
static void resize_nearest(const Team *team, const T *x, T *y, const int32_t *table, T outside, int64_t outer,
                           const int64_t *in, const int64_t *out, int64_t inner) {
  int64_t before = 0, rows = outer, item, end;
  for (int axis = 0; axis < AXES - 1; axis++) {
    before += out[axis];
    rows *= out[axis];
  }
  int64_t n = out[AXES - 1], width = in[AXES - 1] * inner;
  team_share(team, rows, &item, &end);
  for (; item < end; item++) {
    int64_t row = source_row(out, in, table, item);
    T *to = y + item * n * inner;
    if (row < 0)
      fill(to, outside, n * inner);
    else if (FACTOR > 0)
      repeat(x + row * width, to, width);
    else if (SINGLE)
      gather_elements(x + row * width, to, table + before, n, outside);
    else
      gather_runs(x + row * width, to, table + before, n, inner, outside);
  }
}
