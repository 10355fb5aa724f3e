/* SPDX-License-Identifier: MIT */
/*
 * What a kernel of integer convolutions has whose result may be in floats, too: then the scale of each channel is
 * multiplied by x's, which the run may tell, as it may the zero point; a bias, a residual and element-wise steps
 * follow.
 */
#ifndef RNNCC_TO_FLOATS_H
#define RNNCC_TO_FLOATS_H

#include "kernels/conv/convolution.h"
#include "kernels/conv/requantise.h"
#include "shapes/integer_conv.h"

/* The constants, behind node->packed's weights: of a result in floats the sum of each output channel's weights, scales,
 * and the bias or NULL; else what pack_requantise() appends. */
void pack_result(Graph *graph, Node *node, const IntegerConv *numbers, StartOfSums start);

/* SIGNED_X, FLOATS, BIAS, RESIDUAL and the epilogue, or what knobs_requantise() sets. */
void knobs_result(KernelSpec *spec, const Graph *graph, const Node *node);

/* The tensors, those constants, and the distances of images; operands of the other form are absent. */
void operands_result(Call *call, const Graph *graph, const Node *node);

#endif
