/* SPDX-License-Identifier: MIT */
#include "shapes/integer_conv.h"

#include <math.h>

#include "ir/op.h"
#include "ir/tensor.h"
#include "machine/targets.h"
#include "shapes/shape.h"
#include "support/numbers.h"

/* Inputs of both operators. */
enum { X = 0 };
static const ConvInputs quantised = {1, 2, 3, 4, 5, 6, 7, 8}, to_floats = {2, 4, 1, 3, 5, -1, -1, 6};

/* What templates/conv_direct_int8.c has. */
enum { MAX_STRIDE = 4096, MAX_REACH = 65536 };

bool is_integer_conv(const Node *node) { return is_op(node, OP_QLinearConv) || writes_floats(node); }
bool writes_floats(const Node *node) { return is_op(node, OP_ConvIntegerToFloat); }

const ConvInputs *integer_conv_inputs(const Node *node) { return writes_floats(node) ? &to_floats : &quantised; }

int conv_weights_input(const Node *node) { return is_integer_conv(node) ? integer_conv_inputs(node)->w : 1; }
int conv_bias_input(const Node *node) { return is_integer_conv(node) ? integer_conv_inputs(node)->bias : 2; }

/* ---- numbers ---- */

static double of_kernel(const Value *value, int64_t kernel) {
  return !value ? 0 : value_element(value, value_count(value) == 1 ? 0 : kernel);
}

static const Value *weights_of(const Node *node) { return node->inputs[conv_weights_input(node)]; }
static const Value *x_zero_of(const Node *node) { return node_input(node, integer_conv_inputs(node)->x_zero); }

/* In floats the kernel multiplies by x's scale, which may be known in the run only. */
static float scale_of(const Node *node, int64_t kernel) {
  const ConvInputs *in = integer_conv_inputs(node);
  float w = (float)of_kernel(node->inputs[in->w_scale], kernel);
  if (writes_floats(node)) return w;
  float product = (float)value_element(node->inputs[in->x_scale], 0) * w;
  return product / (float)value_element(node->inputs[in->y_scale], 0);
}

/* Larger scales or smaller ones are mistakes of a model, whose NaNs and infinities the formula has. */
static bool scales_are_usual(const Node *node, int64_t kernels) {
  for (int64_t k = 0; k < kernels; k++) {
    float scale = scale_of(node, k);
    if (!(scale >= 0x1p-64f && scale <= 0x1p64f)) return false;
  }
  return true;
}

static double w_zero_of(const Node *node, int64_t kernel) {
  return of_kernel(node_input(node, integer_conv_inputs(node)->w_zero), kernel);
}

static double weight_of(const Node *node, int64_t kernel, int64_t i) {
  return value_element(weights_of(node), i) - w_zero_of(node, kernel);
}

/* In steps of the sum; a bias in floats is added behind it. */
static double bias_of(const Node *node, int64_t kernel) {
  return writes_floats(node) ? 0 : of_kernel(node_input(node, conv_bias_input(node)), kernel);
}

static int64_t kernels_of(const Node *node) { return dim_value(weights_of(node)->shape[0]); }
static int64_t depth_of(const Node *node) { return value_count(weights_of(node)) / kernels_of(node); }

static bool weights_are_bytes(const Node *node) {
  int64_t depth = depth_of(node);
  for (int64_t i = 0; i < value_count(weights_of(node)); i++) {
    double weight = weight_of(node, i / depth, i);
    if (weight < INT8_MIN || weight > INT8_MAX) return false;
  }
  return true;
}

double integer_conv_reach(const Node *node) {
  int64_t depth = depth_of(node);
  double most = 0;
  for (int64_t k = 0; k < kernels_of(node); k++) {
    double sum = fabs(bias_of(node, k));
    for (int64_t i = k * depth; i < (k + 1) * depth; i++) sum += UINT8_MAX * fabs(weight_of(node, k, i));
    most = fmax(most, sum);
  }
  return most;
}

/* Weights as they are in memory: the byte less the zero point. */
typedef struct Bytes {
  const uint8_t *bytes;
  int64_t zero;
  bool is_signed;
} Bytes;

static Bytes bytes_of(const Node *node, int64_t kernel) {
  const Value *weights = weights_of(node);
  return (Bytes){.bytes = (const uint8_t *)weights->data + kernel * depth_of(node),
                 .zero = (int64_t)w_zero_of(node, kernel),
                 .is_signed = weights->dtype == RNNCC_I8};
}

static int64_t byte_at(const Bytes *b, int64_t i) {
  return (b->is_signed ? (int8_t)b->bytes[i] : b->bytes[i]) - b->zero;
}

static bool pair_fits(int64_t a, int64_t b) {
  enum { MOST = 128 }; /* 255 * 128 < 2^15 */
  return max_int(a, 0) + max_int(b, 0) <= MOST && min_int(a, 0) + min_int(b, 0) >= -MOST;
}

bool integer_conv_pairs_fit(const Node *node) {
  int64_t channels = dim_value(weights_of(node)->shape[1]), window = depth_of(node) / channels;
  for (int64_t k = 0; k < kernels_of(node); k++) {
    Bytes b = bytes_of(node, k);
    for (int64_t i = 0; i < channels / 2 * window; i++) {
      int64_t first = i / window * 2 * window + i % window;
      if (!pair_fits(byte_at(&b, first), byte_at(&b, first + window))) return false;
    }
  }
  return true;
}

