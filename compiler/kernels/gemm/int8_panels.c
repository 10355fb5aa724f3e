/* SPDX-License-Identifier: MIT */
#include "kernels/gemm/int8_panels.h"

#include <string.h>

#include "support/numbers.h"

static int64_t width(const Int8Panels *p) { return (int64_t)p->vectors * p->lanes; }
static int64_t panel_bytes(const Int8Panels *p) {
  return (round_up(p->depth, int8_depth_unit(p)) + INT8_DOT) * width(p);
}

int64_t int8_panels_bytes(const Int8Panels *p) { return ceil_div(p->columns, width(p)) * panel_bytes(p); }

/* Where in a panel the weight k of a column is. */
static int64_t place_of(const Int8Panels *p, int64_t column, int64_t k) {
  int64_t two = 2 * INT8_DOT, size = p->tiles && k / two < p->depth / two ? two : INT8_DOT;
  return (INT8_DOT + k / size * size) * width(p) + column * size + k % size;
}

static void pack_column(const Int8Panels *p, const int8_t *source, int64_t column, int8_t *panel) {
  int32_t sum = 0;
  for (int64_t k = 0; k < p->depth; k++) {
    int8_t w = source[k * p->depth_stride];
    panel[place_of(p, column, k)] = w;
    sum += w;
  }
  memcpy(panel + column * INT8_DOT, &sum, sizeof sum);
}

void int8_panels_pack(const Int8Panels *p, const int8_t *source, int8_t *target) {
  for (int64_t column = 0; column < p->columns; column++) {
    int8_t *panel = target + column / width(p) * panel_bytes(p);
    pack_column(p, source + column * p->column_stride, column % width(p), panel);
  }
}

static int positive(int8_t x) { return x > 0 ? x : 0; }
static int negative(int8_t x) { return x < 0 ? -x : 0; }

bool int8_pairs_fit(const Int8Panels *p, const int8_t *source) {
  enum { MOST = 128 }; /* 255 * 128 < 2^15 */
  for (int64_t column = 0; column < p->columns; column++)
    for (int64_t k = 0; k + 1 < p->depth; k += 2) {
      const int8_t *at = source + column * p->column_stride + k * p->depth_stride;
      int8_t first = at[0], second = at[p->depth_stride];
      if (positive(first) + positive(second) > MOST || negative(first) + negative(second) > MOST) return false;
    }
  return true;
}
