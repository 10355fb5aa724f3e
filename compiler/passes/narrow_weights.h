/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_NARROW_WEIGHTS_H
#define RNNCC_NARROW_WEIGHTS_H

#include "ir/graph.h"
#include "ir/narrow.h"
#include "ir/precision.h"
#include "machine/targets.h"

/* Is it a constant in f32, of one element at least? */
bool can_be_narrow(const Value *weights);

/* Has the node weights that its kernels can keep in fewer bits: constants in f32 of RNN, GRU, LSTM, MatMul or Gemm? */
bool has_weights(const Node *node);

/* The form that a rule asks for; its dtype is RNNCC_NONE if weights stay in f32. A target without products of bf16
 * keeps the weights so, and rounds nothing else. */
NarrowWeights weights_form(const PrecisionRule *rule, const Target *target);

/* Sets inner and count of the form, for this input of such a node; returns the numbers of a channel. */
int64_t narrow_channels(const Node *node, int input, NarrowWeights *form);

/* Rounds the constant that is this input of such a node (INPUT_W or INPUT_R, of a product 1) to the form's dtype, of i8
 * and i4 with scales for each output channel, and for each of the form's group. Its value is then a constant of f32
 * that says so (ir/narrow.h). Products and sums stay in f32. Numbers are the nearest ones; but of i8 and i4, where they
 * multiply rows of a constant table, as of an embedding, which is not too large (ir/feedback.c), each in turn makes up
 * for the errors of those before it. needs: has_weights; of a form without scales a constant in f32. */
void narrow_weights(Graph *graph, Node *node, int input, const NarrowWeights *form);

#endif
