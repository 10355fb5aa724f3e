/* SPDX-License-Identifier: MIT */
/* The predicted time of a convolution of row-major tensors. */
#ifndef RNNCC_PLAIN_COST_H
#define RNNCC_PLAIN_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "machine/machine.h"

/* A convolution in numbers, with the tile of conv_plain. */
typedef struct PlainLayer {
  int64_t images, groups, channels, kernels; /* channels and kernels of one group */
  int64_t window;                            /* points of it: Q R S */
  int64_t in_plane;                          /* elements of a channel */
  int64_t lines, length;                     /* of outputs of a channel; columns of one */
  int64_t padded_plane,
      padded_rows;     /* elements and rows of a channel that conv_pad writes; 0: the input is read as it is */
  int64_t tile, chunk; /* columns of a tile; tiles of a chunk, 0: all */
  int k_block, w_vectors;
  bool flat; /* a line is a plane */
  bool residual;
} PlainLayer;

/* Tiles of a chunk, whose input stays in L2 for all blocks of channels; 0: all. */
int plain_chunk(const Machine *machine, const PlainLayer *layer);

double plain_seconds(const Target *target, const Machine *machine, const PlainLayer *layer);

#endif