/* The sums of an output channel's positive and negative weights. */
typedef struct Signed {
  int64_t positive, negative;
} Signed;

static Signed sums_of(const Node *node, int64_t kernel) {
  Bytes b = bytes_of(node, kernel);
  Signed sums = {0};
  for (int64_t i = 0, depth = depth_of(node); i < depth; i++) {
    int64_t weight = byte_at(&b, i);
    sums.positive += max_int(weight, 0);
    sums.negative += min_int(weight, 0);
  }
  return sums;
}

bool integer_conv_sums_fit(const Node *node, int bits) {
  bool is_signed = node->inputs[X]->dtype == RNNCC_I8;
  int64_t zero = (int64_t)of_kernel(x_zero_of(node), 0), most = (int64_t)1 << (bits - 1);
  int64_t low = (is_signed ? INT8_MIN : 0) - zero, high = (is_signed ? INT8_MAX : UINT8_MAX) - zero;
  for (int64_t k = 0; k < kernels_of(node); k++) {
    Signed sums = sums_of(node, k);
    int64_t bias = (int64_t)bias_of(node, k);
    if (bias + sums.positive * low + sums.negative * high < -most) return false;
    if (bias + sums.positive * high + sums.negative * low >= most) return false;
  }
  return true;
}

/* ---- the window ---- */

static bool axis_fits(const Graph *graph, const Window *window, int i) {
  const Dim *zero = dim_const(graph->dims, 0);
  const Dim *const pads[] = {window->pad_begin[i], window->pad_end[i]};
  for (int k = 0; k < 2; k++)
    if (!dim_at_most(graph->dims, zero, pads[k]) || dim_upper(pads[k]) > MAX_REACH) return false;
  return window->stride[i] <= MAX_STRIDE && window->dilation[i] <= MAX_REACH;
}

/* One or two spatial axes, not too large, and always an element. */
static bool plane_fits(const Value *value) {
  if (value->rank < 3 || value->rank > 4 || value_plane_is_large(value)) return false;
  for (int axis = 1; axis < value->rank; axis++)
    if (dim_lower(value->shape[axis]) <= 0) return false;
  return true;
}

static bool window_fits(Graph *graph, const Node *node) {
  Window window;
  if (!plane_fits(node->inputs[X]) || !plane_fits(node->outputs[0]) || !read_window(graph, node, &window)) return false;
  for (int i = 0; i < window.n_spatial; i++)
    if (!axis_fits(graph, &window, i)) return false;
  return true;
}

/* ---- the node ---- */

/* x's scale and zero point may be known in the run only, if y is in floats. */
static bool all_constant(const Node *node) {
  const ConvInputs *in = integer_conv_inputs(node);
  for (int i = 1; i < node->n_inputs; i++) {
    bool of_run = writes_floats(node) && (i == in->x_scale || i == in->x_zero);
    if (node->inputs[i] && !node->inputs[i]->data && !of_run) return false;
  }
  return !node->inputs[X]->data;
}

/* Is a convolution of bytes with a result in floats faster than one of floats? Where there are dot products of bytes,
 * and blocks of channels are of one group, or all groups together fill blocks, which matrices then multiply. */
static bool gains_in_floats(const Graph *graph, const Value *weights, int64_t groups) {
  const Target *target = graph->config->target;
  int64_t channels = dim_value(weights->shape[1]), kernels = dim_value(weights->shape[0]) / groups;
  int64_t together = target->has_matrices && channels > 1 ? groups : 1;
  bool fills = together * channels % target->lanes == 0 && together * kernels % target->lanes == 0;
  return target->has_dot && (groups == 1 || fills);
}

bool integer_conv_fits(Graph *graph, const Node *node) {
  if (!is_integer_conv(node) || !all_constant(node) || !window_fits(graph, node)) return false;
  if (value_count(weights_of(node)) == 0) return false;
  bool usual = writes_floats(node) ? gains_in_floats(graph, weights_of(node), node_int(node, ATTR_group))
                                   : scales_are_usual(node, kernels_of(node));
  return usual && weights_are_bytes(node) && integer_conv_reach(node) <= INT32_MAX;
}

IntegerConv integer_conv_of(Arena *arena, const Node *node) {
  int64_t kernels = kernels_of(node), depth = depth_of(node), count = kernels * depth;
  int8_t *weights = ARENA_ARRAY(arena, int8_t, count);
  int32_t *biases = ARENA_ARRAY(arena, int32_t, kernels);
  float *scale = ARENA_ARRAY(arena, float, kernels);
  for (int64_t k = 0; k < kernels; k++) {
    for (int64_t i = k * depth; i < (k + 1) * depth; i++) weights[i] = (int8_t)weight_of(node, k, i);
    biases[k] = (int32_t)bias_of(node, k);
    scale[k] = scale_of(node, k);
  }
  return (IntegerConv){.kernels = kernels,
                       .depth = depth,
                       .weights = weights,
                       .bias = biases,
                       .scale = scale,
                       .x_zero = writes_floats(node) ? 0 : (int)of_kernel(x_zero_of(node), 0),
                       .y_zero = (int)of_kernel(node_input(node, integer_conv_inputs(node)->y_zero), 0)};
}
