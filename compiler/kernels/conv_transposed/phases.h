/* SPDX-License-Identifier: MIT */
/*
 * The phases of a transposed convolution, each a convolution without stride by a part of the window, its taps: see
 * templates/conv_transposed_blocked.c.
 */
#ifndef RNNCC_CONV_TRANSPOSED_PHASES_H
#define RNNCC_CONV_TRANSPOSED_PHASES_H

#include "kernels/conv/direct_weights.h"

/* An axis, as the template's knobs have it. */
typedef struct PhaseAxis {
  int64_t window, up; /* the stride is the number of phases */
  int64_t period;     /* points of the window from a tap of a phase to the next */
  int64_t dilation;   /* elements of the input between them */
  int64_t inverse;    /* dilation * inverse is 1 modulo period */
} PhaseAxis;

PhaseAxis phase_axis_of(int64_t window, int64_t stride, int64_t dilation);

/* Packs [groups * group_channels][group_kernels][R][S] to the weights of all phases, by their first point of the
 * window, each as direct_pack() has them of a window of its taps. weights->window is R * S. taps: memory for the
 * weights of a phase, at most as many as in `source`. packed: direct_floats(weights), zero. */
void phases_pack(const DirectWeights *weights, const PhaseAxis *h, const PhaseAxis *w, const float *source, float *taps,
                 float *packed);

#endif
