/* SPDX-License-Identifier: MIT */
/* What AffineGrid and Col2Im ask for, as their shape rules and formulas read it. */
#ifndef RNNCC_PLANE_H
#define RNNCC_PLANE_H

#include "shapes/shape.h"

typedef struct AffineGrid {
  int axes; /* 2 or 3 */
  int64_t size[MAX_SPATIAL];
  bool centers; /* the outer pixels' centers are at -1 and 1, not their outer edges */
} AffineGrid;
/* False after an error. */
bool read_affine_grid(Graph *graph, const Node *node, AffineGrid *grid);

/* x[N, channels * kernel elements, blocks] of images [N, channels, image]. */
typedef struct Patches {
  int n_spatial; /* 2 or 3 */
  int64_t channels;
  int64_t image[MAX_SPATIAL], kernel[MAX_SPATIAL], blocks[MAX_SPATIAL];
  int64_t stride[MAX_SPATIAL], dilation[MAX_SPATIAL], pads[2 * MAX_SPATIAL];
  int64_t rest[MAX_SPATIAL]; /* pixels after the last block's */
} Patches;
/* False after an error. */
bool read_patches(Graph *graph, const Node *node, Patches *patches);

#endif
