/* SPDX-License-Identifier: MIT */
/* The graphs that a quantisation makes of the network's. Each changes the graph that it is given. */
#ifndef RNNCC_QUANTISE_REWRITE_H
#define RNNCC_QUANTISE_REWRITE_H

#include "ir/op.h"
#include "quantise/layers.h"

typedef struct RewriteOptions {
  int group;                   /* numbers of a channel that share a scale, where products are in f32; 0: all */
  bool seven_bits;             /* of the weights of recurrent layers that multiply integers */
  bool correct_bias;           /* biases make up for rounded weights */
  RecurrentProducts recurrent; /* what recurrent layers multiply; their weights are integers in any case */
} RewriteOptions;

/* The activations become outputs, behind the graph's own. */
void rewrite_watched(const Layers *layers);

/* One more input, a bool for each layer, says which layers are in int8 in a run. All of them are computed in both
 * forms, in f32. */
void rewrite_switched(const Layers *layers, RewriteOptions options);

/* Chosen layers read QuantizeLinear and DequantizeLinear of their data, and DequantizeLinear of integer weights. */
void rewrite_chosen(const Layers *layers, RewriteOptions options);

#endif
