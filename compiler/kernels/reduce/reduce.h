/* SPDX-License-Identifier: MIT */
/* What reductions of f32 share: those of a tensor, and those of what a chain of element-wise nodes computes. */
#ifndef RNNCC_REDUCE_H
#define RNNCC_REDUCE_H

#include "ir/op.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/chain.h"
#include "program/build.h"

/* Element-wise nodes and the reduction of their result, made by fuse_reductions. Not in ops.def: models cannot name it.
 * Node.members are the element-wise nodes, Node.reduction reads the result of the last. */
extern const OpInfo op_reduced_chain;

enum { MAX_REDUCED_OPERANDS = 8 };

/* Can the node be a reduction of elements that are computed as they are read? */
bool reduces_elements(const Node *node);

/* `node`, a reduction or one that such nodes were fused into, computes as well what `maker` does, whose result it alone
 * reads: a chain, or an element-wise node. False if that is too much for a kernel. */
bool fuse_into_reduction(Graph *graph, Node *node, const Node *maker);

/* The loop nest: operands broadcast to the shape that is reduced, and behind them the result, which moves along the
 * axes that are kept. */
Broadcast reduction_nest(Graph *graph, const Node *reduction, int n, Value *const *operands);

/* The kernel call of `node`: `reduction` itself, or what it is part of. element, epilogue: hooks; NULL: the template's.
 */
Call *lower_reduction(Program *program, const Node *node, const Node *reduction, int n, Value *const *operands,
                      const char *element, const char *epilogue);

#endif
