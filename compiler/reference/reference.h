/* SPDX-License-Identifier: MIT */
/* The reference interpreter: runs a graph on plain loops. Constant folding and the test oracle rest on it. */
#ifndef RNNCC_REFERENCE_H
#define RNNCC_REFERENCE_H

#include "ir/op.h"
#include "ir/tensor.h"

/* Runs one node on concrete inputs (NULL: absent). outputs[i] is allocated here, NULL where node->outputs[i] is.
 * Needs inferred shapes; `symbols` are the named dims' values. NULL, or what is wrong with the values. */
const char *reference_node(Arena *arena, const Node *node, const Tensor *const *inputs, Tensor **outputs,
                           const int64_t *symbols);

/* A constant value, or only its type and shape. */
Tensor *reference_tensor(Arena *arena, const Value *value, const int64_t *symbols);

/* The first input of a fused node after its prologue; NULL, with the reason in *wrong, if it fails. */
const Tensor *reference_prologue(Arena *arena, const Node *node, const Tensor *input, const int64_t *symbols,
                                 const char **wrong);
/* Applies the node's epilogue to `result`, which may be a part of the node's result. extra: the epilogue's own
 * operands, in order. */
const char *reference_epilogue(Arena *arena, const Node *node, Tensor *result, const Tensor *const *extra,
                               Tensor **output);

/* Runs the whole graph. inputs: graph inputs, then states; outputs: graph outputs, then new states. */
const char *reference_run(Arena *arena, Graph *graph, const Tensor *const *inputs, Tensor **outputs,
                          const int64_t *symbols);

#endif
