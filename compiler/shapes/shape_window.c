/* SPDX-License-Identifier: MIT */
/*
 * Sliding windows: checks kernel, strides, dilations and pads of convolution, transposed or not, and of pooling, and
 * finds the output's extents.
 */
#include "shapes/integer_conv.h"
#include "shapes/shape.h"
#include "support/numbers.h"

/* Larger than any image; a product of two does not overflow. */
#define MAX_WINDOW ((int64_t)1 << 30)

/* Reads a list of `n` numbers in [least, MAX_WINDOW]; `fallback` where it is not given. */
static bool read_list(const Node *node, AttributeName name, int n, int64_t least, int64_t fallback, int64_t *values) {
  const Attribute *given = node_attribute(node, name);
  for (int i = 0; i < n; i++) values[i] = fallback;
  if (!given) return true;
  if (given->count != (size_t)n)
    return shape_error(node, "`%s` has %zu numbers; %d are needed here", attribute_name(name), given->count, n);
  for (int i = 0; i < n; i++) {
    values[i] = given->ints[i];
    if (values[i] < least || values[i] > MAX_WINDOW)
      return shape_error(node, "`%s` has %lld; it must be from %lld to %lld", attribute_name(name),
                         (long long)values[i], (long long)least, (long long)MAX_WINDOW);
  }
  return true;
}

bool is_unpadded(const Window *window) {
  for (int i = 0; i < window->n_spatial; i++)
    if (dim_upper(window->pad_begin[i]) > 0 || dim_upper(window->pad_end[i]) > 0) return false;
  return true;
}

bool is_pointwise(const Window *window) {
  for (int i = 0; i < window->n_spatial; i++)
    if (window->kernel[i] != 1) return false;
  return is_unpadded(window);
}

bool is_strided(const Window *window) {
  for (int i = 0; i < window->n_spatial; i++)
    if (window->stride[i] != 1) return true;
  return false;
}

static bool is_transposed(const Node *node) { return is_op(node, OP_ConvTranspose); }
static bool is_conv(const Node *node) {
  return is_op(node, OP_Conv) || is_op(node, OP_ConvWeightGradient) || is_integer_conv(node) ||
         is_op(node, OP_DeformConv) || is_transposed(node);
}

static bool kernel_of_weights(Graph *graph, const Node *node, Window *window) {
  const Value *weights = node->inputs[conv_weights_input(node)];
  for (int i = 0; i < window->n_spatial; i++) {
    if (!dim_is_const(weights->shape[2 + i]))
      return shape_unsupported(node, "the kernel's extents must be constant, found %s", shape_text(graph, weights));
    window->kernel[i] = dim_value(weights->shape[2 + i]);
    if (window->kernel[i] == 0)
      return shape_error(node, "the weights are %s, of a window without points", shape_text(graph, weights));
  }
  int64_t given[MAX_SPATIAL];
  if (!read_list(node, ATTR_kernel_shape, window->n_spatial, 1, 1, given)) return false;
  for (int i = 0; node_has(node, ATTR_kernel_shape) && i < window->n_spatial; i++)
    if (given[i] != window->kernel[i])
      return shape_error(node, "`kernel_shape` says %lld on axis %d, but the weights are %s", (long long)given[i], i,
                         shape_text(graph, weights));
  return true;
}

static int64_t reach(const Window *window, int i) { return (window->kernel[i] - 1) * window->dilation[i] + 1; }

/* An odd pad has its larger half at the end (UPPER) or at the beginning. */
static void split_pad(DimTable *dims, Window *window, int i, const Dim *total, bool upper) {
  const Dim *half = dim_div(dims, total, dim_const(dims, 2)), *rest = dim_sub(dims, total, half);
  window->pad_begin[i] = upper ? half : rest;
  window->pad_end[i] = upper ? rest : half;
}

/* SAME: ceil(in / stride) windows. This is ONNX's text; with dilations, ONNX Runtime refuses Conv and pads too little
 * for pools. */
static void pad_same(Graph *graph, Window *window, int i, const Dim *in, bool upper) {
  DimTable *dims = graph->dims;
  const Dim *stride = dim_const(dims, window->stride[i]), *one = dim_const(dims, 1), *zero = dim_const(dims, 0);
  window->out[i] = dim_div(dims, dim_add(dims, in, dim_sub(dims, stride, one)), stride);
  const Dim *covered =
      dim_add(dims, dim_mul(dims, dim_sub(dims, window->out[i], one), stride), dim_const(dims, reach(window, i)));
  split_pad(dims, window, i, dim_max(dims, zero, dim_sub(dims, covered, in)), upper);
}

static const Dim *padded_extent(Graph *graph, const Window *window, int i, const Dim *in) {
  return dim_add(graph->dims, dim_add(graph->dims, in, window->pad_begin[i]), window->pad_end[i]);
}

/* As many windows as fit. With ceil_mode a last, partial one counts if it starts inside the input or the pad before it.
 * Where not even the first window of a pool fits, ONNX Runtime rounds towards 0: there is one window if less than a
 * stride of it is missing, else none (pool_attributes.h, ComputeOutputSize). */
