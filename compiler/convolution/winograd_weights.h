/* SPDX-License-Identifier: MIT */
/*
 * The weights of a 3x3 convolution as templates/conv_winograd.c streams them: each filter transformed to
 * (tile + 2) x (tile + 2) points, in double, and packed
 *
 *   [group of output channels][point][channel][vector of the group][LANES]
 *
 * The last group may have fewer vectors than the others. Lanes past the last output channel are zero.
 */
#ifndef RNNCC_WINOGRAD_WEIGHTS_H
#define RNNCC_WINOGRAD_WEIGHTS_H

#include <stdint.h>

typedef struct WinogradWeights {
  int tile; /* outputs along an axis: 2 or 4 */
  int lanes;
  int oc_vectors; /* of a group */
  int64_t channels, kernels;
} WinogradWeights;

int64_t winograd_weights_floats(const WinogradWeights *weights);

/* source: [kernels][channels][3][3]. */
void winograd_weights_pack(const WinogradWeights *weights, const float *source, float *target);

#endif
