/* SPDX-License-Identifier: MIT */
/* Convolution, transposed convolution, pooling and unpooling over any number of spatial axes: a window slides over the
 * padded input. */
#include <math.h>

#include "reference/kernels.h"

/* The window along each spatial axis. Point k of the window at output o reads input o * stride - head + k * dilation.
 */
typedef struct Window {
  int rank;
  int64_t kernel[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK];
  int64_t head[MAX_RANK], tail[MAX_RANK]; /* padding before and after */
  int64_t input[MAX_RANK], output[MAX_RANK];
} Window;

static int64_t listed(const Node *node, AttributeName name, int index, int64_t otherwise) {
  const Attribute *attribute = node_attribute(node, name);
  return attribute && (size_t)index < attribute->count ? attribute->ints[index] : otherwise;
}

/* SAME spreads what the window reaches past the input over both sides; the odd one goes to the side it is named for. */
static void set_padding(const Node *node, Window *window, int axis) {
  AutoPad mode = node_word(node, ATTR_auto_pad);
  if (mode == AUTO_PAD_VALID) return;
  if (mode == AUTO_PAD_NOTSET) {
    window->head[axis] = listed(node, ATTR_pads, axis, 0);
    window->tail[axis] = listed(node, ATTR_pads, axis + window->rank, 0);
    return;
  }
  int64_t reach =
      (window->output[axis] - 1) * window->stride[axis] + (window->kernel[axis] - 1) * window->dilation[axis];
  int64_t total = reach + 1 > window->input[axis] ? reach + 1 - window->input[axis] : 0;
  window->head[axis] = mode == AUTO_PAD_SAME_UPPER ? total / 2 : total - total / 2;
  window->tail[axis] = total - window->head[axis];
}

/* `kernel`: the spatial part of the weights' shape, NULL where the attribute alone tells. */
static Window window_of(const Node *node, const Tensor *x, const Tensor *y, const int64_t *kernel) {
  Window window = {.rank = x->rank - 2};
  for (int axis = 0; axis < window.rank; axis++) {
    window.kernel[axis] = kernel ? kernel[axis] : listed(node, ATTR_kernel_shape, axis, 1);
    window.stride[axis] = listed(node, ATTR_strides, axis, 1);
    window.dilation[axis] = listed(node, ATTR_dilations, axis, 1);
    window.input[axis] = x->shape[2 + axis];
    window.output[axis] = y->shape[2 + axis];
    set_padding(node, &window, axis);
  }
  return window;
}

/* The input position, as an offset in the channel's plane, that window point `k` of output point `o` reads; -1 in the
 * padding. */
static int64_t input_at(const Window *window, const int64_t *o, const int64_t *k) {
  int64_t offset = 0;
  for (int axis = 0; axis < window->rank; axis++) {
    int64_t at = o[axis] * window->stride[axis] - window->head[axis] + k[axis] * window->dilation[axis];
    if (at < 0 || at >= window->input[axis]) return -1;
    offset = offset * window->input[axis] + at;
  }
  return offset;
}

static int64_t plane(const Tensor *tensor) {
  int64_t count = 1;
  for (int axis = 2; axis < tensor->rank; axis++) count *= tensor->shape[axis];
  return count;
}

const char *ref_conv(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *w = inputs[1], *bias = node->n_inputs > 2 ? inputs[2] : NULL;
  Tensor *y = outputs[0];
  int64_t C = x->shape[1], K = w->shape[0], groups = node_int(node, ATTR_group);
  if (groups <= 0 || C != groups * w->shape[1] || K % groups) return "groups do not divide the channels";
  Window window = window_of(node, x, y, w->shape + 2);
  int64_t x_plane = plane(x), w_plane = plane(w), per_group = w->shape[1];
  Walk out = walk_over(y->rank, y->shape);
  int64_t i = 0;
  for (bool on = walk_begin(&out); on; on = walk_next(&out), i++) {
    int64_t n = out.index[0], k = out.index[1], first_channel = k / (K / groups) * per_group;
    double sum = bias ? tensor_get(bias, k) : 0;
    Walk point = walk_over(window.rank, window.kernel);
    int64_t r = 0;
    for (bool in = walk_begin(&point); in; in = walk_next(&point), r++) {
      int64_t at = input_at(&window, out.index + 2, point.index);
      for (int64_t c = 0; at >= 0 && c < per_group; c++)
        sum += tensor_get(x, (n * C + first_channel + c) * x_plane + at) *
               tensor_get(w, (k * per_group + c) * w_plane + r);
    }
    tensor_set(y, i, sum);
  }
  return NULL;
}

/* ---- transposed: input i writes output i * stride - head + k * dilation for window point k ---- */

/* Elements cut off at the beginning of the output. output_shape and SAME fix how many elements are kept: SAME keeps
 * input * stride. */
