/* SPDX-License-Identifier: MIT */
/*
 * QLinearAveragePool and QLinearGlobalAveragePool, on bytes: sums in i32 and one change of scale (ir/integer_mean.h).
 * Those that integer_mean_has_kernel() leaves out have become formulas.
 */
#include "ir/family.h"
#include "kernels/pool/pool.h"
#include "knobs.h"
#include "layout/blocked.h"
#include "machine/targets.h"
#include "program/build.h"
#include "shapes/shape.h"

static bool is_global(const Node *node) { return is_op(node, OP_QLinearGlobalAveragePool); }

static bool has_channels_last(const Node *node) { return node_int(node, ATTR_channels_last) != 0; }

static LayoutSet layouts(Graph *graph, const Node *node) {
  if (is_global(node)) return has_channels_last(node) ? 0 : LAYOUT_SET_BLOCKED;
  Window window = pool_window(graph, node);
  return pool_planes_fit(graph, node, &window) ? LAYOUT_SET_BLOCKED : 0;
}

/* ---- of windows ---- */

/* Sums of columns are in f32. */
static bool sums_rows_first(const Node *node, const ConvAxis *w) {
  return pool_rows_first(w) && 255 * integer_mean_points(node) <= 0x1p24;
}

static void lower_windows(Program *program, Node *node) {
  Graph *graph = program->graph;
  IntegerMean mean = integer_mean_of(node);
  Window window = pool_window(graph, node);
  int kind = node_int(node, ATTR_count_include_pad) ? POOL_MEAN_WITH_PADDING : POOL_MEAN;
  ConvAxis axes[3];
  pool_axes(graph, node, &window, axes);
  Call *call = NULL;
  if (is_blocked(node)) {
    call = kernel_call(program, node, pool_int8_spec(program, node, axes, kind));
    call_pool_int8(graph, call, node, axes, &mean);
  } else {
    KernelSpec *spec = kernel_spec(program, "mean_pool_int8");
    kernel_window(spec, 3, &axes[0], &axes[1], &axes[2]);
    kernel_type(spec, "T", node->inputs[0]->dtype);
    kernel_knob(spec, "KIND", kind);
    kernel_knob(spec, "ROWS_FIRST", sums_rows_first(node, &axes[0]));
    call = kernel_call(program, node, spec);
    call_plain_pool(graph, call, node, axes);
    operand_pads(call, axes);
    operands_mean(call, &mean);
  }
  pool_cost(call, node, &window);
}

/* ---- of all pixels ---- */

/* Where the kernel finds the channels' pixels. */
typedef struct Pixels {
  const Dim *images, *channels, *count; /* count: pixels of a channel */
  const Dim *x_image, *x_vector, *x_pixel, *y_image;
} Pixels;

static Pixels pixels_of_blocks(Graph *graph, const Node *node) {
  const Value *y = node->outputs[0];
  Blocked x = blocked_of(graph, node->inputs[0]);
  const Dim *channels = dim_const(graph->dims, x.channels);
  return (Pixels){.images = node->inputs[0]->shape[0],
                  .channels = channels,
                  .count = dim_mul(graph->dims, x.height, x.width),
                  .x_image = x.image,
                  .x_vector = x.plane,
                  .x_pixel = dim_const(graph->dims, x.block),
                  .y_image = blocked_of(graph, y).image};
}

static Pixels pixels_before_channels(Graph *graph, const Node *node) {
  const Value *x = node->inputs[0];
  const Dim *channels = x->shape[x->rank - 1];
  return (Pixels){.images = x->shape[0],
                  .channels = channels,
                  .count = value_count_dim(graph, x, 1, x->rank - 1),
                  .x_image = value_count_dim(graph, x, 1, x->rank),
                  .x_vector = dim_const(graph->dims, graph->config->target->lanes),
                  .x_pixel = channels,
                  .y_image = channels};
}

/* All images are one of as many channels. */
static Pixels pixels_of_rows(Graph *graph, const Node *node) {
  const Value *x = node->inputs[0];
  const Dim *one = dim_const(graph->dims, 1), *lanes = dim_const(graph->dims, graph->config->target->lanes);
  const Dim *pixels = value_count_dim(graph, x, 2, x->rank);
  return (Pixels){.images = one,
                  .channels = value_count_dim(graph, x, 0, 2),
                  .count = pixels,
                  .x_image = one,
                  .x_vector = dim_mul(graph->dims, lanes, pixels),
                  .x_pixel = one,
                  .y_image = one};
}

static void lower_global(Program *program, Node *node) {
  Graph *graph = program->graph;
  IntegerMean mean = integer_mean_of(node);
  bool by_rows = !is_blocked(node) && !has_channels_last(node);
  Pixels pixels = is_blocked(node) ? pixels_of_blocks(graph, node)
                  : by_rows        ? pixels_of_rows(graph, node)
                                   : pixels_before_channels(graph, node);
  KernelSpec *spec = kernel_spec(program, "global_mean_int8");
  kernel_knob(spec, "BY_PIXELS", by_rows);
  kernel_knob(spec, "SIGNED", node->inputs[0]->dtype == RNNCC_I8);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", node->inputs[0], READ);
  operand_value(call, "y", node->outputs[0], WRITE);
  operand_dim(call, "n", pixels.images);
  operand_extent(call, "channels", pixels.channels);
  operand_extent(call, "pixels", pixels.count);
  operand_extent(call, "x_image", pixels.x_image);
  operand_extent(call, "x_vector", pixels.x_vector);
  operand_extent(call, "x_pixel", pixels.x_pixel);
  operand_extent(call, "y_image", pixels.y_image);
  operands_mean(call, &mean);
  call_flops_of(call, 1, node->inputs[0]);
  call_touches(call, node->inputs[0]);
  call_touches(call, node->outputs[0]);
}

static void lower_node(Program *program, Node *node) {
  if (is_global(node))
    lower_global(program, node);
  else
    lower_windows(program, node);
}

const KernelFamily family_mean_int8 = {
    .layouts = layouts, .takes_constant_data = true, .runs_bytes = true, .runs_any_plane = true, .lower = lower_node};
