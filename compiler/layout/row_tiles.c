/* SPDX-License-Identifier: MIT */
#include "layout/row_tiles.h"

#include "support/numbers.h"

#include <stdbool.h>

/* A divisor of at least half the maximum, else tiles of nearly equal size. */
static int64_t columns_of(int64_t out, int64_t most) {
  if (most < 1) most = 1;
  for (int64_t columns = most; 2 * columns > most; columns--)
    if (out % columns == 0) return columns;
  int64_t tiles = ceil_div(out, most);
  return ceil_div(out, tiles);
}

int64_t row_tiles_in(int64_t out, int64_t columns, int64_t stride, int64_t reach, int64_t in, int64_t pad) {
  int64_t edges = 0;
  bool inside = false;
  for (int64_t tile = 0; tile < out; tile += columns) {
    int64_t pixels = out - tile < columns ? out - tile : columns, first = tile * stride - pad;
    bool edge = first < 0 || first + (pixels - 1) * stride + reach > in || pixels < columns;
    edges += edge;
    inside |= !edge;
  }
  return edges + inside;
}

RowTiles row_tiles_of(int64_t out, int64_t most, int64_t stride, int64_t reach, int64_t in, int64_t pad) {
  int64_t columns = columns_of(out, most);
  return (RowTiles){.columns = (int)columns, .variants = row_tiles_in(out, columns, stride, reach, in, pad)};
}
