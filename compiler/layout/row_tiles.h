/* SPDX-License-Identifier: MIT */
/*
 * How lane-wise kernels of blocked tensors (conv_depthwise, pool_blocked) cut an output row into tiles of pixels: a
 * tile of which a window reaches into the padding has code of its own, the others share theirs.
 */
#ifndef RNNCC_ROW_TILES_H
#define RNNCC_ROW_TILES_H

#include <stdint.h>

enum { ROW_TILE_VARIANTS = 8 }; /* more are too much code for what they gain */

typedef struct RowTiles {
  int columns;      /* pixels of a tile */
  int64_t variants; /* tiles with code of their own */
} RowTiles;

/* At most `most` pixels a tile (1 where that is less), preferably such that they divide the row. reach: columns from a
 * window's first point to its last. in: the input's columns, which `pad` stand before. */
RowTiles row_tiles_of(int64_t out, int64_t most, int64_t stride, int64_t reach, int64_t in, int64_t pad);

/* The variants that tiles of so many columns come in. */
int64_t row_tiles_in(int64_t out, int64_t columns, int64_t stride, int64_t reach, int64_t in, int64_t pad);

#endif