static const Dim *count_windows(Graph *graph, const Window *window, int i, const Dim *in, bool ceil_mode) {
  DimTable *dims = graph->dims;
  const Dim *stride = dim_const(dims, window->stride[i]), *one = dim_const(dims, 1);
  const Dim *slack = dim_sub(dims, padded_extent(graph, window, i, in), dim_const(dims, reach(window, i)));
  const Dim *whole = dim_add(dims, dim_div(dims, slack, stride), one);
  const Dim *begun = dim_add(dims, dim_ceil_div(dims, slack, stride), one);
  if (!ceil_mode) return dim_lower(slack) >= 0 ? whole : dim_max(dims, whole, dim_min(dims, begun, one));
  const Dim *inside = dim_div(dims, dim_sub(dims, dim_add(dims, in, window->pad_begin[i]), one), stride);
  return dim_min(dims, begun, dim_add(dims, inside, one));
}

/* Convolutions need a whole window; ONNX Runtime refuses a pool of which two strides or more are missing. */
static bool check_fits(Graph *graph, const Node *node, const Window *window, int i, const Dim *in) {
  const Dim *padded = padded_extent(graph, window, i, in);
  int64_t missing = is_conv(node) ? 0 : 2 * window->stride[i] - 1;
  if (dim_lower(padded) + missing >= reach(window, i)) return true;
  return shape_error(node, "the kernel reaches over %lld on spatial axis %d, but the padded input has only %s%s%s",
                     (long long)reach(window, i), i, dim_text(graph, padded),
                     dim_is_const(padded) ? "" : " at the dimensions' minima; give them larger ones",
                     dims_places(graph, 1, &padded));
}

/* A pad as wide as the kernel gives windows of only padding; ONNX Runtime refuses it too. */
static bool check_pool_pads(const Node *node, const Window *window, const int64_t *pads) {
  for (int i = 0; i < 2 * window->n_spatial; i++) {
    int64_t kernel = window->kernel[i % window->n_spatial];
    if (pads[i] >= kernel)
      return shape_error(node, "a pad of %lld is not smaller than the kernel, %lld", (long long)pads[i],
                         (long long)kernel);
  }
  return true;
}

static bool explicit_pads(Graph *graph, const Node *node, Window *window) {
  int64_t pads[2 * MAX_SPATIAL];
  int n = window->n_spatial;
  bool pools = !is_conv(node) && !is_op(node, OP_MaxUnpool);
  if (!read_list(node, ATTR_pads, 2 * n, 0, 0, pads)) return false;
  if (pools && !check_pool_pads(node, window, pads)) return false;
  for (int i = 0; i < n; i++) {
    window->pad_begin[i] = dim_const(graph->dims, pads[i]);
    window->pad_end[i] = dim_const(graph->dims, pads[n + i]);
  }
  return true;
}

static bool is_same(AutoPad auto_pad) { return auto_pad == AUTO_PAD_SAME_UPPER || auto_pad == AUTO_PAD_SAME_LOWER; }

static bool check_auto_pad(const Node *node, bool automatic) {
  const Attribute *pads = node_attribute(node, ATTR_pads);
  for (size_t i = 0; automatic && pads && i < pads->count; i++)
    if (pads->ints[i] != 0) return shape_error(node, "`pads` and `auto_pad` are both given; give one");
  return true;
}

static bool place_windows(Graph *graph, const Node *node, Window *window) {
  const Dim **in = node->inputs[0]->shape + 2;
  AutoPad auto_pad = op_has_attribute(node->op, ATTR_auto_pad) ? node_word(node, ATTR_auto_pad) : AUTO_PAD_NOTSET;
  bool same = is_same(auto_pad), automatic = auto_pad != AUTO_PAD_NOTSET;
  bool ceil_mode = !is_conv(node) && node_int(node, ATTR_ceil_mode) != 0;
  if (!check_auto_pad(node, automatic) || (!automatic && !explicit_pads(graph, node, window))) return false;
  for (int i = 0; i < window->n_spatial; i++) {
    if (auto_pad == AUTO_PAD_VALID) window->pad_begin[i] = window->pad_end[i] = dim_const(graph->dims, 0);
    if (same) pad_same(graph, window, i, in[i], auto_pad == AUTO_PAD_SAME_UPPER);
    if (same) continue;
    if (!check_fits(graph, node, window, i, in[i])) return false;
    window->out[i] = count_windows(graph, window, i, in[i], ceil_mode);
    window->partial |= ceil_mode || dim_lower(padded_extent(graph, window, i, in[i])) < reach(window, i);
  }
  return true;
}

/* ---- transposed ---- */

/* ONNX asks for it, and it is what keeps every stride of the output different. */
static bool read_output_padding(const Node *node, const Window *window, int64_t *padding) {
  if (!read_list(node, ATTR_output_padding, window->n_spatial, 0, 0, padding)) return false;
  for (int i = 0; i < window->n_spatial; i++)
    if (padding[i] >= window->stride[i] && padding[i] >= window->dilation[i])
      return shape_error(node,
                         "`output_padding` has %lld; it must be less than the stride, %lld, or the dilation, %lld",
                         (long long)padding[i], (long long)window->stride[i], (long long)window->dilation[i]);
  return true;
}