static int64_t transposed_head(const Node *node, const Window *window, int axis) {
  AutoPad mode = node_word(node, ATTR_auto_pad);
  bool shaped = node_has(node, ATTR_output_shape);
  if (!shaped && mode == AUTO_PAD_VALID) return 0;
  if (!shaped && mode == AUTO_PAD_NOTSET) return listed(node, ATTR_pads, axis, 0);
  int64_t total = (window->input[axis] - 1) * window->stride[axis] + listed(node, ATTR_output_padding, axis, 0) +
                  (window->kernel[axis] - 1) * window->dilation[axis] + 1 - window->output[axis];
  if (total < 0) return 0;
  return mode == AUTO_PAD_SAME_UPPER ? total / 2 : total - total / 2;
}

static Window transposed_window(const Node *node, const Tensor *x, const Tensor *w, const Tensor *y) {
  Window window = {.rank = x->rank - 2};
  for (int axis = 0; axis < window.rank; axis++) {
    window.kernel[axis] = w->shape[2 + axis];
    window.stride[axis] = listed(node, ATTR_strides, axis, 1);
    window.dilation[axis] = listed(node, ATTR_dilations, axis, 1);
    window.input[axis] = x->shape[2 + axis];
    window.output[axis] = y->shape[2 + axis];
    window.head[axis] = transposed_head(node, &window, axis);
  }
  return window;
}

/* The input position, as an offset in the channel's plane, that writes output point `o` by window point `k`; -1: none.
 */
static int64_t source_of(const Window *window, const int64_t *o, const int64_t *k) {
  int64_t offset = 0;
  for (int axis = 0; axis < window->rank; axis++) {
    int64_t scaled = o[axis] + window->head[axis] - k[axis] * window->dilation[axis];
    if (scaled < 0 || scaled % window->stride[axis] || scaled / window->stride[axis] >= window->input[axis]) return -1;
    offset = offset * window->input[axis] + scaled / window->stride[axis];
  }
  return offset;
}

const char *ref_conv_transpose(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *w = inputs[1], *bias = node->n_inputs > 2 ? inputs[2] : NULL;
  Tensor *y = outputs[0];
  int64_t C = x->shape[1], groups = node_int(node, ATTR_group), kernels = w->shape[1];
  if (groups <= 0 || C % groups) return "groups do not divide the channels";
  Window window = transposed_window(node, x, w, y);
  int64_t x_plane = plane(x), w_plane = plane(w), per_group = C / groups;
  Walk out = walk_over(y->rank, y->shape);
  int64_t i = 0;
  for (bool on = walk_begin(&out); on; on = walk_next(&out), i++) {
    int64_t n = out.index[0], k = out.index[1], first_channel = k / kernels * per_group;
    double sum = bias ? tensor_get(bias, k) : 0;
    Walk point = walk_over(window.rank, window.kernel);
    int64_t r = 0;
    for (bool in = walk_begin(&point); in; in = walk_next(&point), r++) {
      int64_t at = source_of(&window, out.index + 2, point.index);
      for (int64_t c = first_channel; at >= 0 && c < first_channel + per_group; c++)
        sum += tensor_get(x, (n * C + c) * x_plane + at) * tensor_get(w, (c * kernels + k % kernels) * w_plane + r);
    }
    tensor_set(y, i, sum);
  }
  return NULL;
}

/* ---- pooling ---- */

/* Where the largest element of the window stands in the channel's plane: the first of equal ones, or of NaNs, which are
 * larger than all (ONNX Runtime lets it depend on NaN's place). -1: the window is empty. */
static int64_t window_max(const Window *window, const Tensor *x, int64_t first, const int64_t *o) {
  int64_t best = -1;
  Walk point = walk_over(window->rank, window->kernel);
  for (bool in = walk_begin(&point); in; in = walk_next(&point)) {
    int64_t at = input_at(window, o, point.index);
    if (at < 0) continue;
    double value = tensor_get(x, first + at), most = best < 0 ? -INFINITY : tensor_get(x, first + best);
    if (best < 0 || value > most || (isnan(value) && !isnan(most))) best = at;
  }
  return best;
}

/* Window points that lie in the input or its padding: with ceil_mode the last window may reach past both, and what is
 * there never counts. */
static int64_t points_with_padding(const Window *window, const int64_t *o) {
  int64_t count = 1;
  for (int axis = 0; axis < window->rank; axis++) {
    int64_t begin = o[axis] * window->stride[axis] - window->head[axis];
    int64_t room = window->input[axis] + window->tail[axis] - begin;
    int64_t points = (room + window->dilation[axis] - 1) / window->dilation[axis];
    count *= points < window->kernel[axis] ? points : window->kernel[axis];
  }
  return count;
}

