/* SPDX-License-Identifier: MIT */
/* Convolution, transposed convolution, pooling and unpooling over any number of spatial axes: a window slides over the
 * padded input. */
#include <math.h>

#include "ir/integer_mean.h"
#include "reference/kernels.h"

/* The window along each spatial axis. Point k of the window at output o reads input o * stride - head + k * dilation.
 */
typedef struct Window {
  int rank;
  int64_t kernel[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK];
  int64_t head[MAX_RANK], tail[MAX_RANK]; /* padding before and after */
  int64_t input[MAX_RANK], output[MAX_RANK];
} Window;

/* Sets head and tail of an axis whose other fields are set. */
typedef void SetPadding(const Node *node, Window *window, int axis);

/* SAME spreads what the window reaches past the input over both sides; the odd one goes to the side it is named for. */
static void set_padding(const Node *node, Window *window, int axis) {
  AutoPad mode = node_word(node, ATTR_auto_pad);
  if (mode == AUTO_PAD_VALID) return;
  if (mode == AUTO_PAD_NOTSET) {
    window->head[axis] = node_int_at(node, ATTR_pads, axis, 0);
    window->tail[axis] = node_int_at(node, ATTR_pads, axis + window->rank, 0);
    return;
  }
  int64_t reach =
      (window->output[axis] - 1) * window->stride[axis] + (window->kernel[axis] - 1) * window->dilation[axis];
  int64_t total = reach + 1 > window->input[axis] ? reach + 1 - window->input[axis] : 0;
  window->head[axis] = mode == AUTO_PAD_SAME_UPPER ? total / 2 : total - total / 2;
  window->tail[axis] = total - window->head[axis];
}

/* Of a transposed convolution the head is what is cut off at the beginning of the output. output_shape and SAME fix how
 * many elements are kept: SAME keeps input * stride. */
static void set_crop(const Node *node, Window *window, int axis) {
  AutoPad mode = node_word(node, ATTR_auto_pad);
  bool shaped = node_has(node, ATTR_output_shape);
  if (!shaped && mode == AUTO_PAD_VALID) return;
  if (!shaped && mode == AUTO_PAD_NOTSET) {
    window->head[axis] = node_int_at(node, ATTR_pads, axis, 0);
    return;
  }
  int64_t total = (window->input[axis] - 1) * window->stride[axis] + node_int_at(node, ATTR_output_padding, axis, 0) +
                  (window->kernel[axis] - 1) * window->dilation[axis] + 1 - window->output[axis];
  if (total > 0) window->head[axis] = mode == AUTO_PAD_SAME_UPPER ? total / 2 : total - total / 2;
}

/* `kernel`: the spatial part of the weights' shape, NULL where the attribute alone tells. pad: NULL for none. */
static Window window_of(const Node *node, const Tensor *x, const Tensor *y, const int64_t *kernel, SetPadding *pad) {
  Window window = {.rank = x->rank - 2};
  for (int axis = 0; axis < window.rank; axis++) {
    window.kernel[axis] = kernel ? kernel[axis] : node_int_at(node, ATTR_kernel_shape, axis, 1);
    window.stride[axis] = node_int_at(node, ATTR_strides, axis, 1);
    window.dilation[axis] = node_int_at(node, ATTR_dilations, axis, 1);
    window.input[axis] = x->shape[2 + axis];
    window.output[axis] = y->shape[2 + axis];
    if (pad) pad(node, &window, axis);
  }
  return window;
}

/* The input position, as an offset in the channel's plane, of window point `k` and output point `o`; -1: none. */
typedef int64_t PositionOf(const Window *window, const int64_t *o, const int64_t *k);

/* The offset of the input that output `o` reads by window point `k`; -1: it is in the padding. */
static int64_t input_at(const Window *window, const int64_t *o, const int64_t *k) {
  int64_t offset = 0;
  for (int axis = 0; axis < window->rank; axis++) {
    int64_t at = o[axis] * window->stride[axis] - window->head[axis] + k[axis] * window->dilation[axis];
    if (at < 0 || at >= window->input[axis]) return -1;
    offset = offset * window->input[axis] + at;
  }
  return offset;
}

