/* SPDX-License-Identifier: MIT */
/*
 * Packed weights of templates/conv_winograd.c: each filter is transformed to the points of its form, in double, and
 * packed
 *
 *   [group of output channels][point][channel][vector of the group][LANES]
 *
 * The last group may have fewer vectors than the others. Lanes past the last output channel are zero.
 */
#ifndef RNNCC_WINOGRAD_WEIGHTS_H
#define RNNCC_WINOGRAD_WEIGHTS_H

#include <stdint.h>

/* F(tile_h x tile_w, taps_h x taps_w). */
typedef struct WinogradForm {
  int tile_h, tile_w; /* outputs of a tile along each axis */
  int taps_h, taps_w;
} WinogradForm;

static inline int winograd_points(const WinogradForm *f) {
  return (f->tile_h + f->taps_h - 1) * (f->tile_w + f->taps_w - 1);
}

typedef struct WinogradWeights {
  WinogradForm form;
  int lanes;
  int oc_vectors; /* of a group */
  int64_t channels, kernels;
} WinogradWeights;

int64_t winograd_weights_floats(const WinogradWeights *weights);

/* source: [kernels][channels][taps_h][taps_w]. */
void winograd_weights_pack(const WinogradWeights *weights, const float *source, float *target);

#endif
