/* SPDX-License-Identifier: MIT */
#include "kernels/conv/convolution.h"

#include "kernels/conv/requantise.h"
#include "kernels/elementwise/elementwise.h"
#include "layout/blocked.h"
#include "layout/layout.h"
#include "program/build.h"
#include "support/diagnostics.h"

const ConvAlgorithm *const convolution_algorithms[] = {
#define ALGORITHM(name, knobs) &convolution_##name,
#include "kernels/conv/algorithms.def"
    NULL};

const ScheduleKind *const convolution_kinds[] = {
#define ALGORITHM(name, knobs) &convolution_##name.kind,
#include "kernels/conv/algorithms.def"
    NULL};

#define KNOB(algorithm, name) {#name, 0, MAX_KNOB_VALUE, NULL},
#define ALGORITHM(name, knobs) const ScheduleKnob name##_knobs[MAX_SCHEDULE_KNOBS + 1] = {knobs};
#include "kernels/conv/algorithms.def"

ConvAxis convolution_axis(Graph *graph, const Node *node, const Window *window, int from_end) {
  const Dim *one = dim_const(graph->dims, 1), *zero = dim_const(graph->dims, 0);
  int i = window->n_spatial - 1 - from_end;
  if (i < 0) return (ConvAxis){1, 1, 1, one, one, zero, zero};
  return (ConvAxis){.kernel = window->kernel[i],
                    .stride = window->stride[i],
                    .dilation = window->dilation[i],
                    .in = node->inputs[0]->shape[2 + i],
                    .out = window->out[i],
                    .pad_begin = window->pad_begin[i],
                    .pad_end = window->pad_end[i]};
}

bool axis_is_pointwise(const ConvAxis *axis) {
  return axis->kernel == 1 && axis->stride == 1 && dim_equals(axis->pad_begin, 0) && dim_equals(axis->pad_end, 0);
}

bool axis_is_known(const ConvAxis *axis) {
  return dim_is_const(axis->in) && dim_is_const(axis->out) && dim_is_const(axis->pad_begin);
}

bool axis_is_padded(const Graph *graph, const ConvAxis *axis) {
  const Dim *zero = dim_const(graph->dims, 0);
  return dim_at_most(graph->dims, zero, axis->pad_begin) && dim_at_most(graph->dims, zero, axis->pad_end);
}

/* The first step of the epilogue adds the residual, see takes_epilogue of family_conv. It is the first input that the
 * epilogue appended, which may be in another layout than the step's own. */
static const Value *residual_of(const Node *node) {
  if (is_integer_conv(node) && !writes_floats(node)) return requantise_residual(node);
  return epilogue_begins_with_sum(node) ? node->inputs[node->op->max_inputs] : NULL;
}

Convolution convolution_tensors(Graph *graph, const Node *node) {
  Window window;
  if (!read_window(graph, node, &window)) bug("n%d: a convolution that has no shape", node->id);
  return (Convolution){.x = node->inputs[0],
                       .y = node->outputs[0],
                       .weights = node->inputs[conv_weights_input(node)],
                       .bias = node_input(node, conv_bias_input(node)),
                       .integer = is_integer_conv(node),
                       .to_floats = writes_floats(node),
                       .groups = node_int(node, ATTR_group),
                       .d = convolution_axis(graph, node, &window, 2),
                       .h = convolution_axis(graph, node, &window, 1),
                       .w = convolution_axis(graph, node, &window, 0)};
}

Convolution convolution_of(Graph *graph, const Node *node, NodeLayout layout) {
  Convolution conv = convolution_tensors(graph, node);
  conv.channels = dim_value(conv.weights->shape[1]);
  conv.kernels = dim_value(conv.weights->shape[0]) / conv.groups;
  conv.residual = residual_of(node);
  conv.x_block = layout_block(graph, conv.x, layout.reads);
  conv.y_block = layout_block(graph, conv.y, layout.writes);
  return conv;
}

void convolution_rows(DimTable *dims, const Convolution *conv, ConvAxis *h, ConvAxis *w) {
  const Dim *one = dim_const(dims, 1), *zero = dim_const(dims, 0);
  *h = conv->h;
  *w = conv->w;
  if (!axis_is_pointwise(h) || !axis_is_pointwise(w)) return;
  w->in = w->out = dim_mul(dims, h->in, w->in);
  *h = (ConvAxis){1, 1, 1, one, one, zero, zero};
}

void kernel_window(KernelSpec *spec, int n, const ConvAxis *w, const ConvAxis *h, const ConvAxis *d) {
  static const char *const WINDOW[] = {"WINDOW_W", "WINDOW_H", "WINDOW_D"};
  static const char *const STRIDE[] = {"STRIDE_W", "STRIDE_H", "STRIDE_D"};
  static const char *const DILATION[] = {"DILATION_W", "DILATION_H", "DILATION_D"};
  const ConvAxis *const axes[] = {w, h, d};
  for (int k = 0; k < n; k++) {
    kernel_knob(spec, WINDOW[k], axes[k]->kernel);
    kernel_knob(spec, STRIDE[k], axes[k]->stride);
    kernel_knob(spec, DILATION[k], axes[k]->dilation);
  }
}

