/* SPDX-License-Identifier: MIT */
/* Running sums or products along one axis of x[outer, n, inner], one by one in the element's type. */
#include "kernel.h"

/* Integers are unsigned, so that they wrap around.
 * legal: float double bits32 bits64 */
typedef float T;

/* 1: an element is the sum of those before it, without itself.
 * legal: 0 1 */
enum { EXCLUSIVE = 0 };
/* 1: from the axis's end to its start.
 * legal: 0 1 */
enum { REVERSE = 0 };

/* 1: products.
 * legal: 0 1 */
enum { PRODUCT = 0 };

/* Minimum columns of a worker. */
enum { COLUMNS = 256 };

static T joined(T total, T element) { return PRODUCT ? total * element : total + element; }

static void sum_row(const T *x, T *y, int64_t n) {
  T sum = PRODUCT;
  for (int64_t i = 0; i < n; i++) {
    int64_t at = REVERSE ? n - 1 - i : i;
    T element = x[at];
    y[at] = EXCLUSIVE ? sum : joined(sum, element);
    sum = joined(sum, element);
  }
}

/* `width` neighbouring sums, whose elements are `inner` apart. */
static void sum_columns(const T *x, T *y, int64_t n, int64_t inner, int64_t width) {
  for (int64_t i = 0; i < n; i++) {
    int64_t at = (REVERSE ? n - 1 - i : i) * inner, before = REVERSE ? at + inner : at - inner;
    for (int64_t column = 0; column < width; column++) {
      T sum = i ? y[before + column] : PRODUCT;
      if (EXCLUSIVE)
        y[at + column] = i ? joined(sum, x[before + column]) : PRODUCT;
      else
        y[at + column] = joined(sum, x[at + column]);
    }
  }
}

static void cumsum(const Team *team, const T *x, T *y, int64_t outer, int64_t n, int64_t inner) {
  int64_t blocks = ceil_div(inner, COLUMNS), item, end;
  team_share(team, outer * blocks, &item, &end);
  for (; item < end; item++) {
    int64_t column = item % blocks * COLUMNS, at = item / blocks * n * inner + column;
    if (inner == 1)
      sum_row(x + at, y + at, n);
    else
      sum_columns(x + at, y + at, n, inner, min_i64(COLUMNS, inner - column));
  }
}
