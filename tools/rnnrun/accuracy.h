/* SPDX-License-Identifier: MIT */
/* How far an output is from the reference's, over any number of runs. */
#ifndef RNNRUN_ACCURACY_H
#define RNNRUN_ACCURACY_H

#include "support.h"

typedef struct Accuracy {
  int64_t elements;       /* compared */
  double largest, sum;    /* of |got - expected|; infinite where only one is a number */
  double noise, signal;   /* sums of (got - expected)^2 and expected^2 */
  int64_t choices, agree; /* rows of the last axis, and those whose largest element stands at the same place; of
                             integers elements, and those that are equal */
} Accuracy;

/* Adds a run's output. Both have the same type and shape. */
void accuracy_add(Accuracy *accuracy, const rnncc_tensor *got, const rnncc_tensor *expected);

double accuracy_mean(const Accuracy *accuracy);
/* 10 log10 of signal over noise; infinite without noise. */
double accuracy_snr(const Accuracy *accuracy);

#endif