/* Transposed: the offset of the input that writes output `o`. Input i writes output i * stride - head + k * dilation.
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

static int64_t plane(const Tensor *tensor) { return tensor_extent(tensor, 2, tensor->rank); }

/* Zero points are those of all of x, and of all of w or of each kernel; NULL: 0. */
typedef struct Operands {
  const Tensor *x, *w, *bias, *x_zero, *w_zero;
} Operands;

/* A number of the tensor, or of its one for each kernel; NULL: 0. */
static double of_kernel(const Tensor *tensor, int64_t k) {
  return tensor ? tensor_get(tensor, tensor_count(tensor) == 1 ? 0 : k) : 0;
}

/* An output's element, of its sum and kernel. */
typedef double FromSum(const Tensor *const *inputs, int64_t k, double sum);

static double sum_itself(const Tensor *const *inputs, int64_t k, double sum) {
  (void)inputs, (void)k;
  return sum;
}

/* Weights are [K][C of a group][...], transposed [C][K of a group][...]. */
static const char *convolve(const Node *node, const Tensor *const *inputs, const Operands *of, Tensor *y,
                            bool transposed, FromSum *from_sum) {
  const Tensor *x = of->x, *w = of->w;
  int64_t C = x->shape[1], K = y->shape[1], groups = node_int(node, ATTR_group);
  if (groups <= 0 || C % groups || K % groups) return "groups do not divide the channels";
  int64_t group_C = C / groups, group_K = K / groups, x_plane = plane(x), w_plane = plane(w), i = 0;
  if (w->shape[1] != (transposed ? group_K : group_C)) return "groups do not divide the channels";
  Window window = window_of(node, x, y, w->shape + 2, transposed ? set_crop : set_padding);
  PositionOf *position = transposed ? source_of : input_at;
  Walk out = walk_over(y->rank, y->shape);
  for (bool on = walk_begin(&out); on; on = walk_next(&out), i++) {
    int64_t n = out.index[0], k = out.index[1], first = k / group_K * group_C, r = 0;
    int64_t kernel = transposed ? first * group_K + k % group_K : k * group_C, step = transposed ? group_K : 1;
    double sum = of_kernel(of->bias, k), x_zero = of_kernel(of->x_zero, 0), w_zero = of_kernel(of->w_zero, k);
    Walk point = walk_over(window.rank, window.kernel);
    for (bool in = walk_begin(&point); in; in = walk_next(&point), r++) {
      int64_t at = position(&window, out.index + 2, point.index);
      for (int64_t c = 0; at >= 0 && c < group_C; c++)
        sum += (tensor_get(x, (n * C + first + c) * x_plane + at) - x_zero) *
               (tensor_get(w, (kernel + c * step) * w_plane + r) - w_zero);
    }
    tensor_set(y, i, from_sum(inputs, k, sum));
  }
  return NULL;
}

static Operands float_operands(const Node *node, const Tensor *const *inputs) {
  return (Operands){.x = inputs[0], .w = inputs[1], .bias = optional_input(node, inputs, 2)};
}

const char *ref_conv(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  Operands of = float_operands(node, inputs);
  return convolve(node, inputs, &of, outputs[0], false, sum_itself);
}

const char *ref_conv_transpose(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  Operands of = float_operands(node, inputs);
  return convolve(node, inputs, &of, outputs[0], true, sum_itself);
}

/* Weight r of channel c of kernel k: over all images and places. */
static double weight_gradient(const Window *window, const Tensor *x, const Tensor *d, int64_t k, int64_t channel,
                              const int64_t *r) {
  int64_t C = x->shape[1], K = d->shape[1], d_plane = plane(d);
  double sum = 0;
  for (int64_t n = 0; n < x->shape[0]; n++) {
    Walk out = walk_over(window->rank, window->output);
    int64_t i = 0;
    for (bool on = walk_begin(&out); on; on = walk_next(&out), i++) {
      int64_t at = input_at(window, out.index, r);
      if (at < 0) continue;
      sum += tensor_get(x, (n * C + channel) * plane(x) + at) * tensor_get(d, (n * K + k) * d_plane + i);
    }
  }
  return sum;
}

