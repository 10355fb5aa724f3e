/* SPDX-License-Identifier: MIT */
/*
 * Convolutions of quantised numbers that the kernels of kernels/conv/ run as products of bytes: those whose weights,
 * scales and zero points are constants, and whose weights minus zero point are i8 again. The sum of an output is then
 * an i32. QLinearConv: y = saturate(round(scale[k] * (bias[k] + sum of (x - x_zero) * w[k])) + y_zero).
 * ConvIntegerToFloat, of which x's scale and zero point may be known in the run only:
 *   y = (x_scale * scale[k]) * sum of (x - x_zero) * w[k] + bias[k], in f32.
 */
#ifndef RNNCC_INTEGER_CONV_H
#define RNNCC_INTEGER_CONV_H

#include "ir/graph.h"

typedef struct IntegerConv {
  int64_t kernels, depth; /* of all groups; weights of an output channel */
  const int8_t *weights;  /* [kernels][depth], the zero point taken off */
  const int32_t *bias;    /* [kernels]; in floats: zeros */
  const float *scale;     /* [kernels]: x's scale by w's over y's, rounded after each step as ONNX Runtime does; in
                             floats: w's */
  int x_zero, y_zero;     /* in floats: 0 */
} IntegerConv;

/* Places of a node's inputs; -1: it has none of that kind. x is its first one. */
typedef struct ConvInputs {
  int x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias;
} ConvInputs;

bool is_integer_conv(const Node *node);
/* Is it ConvIntegerToFloat? */
bool writes_floats(const Node *node);
const ConvInputs *integer_conv_inputs(const Node *node);

/* The input that has the weights of a convolution, and its bias. */
int conv_weights_input(const Node *node);
int conv_bias_input(const Node *node);

/* Is the node such a convolution? Else its formula computes it. */
bool integer_conv_fits(Graph *graph, const Node *node);

/* needs: integer_conv_fits. The largest magnitude of a sum, also of a part of it. */
double integer_conv_reach(const Node *node);

/* needs: integer_conv_fits, in one group. Do both products of the weights of channels 2i and 2i + 1, with any u8, fit
 * 16 bits together, at each tap? */
bool integer_conv_pairs_fit(const Node *node);

/* needs: integer_conv_fits. Does every output's sum, of any x, fit in so many bits with its sign? */
bool integer_conv_sums_fit(const Node *node, int bits);

/* needs: integer_conv_fits */
IntegerConv integer_conv_of(Arena *arena, const Node *node);

#endif