/* Crops the written elements to window->out: by ONNX's text an odd element is cut from the end for SAME_UPPER, else
 * from the beginning. Elements that are not written are at the end, as in ONNX's tests and ONNX Runtime. */
static void cut_to_output(DimTable *dims, Window *window, int i, const Dim *written, bool upper) {
  split_pad(dims, window, i, dim_max(dims, dim_sub(dims, written, window->out[i]), dim_const(dims, 0)), upper);
}

static bool keep_unpadded(Graph *graph, const Node *node, Window *window, int i, const Dim *written) {
  DimTable *dims = graph->dims;
  window->out[i] = dim_sub(dims, dim_sub(dims, written, window->pad_begin[i]), window->pad_end[i]);
  if (dim_lower(window->out[i]) >= 1) return true;
  return shape_error(node, "the pads leave an output of %s on spatial axis %d", dim_text(graph, window->out[i]), i);
}

/* One window for each input element, `stride` apart. Crops by pads, given or such that the output has its extent. */
static bool place_transposed(Graph *graph, const Node *node, Window *window) {
  DimTable *dims = graph->dims;
  AutoPad auto_pad = node_word(node, ATTR_auto_pad);
  bool same = is_same(auto_pad), automatic = auto_pad != AUTO_PAD_NOTSET;
  bool shaped = node_has(node, ATTR_output_shape);
  int64_t padding[MAX_SPATIAL], wanted[MAX_SPATIAL];
  if (!read_output_padding(node, window, padding) || !explicit_pads(graph, node, window)) return false;
  if (!shaped && !check_auto_pad(node, automatic)) return false;
  if (!read_list(node, ATTR_output_shape, window->n_spatial, 1, 1, wanted)) return false;
  for (int i = 0; i < window->n_spatial; i++) {
    const Dim *in = node->inputs[0]->shape[2 + i], *stride = dim_const(dims, window->stride[i]);
    const Dim *written = dim_add(dims, dim_mul(dims, dim_sub(dims, in, dim_const(dims, 1)), stride),
                                 dim_const(dims, reach(window, i) + padding[i]));
    window->out[i] = shaped ? dim_const(dims, wanted[i]) : dim_mul(dims, in, stride);
    if (!shaped && same && dim_lower(dim_sub(dims, written, window->out[i])) < 0)
      return shape_unsupported(node, "an output of %s on spatial axis %d is more than the %s that the windows write",
                               dim_text(graph, window->out[i]), i, dim_text(graph, written));
    if (shaped || same)
      cut_to_output(dims, window, i, written, auto_pad == AUTO_PAD_SAME_UPPER);
    else if (!keep_unpadded(graph, node, window, i, written))
      return false;
  }
  return true;
}

bool read_unpooled(Graph *graph, const Node *node, Window *window) {
  DimTable *dims = graph->dims;
  int n = node->inputs[0]->rank - 2;
  *window = (Window){.n_spatial = n, .dilation = {1, 1, 1}};
  if (!read_list(node, ATTR_kernel_shape, n, 1, 1, window->kernel) ||
      !read_list(node, ATTR_strides, n, 1, 1, window->stride) || !explicit_pads(graph, node, window))
    return false;
  for (int i = 0; i < n; i++) {
    const Dim *last = dim_sub(dims, node->inputs[0]->shape[2 + i], dim_const(dims, 1));
    const Dim *written =
        dim_add(dims, dim_mul(dims, last, dim_const(dims, window->stride[i])), dim_const(dims, window->kernel[i]));
    if (!keep_unpadded(graph, node, window, i, written)) return false;
  }
  return true;
}

/* As the knobs of kernels are bounded. */
static bool check_kernels_take(const Node *node, const Window *window) {
  enum { MOST = 65536 };
  for (int i = 0; i < window->n_spatial; i++) {
    int64_t most = max_int(max_int(window->kernel[i], window->stride[i]), window->dilation[i]);
    if (most > MOST)
      return shape_unsupported(node,
                               "spatial axis %d has a kernel, stride or dilation of %lld; at most %d is supported", i,
                               (long long)most, MOST);
  }
  return true;
}

bool read_window(Graph *graph, const Node *node, Window *window) {
  *window = (Window){.n_spatial = node->inputs[0]->rank - 2};
  int n = window->n_spatial;
  if (n > MAX_SPATIAL)
    return shape_unsupported(node, "%d-D windows are not supported, only 1-D to 3-D; found %s", n,
                             shape_text(graph, node->inputs[0]));
  bool good = is_conv(node) ? kernel_of_weights(graph, node, window)
                            : read_list(node, ATTR_kernel_shape, n, 1, 1, window->kernel);
  good &= read_list(node, ATTR_strides, n, 1, 1, window->stride);
  good &= read_list(node, ATTR_dilations, n, 1, 1, window->dilation);
  if (!good || !check_kernels_take(node, window)) return false;
  return is_transposed(node) ? place_transposed(graph, node, window) : place_windows(graph, node, window);
}