const char *ref_conv_weight_gradient(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *w = inputs[1], *d = inputs[2];
  int64_t groups = node_int(node, ATTR_group), group_C = w->shape[1], i = 0;
  Window window = window_of(node, x, d, w->shape + 2, set_padding);
  Walk all = walk_over(w->rank, w->shape);
  for (bool on = walk_begin(&all); on; on = walk_next(&all)) {
    int64_t k = all.index[0], channel = k / (w->shape[0] / groups) * group_C + all.index[1];
    tensor_set(outputs[0], i++, weight_gradient(&window, x, d, k, channel, all.index + 2));
  }
  return NULL;
}

/* In f32 as ONNX Runtime has it: the product of scales is rounded, then its quotient, then the sum's product with it.
 */
static double requantised(const Tensor *const *inputs, int64_t k, double sum) {
  float product = (float)tensor_get(inputs[1], 0) * (float)of_kernel(inputs[4], k);
  float scaled = (float)sum * (product / (float)tensor_get(inputs[6], 0));
  double y = nearbyint((double)scaled) + of_kernel(inputs[7], 0);
  DType type = inputs[7]->dtype;
  return fmin(fmax(y, (double)dtype_min(type)), (double)dtype_max(type));
}

const char *ref_qlinear_conv(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  Operands of = {.x = inputs[0],
                 .w = inputs[3],
                 .bias = optional_input(node, inputs, 8),
                 .x_zero = inputs[2],
                 .w_zero = inputs[5]};
  return convolve(node, inputs, &of, outputs[0], false, requantised);
}

/* In f32: the product of scales is rounded, then the sum's product with it, then the sum with the bias. */
static double in_floats(const Tensor *const *inputs, int64_t k, double sum) {
  float scaled = (float)sum * ((float)tensor_get(inputs[2], 0) * (float)of_kernel(inputs[3], k));
  return scaled;
}

