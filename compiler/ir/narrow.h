/* SPDX-License-Identifier: MIT */
/*
 * Weights of fewer bits: of a constant in f32, whose every number is exactly what a number of that type stands for.
 * Kernels may keep the small numbers in place of the large ones; who does not know of them uses Value.data.
 */
#ifndef RNNCC_NARROW_H
#define RNNCC_NARROW_H

#include "ir/graph.h"

/* Element i belongs to channel i / inner % count. Of i8 and i4 it is an integer times a scale, rounded once. The
 * `group` elements of a channel that follow each other have a scale in common; 0: all of them have. */
struct NarrowWeights {
  DType dtype;         /* bf16, f16, i8 or i4 */
  const float *scales; /* of i8 and i4: [count][groups] */
  int64_t inner, count;
  int64_t group, groups;
  bool rounds_rows; /* bf16: kernels round what they multiply by these to bf16, too, and multiply numbers of bf16 */
  int most;         /* narrow_scaled: integers are from -most to most; 0: as many as the type has */
};

static inline bool narrow_is_scaled(const NarrowWeights *narrow) {
  return narrow->dtype == RNNCC_I8 || narrow->dtype == RNNCC_I4;
}

/* Are all numbers kept alike, if they are equal? NULL: of constants that are not kept narrow. */
bool narrow_alike(const NarrowWeights *a, const NarrowWeights *b);

/* Of a matrix, a row of whose columns is so many elements before the next: its weights of fewer bits, if each column is
 * of one channel. Else NULL. */
const NarrowWeights *narrow_columns(const Value *value, int64_t depth, int64_t depth_stride);

float narrow_scale(const NarrowWeights *narrow, int64_t i); /* of element i */
int narrow_integer(const Value *value, int64_t i);          /* the integer that element i stands for */

/* A new constant: the value's numbers, rounded to bf16 or f16, as the form says. */
Value *narrow_rounded(Graph *graph, const Value *value, const NarrowWeights *form);

/* The same to i8 or i4, symmetric, so that the largest number of each group is 127 or 7 times its scale. A group with a
 * number that is infinite or NaN has only NaN. `channels`: its dtype, inner, count, group and most. `feedback`: of
 * ir/feedback.h, over a channel's numbers, by which small groups have other scales, too; NULL: each is rounded to the
 * nearest. */
Value *narrow_scaled(Graph *graph, const Value *value, const NarrowWeights *channels, const double *feedback);

/* Are these scales 0 or normal, and all numbers that integers of 8 bits stand for finite? Then kernels can multiply by
 * them where floats too small for a normal number count as 0, and the integers can be found again. */
bool narrow_scales_fit(const float *scales, int64_t count);

#endif
