/* SPDX-License-Identifier: MIT */
/*
 * What a kernel of integer convolutions has where the result is in floats: the scale of each channel is multiplied by
 * x's, which the run may tell, as it may the zero point; a bias, a residual and element-wise steps follow.
 */
#ifndef RNNCC_TO_FLOATS_H
#define RNNCC_TO_FLOATS_H

#include "kernels/conv/convolution.h"
#include "shapes/integer_conv.h"

/* Appends to node->packed, which has the weights: the sum of each output channel's weights, scales, and the bias or
 * NULL. */
void pack_to_floats(Graph *graph, Node *node, const IntegerConv *numbers);

/* SIGNED_X, FLOATS, BIAS, RESIDUAL, the epilogue. */
void knobs_to_floats(KernelSpec *spec, const Graph *graph, const Node *node);

/* The tensors, those constants, and the distances of images. */
void operands_to_floats(Call *call, const Graph *graph, const Node *node);

#endif
