/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_NARROW_WEIGHTS_H
#define RNNCC_NARROW_WEIGHTS_H

#include "ir/graph.h"

/* Is it a constant in f32, of one element at least? */
bool can_be_narrow(const Value *weights);

/* Has the node weights that its kernels can keep in fewer bits: constants in f32 of RNN, GRU, LSTM, MatMul or Gemm? */
bool has_weights(const Node *node);

/* Rounds these to the form's dtype, of i8 and i4 with scales for each output channel, and for each of the form's group.
 * Their values are constants of f32 that say so (ir/narrow.h). Products and sums stay in f32. needs: has_weights. */
void narrow_weights(Graph *graph, Node *node, const NarrowWeights *form);

#endif