void kernel_extent(KernelSpec *spec, const char *knob, const Dim *extent) {
  if (dim_is_const(extent))
    kernel_knob(spec, knob, dim_value(extent));
  else
    kernel_knob_at_run_time(spec, knob);
}

void operand_plane_extent(Call *call, const char *parameter, const Dim *extent) {
  if (!dim_is_const(extent)) operand_dim(call, parameter, extent);
}

void kernel_plane(KernelSpec *spec, const ConvAxis *h, const ConvAxis *w) {
  kernel_extent(spec, "IN_H", h->in);
  kernel_extent(spec, "IN_W", w->in);
  kernel_extent(spec, "OUT_H", h->out);
  kernel_extent(spec, "OUT_W", w->out);
  kernel_extent(spec, "PAD_TOP", h->pad_begin);
  kernel_extent(spec, "PAD_LEFT", w->pad_begin);
}

void operands_plane(Call *call, const ConvAxis *h, const ConvAxis *w) {
  operand_plane_extent(call, "in_h", h->in);
  operand_plane_extent(call, "in_w", w->in);
  operand_plane_extent(call, "out_h", h->out);
  operand_plane_extent(call, "out_w", w->out);
  operand_plane_extent(call, "pad_top", h->pad_begin);
  operand_plane_extent(call, "pad_left", w->pad_begin);
}

void operands_images(Call *call, const Graph *graph, const Convolution *conv) {
  const Dim *none = dim_const(graph->dims, 0);
  operand_dim(call, "n", conv->x->shape[0]);
  operand_extent(call, "x_image", blocked_of(graph, conv->x).image);
  operand_extent(call, "residual_image", conv->residual ? blocked_of(graph, conv->residual).image : none);
  operand_extent(call, "y_image", blocked_of(graph, conv->y).image);
}

void operands_blocked(Call *call, const Graph *graph, const Convolution *conv, const Value *w, const Value *bias) {
  operand_value(call, "x", conv->x, READ);
  operand_value(call, "w", w, READ);
  operand_value(call, "bias", bias, READ);
  operand_value(call, "residual", conv->residual, READ);
  operand_value(call, "y", conv->y, WRITE);
  operands_images(call, graph, conv);
}

static void add_extent(Text *text, const Dim *extent) {
  text_add(text, dim_is_const(extent) ? "%lld" : "upto%lld", (long long)dim_upper(extent));
}

void plane_text(Text *text, const Dim *h, const Dim *w) {
  add_extent(text, h);
  text_add(text, "x");
  add_extent(text, w);
}

void layer_text(Text *text, const Convolution *conv, const Dim *h, const Dim *w) {
  text_add(text, "_%lldx%llds%lldc%lldo%lldg%lld_", (long long)conv->h.kernel, (long long)conv->w.kernel,
           (long long)conv->w.stride, (long long)conv->channels, (long long)conv->kernels, (long long)conv->groups);
  plane_text(text, h, w);
}

static int64_t window_points(const Convolution *conv) {
  return conv->channels * conv->d.kernel * conv->h.kernel * conv->w.kernel;
}

double convolution_macs(const Convolution *conv) {
  double outputs = (double)dim_optimum(conv->y->shape[0]) * (double)dim_optimum(conv->d.out) *
                   (double)dim_optimum(conv->h.out) * (double)dim_optimum(conv->w.out) *
                   (double)(conv->groups * conv->kernels);
  return outputs * (double)window_points(conv);
}

void convolution_flops(Call *call, const Convolution *conv, double part) {
  const Dim *n = conv->y->shape[0];
  double each = 2 * part * (double)(conv->groups * conv->kernels * window_points(conv));
  call_flops(call, each, EXTENTS(n, conv->d.out, conv->h.out, conv->w.out));
  call_products(call, RNNCC_F32);
}

void convolution_bytes(Call *call, const Convolution *conv, double size) {
  call_bytes_of(call, size, conv->x);
  call_bytes_of(call, (double)dtype_size(conv->y->dtype), conv->y);
  call_bytes(call, size * (double)(conv->groups * conv->kernels * window_points(conv)), EXTENTS(NULL));
}

/* How many of the `count` numbers first, first + step, ... are in [0, end). */
static int64_t count_inside(int64_t first, int64_t step, int64_t count, int64_t end) {
  int64_t before = first < 0 ? (-first + step - 1) / step : 0, until = first < end ? (end - 1 - first) / step + 1 : 0;
  if (until > count) until = count;
  return until > before ? until - before : 0;
}

double convolution_taps_inside(const ConvAxis *axis) {
  int64_t in = dim_optimum(axis->in), out = dim_optimum(axis->out), pad = dim_optimum(axis->pad_begin);
  double inside = 0;
  for (int64_t tap = 0; tap < axis->kernel; tap++)
    inside += (double)count_inside(tap * axis->dilation - pad, axis->stride, out, in);
  return inside / (double)out;
}

const char *convolution_text(Arena *arena, const ConvCandidate *candidate) {
  return schedule_print(arena, &candidate->algorithm->kind, &candidate->knobs);
}
