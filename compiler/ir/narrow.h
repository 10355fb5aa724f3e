/* SPDX-License-Identifier: MIT */
/*
 * Weights of fewer bits: of a constant in f32, whose every number is exactly what a number of that type stands for.
 * Kernels may keep the small numbers in place of the large ones; who does not know of them uses Value.data.
 */
#ifndef RNNCC_NARROW_H
#define RNNCC_NARROW_H

#include "ir/graph.h"

struct NarrowWeights {
  DType dtype;         /* bf16, f16 or i8 */
  const float *scales; /* i8: element i is scales[i / inner % count] times a number of 8 bits, rounded once */
  int64_t inner, count;
};

/* The number of 8 bits that element i of the constant stands for. */
int narrow_integer(const Value *value, int64_t i);

/* A new constant: the value's numbers, rounded to bf16 or f16. */
Value *narrow_rounded(Graph *graph, const Value *value, DType dtype);
/* The same to i8, symmetric, so that the largest of each channel is 127 times its scale; see scales. A channel with a
 * number that is infinite or NaN has only NaN. */
Value *narrow_scaled(Graph *graph, const Value *value, int64_t inner, int64_t count);

#endif
