/* SPDX-License-Identifier: MIT */
/* Element-wise kernels on blocked tensors, for the families of element-wise ops and of batch normalisation. */
#ifndef RNNCC_BLOCKED_ELEMENTWISE_H
#define RNNCC_BLOCKED_ELEMENTWISE_H

#include "kernels/elementwise/broadcast.h"
#include "program/build.h"

/* Can the blocked tensor y be computed from the operands: of y's rank or constant, and each broadcast along all spatial
 * axes or none, along channels or not, along images or not? */
bool blocked_operands_fit(const Value *y, int n, const Value *const *operands);
/* The layouts that such a kernel runs in. */
LayoutSet blocked_layouts(const Value *y, int n, const Value *const *operands);

/* A constant of one element a channel as kernels read it: in blocks of a vector, padded with zeros. A constant of one
 * element is returned as it is. */
Value *blocked_constant(Graph *graph, const Value *y, const Value *constant);

/* The strides of an operand of y, in floats; 0 along broadcast axes. Constants are blocked_constant()s. */
typedef struct BlockedWalk {
  bool pixels, channels;
  const Dim *image, *block;
} BlockedWalk;
BlockedWalk blocked_walk(const Graph *graph, const Value *y, const Value *operand);

/* Adds the call of y = op(operands), `op` the body of the hook `vec op(vec a, vec b, vec c)`. needs:
 * blocked_operands_fit; constants are blocked_constant()s. */
void lower_blocked_elementwise(Program *program, const Node *node, const char *op, const Value *y, int n,
                               const Value *const *operands);

#endif
