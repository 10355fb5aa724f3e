/* SPDX-License-Identifier: MIT */
/* Channels that are the pixels of a block: of DepthToSpace and SpaceToDepth, and of the phases of a transposed
 * convolution. */
#ifndef RNNCC_PIXEL_BLOCKS_H
#define RNNCC_PIXEL_BLOCKS_H

#include "kernels/move/strided_copy.h"

/* deep [N, u v K, H, W] and wide [N, K, u H, v W], both row-major; over one axis [N, v K, W] and [N, K, v W], u is 1.
 */
typedef struct PixelBlocks {
  const Value *deep, *wide;
  int64_t rows, columns; /* u, v */
  bool pixel_first;      /* channel (u v) K + k; else k (u v) + pixel */
} PixelBlocks;

/* The box of all elements, from `deep` to `wide`, or back. */
StridedBox pixel_box(Graph *graph, const PixelBlocks *blocks, bool from_deep);

#endif
