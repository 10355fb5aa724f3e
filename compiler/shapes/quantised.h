/* SPDX-License-Identifier: MIT */
/* Shared by the shape rules of quantised operators. These report an error; an absent input is right. */
#ifndef RNNCC_SHAPES_QUANTISED_H
#define RNNCC_SHAPES_QUANTISED_H

#include "ir/graph.h"

/* Are constants in floats possible scales? */
bool check_scale_numbers(const Node *node, int input);
/* Is the input one scale or zero point, or one for each element of the axis of `x`? */
bool check_scales(Graph *graph, const Node *node, int input, const Value *x, int64_t axis);
/* The same of a matrix of a product, whose rows (axis -2) or columns (-1) may also have numbers in each matrix: of x's
 * rank, with 1 along the other axis. A vector has one. */
bool check_scales_of_matrix(Graph *graph, const Node *node, int input, const Value *x, int axis);
/* Is it one number? */
bool check_one_scale(Graph *graph, const Node *node, int input);

/* Has a window few enough elements that f32 adds a channel's products exactly (expand/integer_products.c)? */
bool has_few_taps(const Value *w);

#endif
