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

/* Runs the whole graph. inputs: graph inputs, then states; outputs: graph outputs, then new states. */
const char *reference_run(Arena *arena, Graph *graph, const Tensor *const *inputs, Tensor **outputs,
                          const int64_t *symbols);

#endif
