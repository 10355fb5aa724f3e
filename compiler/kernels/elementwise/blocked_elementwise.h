/* SPDX-License-Identifier: MIT */
/* Element-wise kernels on blocked tensors, for the families of element-wise ops and of batch normalisation. */
#ifndef RNNCC_BLOCKED_ELEMENTWISE_H
#define RNNCC_BLOCKED_ELEMENTWISE_H

#include "kernels/elementwise/broadcast.h"
#include "program/build.h"

/* Can y, a blocked tensor, be computed from the operands: each of y's rank or a constant, and each the same for all
 * pixels or for none, all channels or none, all images or none? */
bool blocked_operands_fit(const Value *y, int n, const Value *const *operands);
/* Does each of them, but for single constants, have an element for each of y's pixels and channels? Then a vector's
 * place in a block is nothing to the kernels, and a block may be of several. needs: blocked_operands_fit */
bool blocked_operands_alike(const Value *y, int n, const Value *const *operands);

/* A constant with an element for each channel, as kernels read it: in blocks of a vector, zero past the last. The
 * constant itself where it has one element. */
Value *blocked_constant(Graph *graph, const Value *y, const Value *constant);

/* How a kernel walks an operand of y: one element for each pixel and each channel, or the same for all of them. Strides
 * in floats; a constant stands as blocked_constant() has it. */
typedef struct BlockedWalk {
  bool pixels, channels;
  int64_t image, block;
} BlockedWalk;
BlockedWalk blocked_walk(const Graph *graph, const Value *y, const Value *operand);

/* Adds the call of y = op(operands), `op` the body of the hook `vec op(vec a, vec b, vec c)`. needs:
 * blocked_operands_fit; constants are blocked_constant()s. */
void lower_blocked_elementwise(Program *program, const Node *node, const char *op, const Value *y, int n,
                               const Value *const *operands);

#endif
