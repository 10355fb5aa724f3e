/* SPDX-License-Identifier: MIT */
/*
 * The results that a trial must compute, by the reference kernel: one lane of each vector of output channels, all
 * pixels. That takes a second where all channels take ten.
 */
#ifndef RNNCC_TRIAL_CHECK_H
#define RNNCC_TRIAL_CHECK_H

#include "tune/trial_case.h"

typedef struct Expected {
  int64_t n_channels, all_channels;
  const int64_t *channels; /* those that were computed, ascending */
  Tensor *y;               /* [N][n_channels][H][W] */
  Tensor *rounded;         /* how far an element may be off where the sums themselves are rounded */
  double rounding;         /* how far all may be off: the epilogue's arithmetic */
} Expected;

/* NULL, or why the reference cannot run the case. */
const char *trial_expected(const TrialCase *trial, Expected *expected);

/* output: all of it, row-major. rounds: the sums are rounded, as Winograd's are. */
bool trial_is_right(const Expected *expected, const float *output, int64_t count, bool rounds);

#endif
