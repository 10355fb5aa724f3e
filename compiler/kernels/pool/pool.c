/* SPDX-License-Identifier: MIT */
#include "kernels/pool/pool.h"

#include "knobs.h"
#include "layout/blocked.h"
#include "program/build.h"
#include "shapes/shape.h"

Window pool_window(Graph *graph, const Node *node) {
  Window window;
  if (!read_window(graph, node, &window)) bug("n%d: a pooling that has no shape", node->id);
  return window;
}

void pool_axes(Graph *graph, const Node *node, const Window *window, ConvAxis axes[3]) {
  for (int k = 0; k < 3; k++) axes[k] = convolution_axis(graph, node, window, k);
}

bool pool_planes_fit(Graph *graph, const Node *node, const Window *window) {
  for (int i = 0; i < window->n_spatial; i++) {
    ConvAxis axis = convolution_axis(graph, node, window, i);
    if (!axis_is_padded(graph, &axis) || dim_equals(axis.out, 0)) return false;
  }
  return true;
}

enum { MAX_SPAN = 4096 };

bool pool_rows_first(const ConvAxis *w) {
  return (POOL_COLUMNS - 1) * w->stride + (w->kernel - 1) * w->dilation <= MAX_SPAN;
}

void pool_cost(Call *call, const Node *node, const Window *window) {
  const Value *x = node->inputs[0], *y = node->outputs[0];
  double points = 1;
  for (int i = 0; i < window->n_spatial; i++) points *= (double)window->kernel[i];
  call_flops_of(call, points, y);
  call_touches(call, x);
  call_touches(call, y);
}

void call_blocked_pool(const Graph *graph, Call *call, const Node *node, const ConvAxis axes[3]) {
  Blocked x = blocked_of(graph, node->inputs[0]), y = blocked_of(graph, node->outputs[0]);
  operand_value(call, "x", node->inputs[0], READ);
  operand_value(call, "y", node->outputs[0], WRITE);
  operand_dim(call, "n", node->inputs[0]->shape[0]);
  operand_integer(call, "blocks", x.blocks);
  operand_extent(call, "x_image", x.image);
  operand_extent(call, "y_image", y.image);
  operands_plane(call, &axes[1], &axes[0]);
}

void call_plain_pool(Graph *graph, Call *call, const Node *node, const ConvAxis axes[3]) {
  const Value *x = node->inputs[0];
  operand_value(call, "x", x, READ);
  operand_value(call, "y", node->outputs[0], WRITE);
  operand_dim(call, "volumes", dim_mul(graph->dims, x->shape[0], x->shape[1]));
  operand_dim(call, "depth", axes[2].in);
  operand_dim(call, "height", axes[1].in);
  operand_dim(call, "width", axes[0].in);
  operand_dim(call, "out_d", axes[2].out);
  operand_dim(call, "out_h", axes[1].out);
  operand_dim(call, "out_w", axes[0].out);
}

void operand_pads(Call *call, const ConvAxis axes[3]) {
  const Dim *pads[] = {axes[2].pad_begin, axes[1].pad_begin, axes[0].pad_begin,
                       axes[2].pad_end,   axes[1].pad_end,   axes[0].pad_end};
  operand_dim_array(call, "pads", 6, pads);
}

KernelSpec *pool_int8_spec(Program *program, const Node *node, const ConvAxis axes[3], int kind) {
  KernelSpec *spec = kernel_spec(program, "pool_int8");
  kernel_window(spec, 2, &axes[0], &axes[1], NULL);
  kernel_plane(spec, &axes[1], &axes[0]);
  kernel_extent(spec, "PAD_BOTTOM", axes[1].pad_end);
  kernel_extent(spec, "PAD_RIGHT", axes[0].pad_end);
  kernel_knob(spec, "KIND", kind);
  kernel_knob(spec, "SIGNED", node->inputs[0]->dtype == RNNCC_I8);
  return spec;
}

void operands_mean(Call *call, const IntegerMean *mean) {
  operand_integer(call, "x_zero", mean->x_zero);
  operand_float(call, "factor", (double)mean->factor);
  operand_integer(call, "before", mean->before);
  operand_integer(call, "behind", mean->behind);
}

void call_pool_int8(const Graph *graph, Call *call, const Node *node, const ConvAxis axes[3], const IntegerMean *mean) {
  static const IntegerMean none = {.factor = 1};
  call_blocked_pool(graph, call, node, axes);
  operand_plane_extent(call, "pad_bottom", axes[1].pad_end);
  operand_plane_extent(call, "pad_right", axes[0].pad_end);
  operands_mean(call, mean ? mean : &none);
}
