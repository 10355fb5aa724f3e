/* SPDX-License-Identifier: MIT */
/* How long a convolution of plain tensors should take: what a blocked one is weighed against. */
#ifndef RNNCC_PLAIN_COST_H
#define RNNCC_PLAIN_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "machine.h"

/* A convolution in numbers, with the tile that conv_plain is to run it by. */
typedef struct PlainLayer {
  int64_t images, groups, channels, kernels; /* channels and kernels of one group */
  int64_t window;                            /* points of it: Q R S */
  int64_t in_plane, out_rows, out_w;         /* elements of a channel; rows of all its planes; columns */
  int64_t padded_plane; /* elements of a channel that conv_pad writes; 0: the input is read as it is */
  int k_block, w_vectors;
  bool residual;
} PlainLayer;

double plain_seconds(const Target *target, const Machine *machine, const PlainLayer *layer);

#endif
