/* SPDX-License-Identifier: MIT */
/*
 * How lane-wise kernels of blocked tensors (conv_depthwise, pool_blocked) cut an output row into tiles of pixels. Each
 * tile with a window in the padding has its own code; all others share one.
 */
#ifndef RNNCC_ROW_TILES_H
#define RNNCC_ROW_TILES_H

#include <stdint.h>

enum { ROW_TILE_VARIANTS = 8 }; /* more are too much code */

typedef struct RowTiles {
  int columns;      /* pixels of a tile */
  int64_t variants; /* tiles with code of their own */
} RowTiles;

/* Tiles of at most `most` pixels (at least 1), preferably a divisor of the row. reach: columns from a window's first
 * point to its last. in: the input's columns; pad: columns before them. */
RowTiles row_tiles_of(int64_t out, int64_t most, int64_t stride, int64_t reach, int64_t in, int64_t pad);

/* The number of variants with tiles of `columns` pixels. */
int64_t row_tiles_in(int64_t out, int64_t columns, int64_t stride, int64_t reach, int64_t in, int64_t pad);

#endif
