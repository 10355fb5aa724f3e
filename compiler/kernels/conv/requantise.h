/* SPDX-License-Identifier: MIT */
/*
 * What the kernels of integer convolutions share: sums begin at a number for each channel, and become y by a scale for
 * each channel, bounds, and maybe the sum with a residual (templates/requantise.h).
 */
#ifndef RNNCC_REQUANTISE_H
#define RNNCC_REQUANTISE_H

#include "kernels/conv/convolution.h"
#include "shapes/integer_conv.h"

/* node->packed: the kernel's weights, then these. */
enum { PACKED_WEIGHTS, PACKED_START, PACKED_SCALE, PACKED_FINISH };

/* Where sums begin: at the bias, in floats; or, in i32, at the bias less the zero point's products, of inputs as dot
 * products count them (DOT_ZERO of templates/simd/int8.h), or as they are in memory. */
typedef enum StartOfSums { START_IN_FLOATS, START_OF_DOTS, START_OF_BYTES } StartOfSums;

/* Appends them to node->packed, which has the weights. */
void pack_requantise(Graph *graph, Node *node, const IntegerConv *numbers, StartOfSums start);

/* SIGNED_X, SIGNED_Y, BOUNDS, STEP, RESIDUAL. */
void knobs_requantise(KernelSpec *spec, const Graph *graph, const Node *node);
/* SKIPS: is x's zero point 0? */
void knob_skips(KernelSpec *spec, const Node *node);
/* The zero point whose products are zero, see DOT_ZERO of templates/simd/int8.h. */
int step_zero(const Graph *graph, const Value *x);

/* The tensors, those constants, and the distances of images. */
void operands_requantise(Call *call, const Graph *graph, const Node *node);

/* Can the kernels add another tensor to y, as the QLinearAdd `step` does, or take y to another scale, as a
 * QLinearLeakyRelu does whose alpha is 1? Its first operand is the host's result. */
bool requantise_takes(const Node *host, const Node *step);
/* That tensor; NULL: none. */
const Value *requantise_residual(const Node *node);

#endif
