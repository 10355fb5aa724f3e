/* SPDX-License-Identifier: MIT */
/* Shared by the expansions of quantised operators. A zero point of NULL is 0. */
#ifndef RNNCC_QUANTISED_H
#define RNNCC_QUANTISED_H

#include "expand/expansion.h"

/* Scales or zero points of an axis, one or [C], so that they broadcast to a tensor of `rank` axes. */
Value *along_axis(const Formula *f, Value *parameters, int64_t axis, int rank);

/* Each number of a block repeated along the axis, so that there is one for each element of x. */
Value *repeated(const Formula *f, Value *parameters, const Value *x, int64_t axis, int64_t block);

/* x - zero, in f32. */
Value *less_zero_point(const Formula *f, Value *x, Value *zero);

/* round(x) + zero, halves to even, saturated. */
Value *quantised(const Formula *f, Value *x, Value *zero, DType to);

/* The formulas of QLinearAdd and QLinearLeakyRelu, whoever could take them. */
void expand_quantised_sum(const Formula *f, const Node *node, Value **results);
void expand_quantised_leaky_relu(const Formula *f, const Node *node, Value **results);

/* x as u8, as DynamicQuantizeLinear says: the numbers, their scale, their zero point. */
void dynamically_quantised(const Formula *f, Value *x, Value *results[3]);

#endif