const char *ref_conv_to_float(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  Operands of = {.x = inputs[0],
                 .w = inputs[1],
                 .x_zero = optional_input(node, inputs, 4),
                 .w_zero = optional_input(node, inputs, 5)};
  const Tensor *bias = optional_input(node, inputs, 6);
  const char *why_not = convolve(node, inputs, &of, outputs[0], false, in_floats);
  int64_t kernels = outputs[0]->shape[1], pixels = plane(outputs[0]);
  for (int64_t i = 0; bias && !why_not && i < tensor_count(outputs[0]); i++)
    tensor_set(outputs[0], i, tensor_get(outputs[0], i) + tensor_get(bias, i / pixels % kernels));
  return why_not;
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

/* The value of a window at output point `o` in the channel that begins at `first`. */
typedef double WindowValue(const Node *node, const Window *window, const Tensor *x, int64_t first, const int64_t *o);

/* The sum of the points that lie in the input, and how many there are. */
typedef struct PointSum {
  double sum;
  int64_t inside;
} PointSum;

static PointSum sum_of_points(const Window *window, const Tensor *x, int64_t first, const int64_t *o) {
  PointSum all = {0, 0};
  Walk point = walk_over(window->rank, window->kernel);
  for (bool in = walk_begin(&point); in; in = walk_next(&point)) {
    int64_t at = input_at(window, o, point.index);
    if (at < 0) continue;
    all.sum += tensor_get(x, first + at);
    all.inside++;
  }
  return all;
}

/* The points that a mean is over. */
static int64_t points_counted(const Node *node, const Window *window, const int64_t *o, int64_t inside) {
  return node_int(node, ATTR_count_include_pad) ? points_with_padding(window, o) : inside;
}

static double window_mean(const Node *node, const Window *window, const Tensor *x, int64_t first, const int64_t *o) {
  PointSum all = sum_of_points(window, x, first, o);
  return all.sum / fmax(1, (double)points_counted(node, window, o, all.inside));
}

/* Of the sum of `inside` numbers, as ir/integer_mean.h says. A window of no point has the mean 0. */
static double number_of_mean(const Node *node, double sum, int64_t inside, int64_t points) {
  IntegerMean mean = integer_mean_of(node);
  DType type = node->outputs[0]->dtype;
  float whole = (float)(sum - (double)mean.x_zero * (double)inside), scaled = whole * mean.factor;
  float y = scaled / (float)(points > 0 ? points : 1) + (float)mean.before;
  return fmin(fmax(rint((double)y) + mean.behind, (double)dtype_min(type)), (double)dtype_max(type));
}

static double window_mean_of_bytes(const Node *node, const Window *window, const Tensor *x, int64_t first,
                                   const int64_t *o) {
  PointSum all = sum_of_points(window, x, first, o);
  return number_of_mean(node, all.sum, all.inside, points_counted(node, window, o, all.inside));
}

/* The p-th root of the sum of p-th powers of magnitudes. */
static double window_norm(const Node *node, const Window *window, const Tensor *x, int64_t first, const int64_t *o) {
  double p = (double)node_int(node, ATTR_p), sum = 0;
  Walk point = walk_over(window->rank, window->kernel);
  for (bool in = walk_begin(&point); in; in = walk_next(&point)) {
    int64_t at = input_at(window, o, point.index);
    if (at >= 0) sum += pow(fabs(tensor_get(x, first + at)), p);
  }
  return pow(sum, 1 / p);
}

static void pool(const Node *node, const Window *window, const Tensor *x, Tensor *y, WindowValue *value) {
  Walk out = walk_over(y->rank, y->shape);
  int64_t i = 0, x_plane = plane(x);
  for (bool on = walk_begin(&out); on; on = walk_next(&out)) {
    int64_t first = (out.index[0] * x->shape[1] + out.index[1]) * x_plane;
    tensor_set(y, i++, value(node, window, x, first, out.index + 2));
  }
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
  Tensor *indices = optional_output(node, outputs, 1);
  Window window = window_of(node, x, outputs[0], NULL, set_padding);
  Walk out = walk_over(outputs[0]->rank, outputs[0]->shape);
  int64_t i = 0, x_plane = plane(x);
  for (bool on = walk_begin(&out); on; on = walk_next(&out), i++) {
    int64_t first = (out.index[0] * x->shape[1] + out.index[1]) * x_plane;
    int64_t at = window_max(&window, x, first, out.index + 2);
    if (at < 0)
      tensor_set(outputs[0], i, -INFINITY);
    else
      copy_element(outputs[0], i, x, first + at);
    if (indices) tensor_set_int(indices, i, at < 0 ? -1 : first + plane_index(node, &window, at));
  }
  return NULL;
}

const char *ref_average_pool(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  Window window = window_of(node, inputs[0], outputs[0], NULL, set_padding);
  pool(node, &window, inputs[0], outputs[0], window_mean);
  return NULL;
}

const char *ref_qlinear_average_pool(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  Window window = window_of(node, inputs[0], outputs[0], NULL, set_padding);
  pool(node, &window, inputs[0], outputs[0], window_mean_of_bytes);
  return NULL;
}

/* x: [N, C, ...] or, with the channels last, [N, ..., C]; of either y is N times C numbers. */
const char *ref_qlinear_global_pool(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  bool last = node_int(node, ATTR_channels_last) != 0;
  int64_t channels = x->shape[last ? x->rank - 1 : 1], pixels = tensor_extent(x, last ? 1 : 2, x->rank - last);
  for (int64_t i = 0; i < tensor_count(outputs[0]); i++) {
    int64_t image = i / channels * channels * pixels, channel = i % channels;
    double sum = 0;
    for (int64_t p = 0; p < pixels; p++)
      sum += tensor_get(x, image + (last ? p * channels + channel : channel * pixels + p));
    tensor_set(outputs[0], i, number_of_mean(node, sum, pixels, pixels));
  }
  return NULL;
}

/* The norm of each window, or of the whole plane if there is no window. */
const char *ref_lp_pool(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  bool global = !op_has_attribute(node->op, ATTR_kernel_shape);
  Window window = global ? window_of(node, inputs[0], outputs[0], inputs[0]->shape + 2, NULL)
                         : window_of(node, inputs[0], outputs[0], NULL, set_padding);
  pool(node, &window, inputs[0], outputs[0], window_norm);
  return NULL;
}

/* ---- unpooling: indices count the elements of the output without output_shape ---- */

static int64_t unpooled_extent(const Node *node, const Tensor *x, int axis) {
  int spatial = x->rank - 2;
  return (x->shape[2 + axis] - 1) * node_int_at(node, ATTR_strides, axis, 1) +
         node_int_at(node, ATTR_kernel_shape, axis, 1) - node_int_at(node, ATTR_pads, axis, 0) -
         node_int_at(node, ATTR_pads, axis + spatial, 0);
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
