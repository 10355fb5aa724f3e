/* SPDX-License-Identifier: MIT */
/* Transposed convolution of blocked tensors whose weights are constant: templates/conv_transposed_blocked.c. */
#ifndef RNNCC_CONV_TRANSPOSED_BLOCKED_H
#define RNNCC_CONV_TRANSPOSED_BLOCKED_H

#include "kernels/conv/convolution.h"

/* The node as a Convolution with weights [groups * channels][kernels][R][S], whose pads crop the output. */
Convolution transposed_of(Graph *graph, const Node *node, NodeLayout layout);

/* As KernelFamily.layouts; 0: the node does not run on blocked tensors. */
LayoutSet transposed_layouts(const Graph *graph, const Convolution *conv);

/* Of a node that does. The predicted time in the layout of `conv`. */
double transposed_seconds(const Graph *graph, const Convolution *conv);
/* As in KernelFamily. */
void transposed_schedule(Graph *graph, Node *node);
void transposed_pack(Graph *graph, Node *node);
void transposed_lower(Program *program, const Node *node);

/* The call's operations, and the bytes of input, output and weights. */
void transposed_cost(Call *call, const Convolution *conv, const Value *weights);

#endif
