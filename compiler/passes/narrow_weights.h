/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_NARROW_WEIGHTS_H
#define RNNCC_NARROW_WEIGHTS_H

#include "ir/graph.h"

/* Has the node weights that its kernels can keep in fewer bits: constants in f32 of RNN, GRU, LSTM, MatMul or Gemm? */
bool has_weights(const Node *node);

/* Rounds these to the type, bf16, f16 or i8: their values are constants of f32 that say so (ir/narrow.h). Products and
 * sums stay in f32. i8 has a scale for each output channel. needs: has_weights. */
void narrow_weights(Graph *graph, Node *node, DType dtype);

#endif