static double window_mean(const Window *window, const Tensor *x, int64_t first, const int64_t *o, bool with_padding) {
  double sum = 0;
  int64_t count = 0;
  Walk point = walk_over(window->rank, window->kernel);
  for (bool in = walk_begin(&point); in; in = walk_next(&point)) {
    int64_t at = input_at(window, o, point.index);
    if (at < 0) continue;
    sum += tensor_get(x, first + at);
    count++;
  }
  if (with_padding) count = points_with_padding(window, o);
  return sum / (double)count;
}

/* The place in the plane as MaxPool counts it: with storage_order the first axis runs fastest. */
static int64_t plane_index(const Node *node, const Window *window, int64_t at) {
  if (!node_int(node, ATTR_storage_order)) return at;
  int64_t index[MAX_RANK], turned = 0;
  for (int axis = window->rank - 1; axis >= 0; axis--) {
    index[axis] = at % window->input[axis];
    at /= window->input[axis];
  }
  for (int axis = window->rank - 1; axis >= 0; axis--) turned = turned * window->input[axis] + index[axis];
  return turned;
}

const char *ref_max_pool(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  Tensor *indices = node->n_outputs > 1 ? outputs[1] : NULL;
  Window window = window_of(node, x, outputs[0], NULL);
  Walk out = walk_over(outputs[0]->rank, outputs[0]->shape);
  int64_t i = 0, x_plane = plane(x);
  for (bool on = walk_begin(&out); on; on = walk_next(&out), i++) {
    int64_t first = (out.index[0] * x->shape[1] + out.index[1]) * x_plane;
    int64_t at = window_max(&window, x, first, out.index + 2);
    if (at < 0)
      tensor_set(outputs[0], i, -INFINITY);
    else
      copy_element(outputs[0], i, x, first + at);
    if (indices) tensor_set_int(indices, i, first + plane_index(node, &window, at));
  }
  return NULL;
}

const char *ref_average_pool(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  Window window = window_of(node, x, outputs[0], NULL);
  bool with_padding = node_int(node, ATTR_count_include_pad);
  Walk out = walk_over(outputs[0]->rank, outputs[0]->shape);
  int64_t i = 0, x_plane = plane(x);
  for (bool on = walk_begin(&out); on; on = walk_next(&out)) {
    int64_t first = (out.index[0] * x->shape[1] + out.index[1]) * x_plane;
    tensor_set(outputs[0], i++, window_mean(&window, x, first, out.index + 2, with_padding));
  }
  return NULL;
}

/* The p-th root of the sum of p-th powers of magnitudes; of the whole plane where there is no window. */
const char *ref_lp_pool(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  Tensor *y = outputs[0];
  double p = (double)node_int(node, ATTR_p);
  bool global = !op_has_attribute(node->op, ATTR_kernel_shape);
  Window window = {.rank = x->rank - 2};
  for (int axis = 0; axis < window.rank; axis++) {
    window.kernel[axis] = window.input[axis] = x->shape[2 + axis];
    window.stride[axis] = window.dilation[axis] = window.output[axis] = 1;
  }
  if (!global) window = window_of(node, x, y, NULL);
  Walk out = walk_over(y->rank, y->shape);
  int64_t i = 0, x_plane = plane(x);
  for (bool on = walk_begin(&out); on; on = walk_next(&out)) {
    int64_t first = (out.index[0] * x->shape[1] + out.index[1]) * x_plane;
    double sum = 0;
    Walk point = walk_over(window.rank, window.kernel);
    for (bool in = walk_begin(&point); in; in = walk_next(&point)) {
      int64_t at = input_at(&window, out.index + 2, point.index);
      if (at >= 0) sum += pow(fabs(tensor_get(x, first + at)), p);
    }
    tensor_set(y, i++, pow(sum, 1 / p));
  }
  return NULL;
}

/* ---- unpooling: indices count the elements of the output without output_shape ---- */

static int64_t unpooled_extent(const Node *node, const Tensor *x, int axis) {
  int spatial = x->rank - 2;
  return (x->shape[2 + axis] - 1) * listed(node, ATTR_strides, axis, 1) + listed(node, ATTR_kernel_shape, axis, 1) -
         listed(node, ATTR_pads, axis, 0) - listed(node, ATTR_pads, axis + spatial, 0);
}

const char *ref_max_unpool(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *indices = inputs[1];
  Tensor *y = outputs[0];
  int64_t extent[MAX_RANK] = {x->shape[0], x->shape[1]}, total = x->shape[0] * x->shape[1];
  for (int axis = 2; axis < x->rank; axis++) {
    extent[axis] = unpooled_extent(node, x, axis - 2);
    total *= extent[axis];
  }
  for (int64_t i = 0; i < tensor_count(x); i++) {
    int64_t from = tensor_get_int(indices, i), to = 0, stride = 1;
    if (from < 0 || from >= total) return "an index is out of range";
    for (int axis = x->rank - 1; axis >= 0; axis--) {
      to += from % extent[axis] * stride;
      from /= extent[axis];
      stride *= y->shape[axis];
    }
    copy_element(y, to, x, i);
  }
  return NULL;
}
