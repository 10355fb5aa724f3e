/* SPDX-License-Identifier: MIT */
/*
 * DynamicQuantizeLinear in two calls with one barrier between: the ranges of a fixed number of parts, then of all
 * of them the scale and the zero point, which every worker finds for itself, and the numbers.
 */
#include "ir/family.h"
#include "layout/blocked.h"
#include "machine/targets.h"
#include "program/build.h"

enum { PARTS = 64, RANGE_BYTES = 2 * sizeof(float) };

static LayoutSet layouts(Graph *graph, const Node *node) {
  (void)graph, (void)node;
  return LAYOUT_SET_BLOCKED;
}

/* Channels in the last block of a tensor in blocks that does not fill it; else 0. */
static int64_t last_channels(const Graph *graph, const Node *node) {
  return is_blocked(node) ? dim_value(node->inputs[0]->shape[1]) % graph->config->target->lanes : 0;
}

/* Elements of an image before its last block. */
static const Dim *before_last_block(Graph *graph, const Node *node) {
  Blocked x = blocked_of(graph, node->inputs[0]);
  return dim_mul(graph->dims, dim_const(graph->dims, x.blocks - 1), x.plane);
}

/* A row-major tensor is one image. */
static void operands_images(Graph *graph, Call *call, const Node *node, bool writes) {
  const Value *x = node->inputs[0];
  const Dim *one = dim_const(graph->dims, 1), *count = value_count_dim(graph, x, 0, x->rank), *stride = count;
  if (is_blocked(node)) {
    Blocked blocked = blocked_of(graph, x);
    count = dim_mul(graph->dims, dim_const(graph->dims, blocked.blocks), blocked.plane);
    stride = blocked.image;
  }
  operand_dim(call, "images", is_blocked(node) ? x->shape[0] : one);
  operand_dim(call, "count", count);
  operand_dim(call, "x_image", stride);
  if (writes) operand_dim(call, "y_image", is_blocked(node) ? blocked_of(graph, node->outputs[0]).image : stride);
}

static void scratch(Graph *graph, Node *node) {
  graph_scratch(graph, node, "ranges", dim_const(graph->dims, PARTS * (int64_t)RANGE_BYTES));
}

static void lower_ranges(Program *program, const Node *node) {
  KernelSpec *spec = kernel_spec(program, "range_parts");
  int64_t last = last_channels(program->graph, node);
  kernel_knob(spec, "PARTS", PARTS);
  kernel_knob(spec, "LAST_LANES", last);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", node->inputs[0], READ);
  operand_value(call, "ranges", node->scratch, WRITE);
  operands_images(program->graph, call, node, false);
  operand_dim(call, "full", last ? before_last_block(program->graph, node) : dim_const(program->graph->dims, 0));
  call_flops_of(call, 2, node->inputs[0]);
  call_touches(call, node->inputs[0]);
}

static void lower_node(Program *program, Node *node) {
  lower_ranges(program, node);
  KernelSpec *spec = kernel_spec(program, "quantise_by_range");
  kernel_knob(spec, "PARTS", PARTS);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", node->inputs[0], READ);
  operand_value(call, "ranges", node->scratch, READ);
  operand_value(call, "y", node->outputs[0], WRITE);
  operand_value(call, "scale", node->outputs[1], WRITE);
  operand_value(call, "zero", node->outputs[2], WRITE);
  operands_images(program->graph, call, node, true);
  call_flops_of(call, 4, node->inputs[0]);
  call_touches(call, node->inputs[0]);
  call_touches(call, node->outputs[0]);
}

const KernelFamily family_dynamic_quantize = {
    .layouts = layouts, .runs_bytes = true, .runs_any_plane = true, .scratch = scratch, .lower = lower_node};
