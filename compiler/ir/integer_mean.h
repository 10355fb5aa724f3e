/* SPDX-License-Identifier: MIT */
/*
 * Means of 8-bit numbers, QLinearAveragePool of windows and QLinearGlobalAveragePool of all pixels:
 *
 *   sum = sum over the points in the input of (x - x_zero), in i32
 *   y = saturate(round(sum * factor / points + before) + behind), in f32, each step rounded
 *
 * Points in the padding are real zeros, which count if the operator says so.
 */
#ifndef RNNCC_INTEGER_MEAN_H
#define RNNCC_INTEGER_MEAN_H

#include "ir/graph.h"

typedef struct IntegerMean {
  int x_zero;
  float factor;       /* x's scale over y's */
  int before, behind; /* y's zero point, added before rounding or behind it; the other is 0 */
} IntegerMean;

bool is_integer_mean(const Node *node);

/* The most points that a mean is over. needs: infer_shapes. */
double integer_mean_points(const Node *node);

/* Have kernels all that the node needs: constant scales, whose quotient is a normal number, and zero points, and sums
 * within i32? */
bool integer_mean_has_kernel(const Node *node);

/* needs: integer_mean_has_kernel */
IntegerMean integer_mean_of(const Node *node);

#endif
