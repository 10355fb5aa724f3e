/* SPDX-License-Identifier: MIT */
/* Chains: element-wise nodes that run as one kernel, made by fuse_chains. */
#ifndef RNNCC_CHAIN_H
#define RNNCC_CHAIN_H

#include "ir/op.h"
#include "program/build.h"
#include "support/text.h"

enum { MAX_CHAIN_OPERANDS = 8, MAX_CHAIN_MEMBERS = 32 };

/* The op of a chain. Not in ops.def: models cannot name it. */
extern const OpInfo op_chain;

/* Can y be computed on blocked tensors from these inputs of a chain? */
bool chain_runs_blocked(const Value *y, int n, Value *const *inputs);

/* The C expression that reads input `k` of the chain, a vec or a vmask. */
typedef const char *ChainLoad(Graph *graph, const Node *chain, int k);
/* From the operands' rows `in`, n elements from i on, or the row's one element. */
const char *chain_row_load(Graph *graph, const Value *input, int k, bool moves);

/* Statements: inputs become i0, i1, ..., results of members v0, v1, ..., all vectors or masks. */
void chain_compute(Graph *graph, Text *body, const Node *chain, ChainLoad *load);

/* Appends what one kernel computes for the node, which is a chain or element-wise: the node without its epilogue, then
 * that. */
void chain_add_members(Graph *graph, Node *chain, const Node *node);

#endif
