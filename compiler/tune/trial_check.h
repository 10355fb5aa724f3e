/* SPDX-License-Identifier: MIT */
/*
 * The expected results of a trial, by the reference kernel: one lane of each vector of output channels, all pixels.
 * That takes a second; all channels would take ten.
 */
#ifndef RNNCC_TRIAL_CHECK_H
#define RNNCC_TRIAL_CHECK_H

#include "tune/trial_case.h"

typedef struct Expected {
  int64_t n_channels, all_channels;
  const int64_t *channels; /* those that were computed, ascending */
  Tensor *y;               /* [N][n_channels][H][W] */
  Tensor *rounded;         /* tolerance of each element if the sums themselves are rounded */
  double rounding;         /* tolerance of all elements: the epilogue's rounding */
} Expected;

/* Returns NULL, or the reason why the reference cannot run the case. */
const char *trial_expected(const TrialCase *trial, Expected *expected);

/* output: all of it, row-major. rounds: the sums are rounded, as Winograd's are. */
bool trial_is_right(const Expected *expected, const float *output, int64_t count, bool rounds);

#endif
