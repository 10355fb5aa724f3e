/* SPDX-License-Identifier: MIT */
/*
 * Gather of as many rows of `inner` elements as the axis has, which may be written over what it reads: as a beam search
 * moves its states to the hypotheses that go on. There a row that is its own source stays as it is. The others are
 * copied in such an order that no row is overwritten before all have been copied that it is the source of: rows that
 * are no source come first, then those that are none any more. What is left are cycles, each of which needs one spare
 * row. Every worker has the same columns of all rows.
 *
 * Negative indices count from the end. An index out of range is reported and read as the nearest one in range.
 */
#include "kernel.h"

/* The element.
 * legal: bits8 bits16 bits32 bits64 */
typedef bits32 T;
/* legal: int32_t int64_t */
typedef int64_t Index;

/* 1: checks indices; 0: they were checked before.
 * legal: 0 1 */
enum { CHECKED = 1 };

/* Elements of a row that are copied at once, and those that no two workers share. */
enum { SPARE = 1024, GRAIN = 64 };

/* The order of copies: rows that are written, each from its source. ~row: the row is put aside, as the source of the
 * last row of its cycle. */
typedef struct Order {
  int32_t *source,
      *readers; /* by row. readers: other rows not copied yet that it is the source of; -1: it was copied */
  int32_t *count, *list;
} Order;

static Order order_at(int32_t *memory, int64_t rows) {
  return (Order){.source = memory, .readers = memory + rows, .count = memory + 2 * rows, .list = memory + 2 * rows + 1};
}

static void add_copy(Order *o, int32_t row) {
  o->list[(*o->count)++] = row;
  o->readers[row] = -1;
}

static void add_copies(Order *o, int64_t rows) {
  for (int64_t row = 0; row < rows; row++) {
    int32_t at = (int32_t)row;
    while (o->readers[at] == 0 && o->source[at] != at) {
      add_copy(o, at);
      at = o->source[at];
      o->readers[at]--;
    }
  }
}

static void add_cycles(Order *o, int64_t rows) {
  for (int64_t row = 0; row < rows; row++) {
    int32_t first = (int32_t)row, at = first;
    if (o->readers[at] <= 0 || o->source[at] == at) continue;
    o->list[(*o->count)++] = ~first;
    do {
      add_copy(o, at);
      at = o->source[at];
    } while (at != first);
  }
}

static void find_order(Order *o, const Index *indices, int64_t rows, atomic_int *fault) {
  *o->count = 0;
  for (int64_t row = 0; row < rows; row++) o->readers[row] = 0;
  for (int64_t row = 0; row < rows; row++) {
    o->source[row] = (int32_t)index_at(indices[row], rows, CHECKED, fault);
    if (o->source[row] != row) o->readers[o->source[row]]++;
  }
  add_copies(o, rows);
  add_cycles(o, rows);
}

static inline void copy_row(T *restrict to, const T *restrict from, int64_t count) {
  for (int64_t i = 0; i < count; i++) to[i] = from[i];
}

/* Columns of all rows, SPARE of them at most; x: at the first one of row 0. */
static void move_columns(const Order *o, T *x, int64_t inner, int64_t columns) {
  T spare[SPARE];
  int32_t aside = -1;
  for (int32_t i = 0; i < *o->count; i++) {
    int32_t row = o->list[i];
    if (row < 0) {
      aside = ~row;
      copy_row(spare, x + aside * inner, columns);
    } else {
      int32_t from = o->source[row];
      copy_row(x + row * inner, from == aside ? spare : x + from * inner, columns);
    }
  }
}

static void move_rows(const Team *team, const Order *o, T *x, int64_t outer, int64_t rows, int64_t inner) {
  int64_t grains = ceil_div(inner, GRAIN), item, end;
  team_share(team, outer * grains, &item, &end);
  while (item < end) {
    int64_t grain = item % grains, count = min_i64(min_i64(grains - grain, SPARE / GRAIN), end - item);
    int64_t first = grain * GRAIN;
    move_columns(o, x + item / grains * rows * inner + first, inner, min_i64(inner - first, count * GRAIN));
    item += count;
  }
}

static void copy_rows(const Team *team, const T *in, const Index *indices, T *out, int64_t outer, int64_t rows,
                      int64_t inner, atomic_int *fault) {
  int64_t item, end;
  team_share(team, outer * rows, &item, &end);
  for (; item < end; item++) {
    int64_t at = index_at(indices[item % rows], rows, CHECKED, fault);
    copy_row(out + item * inner, in + (item / rows * rows + at) * inner, inner);
  }
}

/* in, out: [outer, rows, inner], the same memory or two; indices: [rows]; memory: 4 * rows + 1 numbers. */
static void gather_in_place(Team *team, const T *in, const Index *indices, T *out, int32_t *memory, int64_t outer,
                            int64_t rows, int64_t inner, atomic_int *fault) {
  if (in != out) {
    copy_rows(team, in, indices, out, outer, rows, inner, fault);
    return;
  }
  Order order = order_at(memory, rows);
  if (team->rank == 0) find_order(&order, indices, rows, fault);
  team_barrier(team);
  move_rows(team, &order, out, outer, rows, inner);
}
