/* SPDX-License-Identifier: MIT */
#include "kernels/conv_transposed/pixel_shuffle.h"

#include "ir/family.h"
#include "kernels/move/pixel_blocks.h"
#include "layout/blocked.h"
#include "layout/layout_costs.h"
#include "machine/targets.h"
#include "program/build.h"
#include "shapes/build.h"

const OpInfo op_pixel_shuffle = {
    .kind = OP_PixelShuffle,
    .name = "PixelShuffle",
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .attributes = (const AttributeSpec[]){{.id = ATTR_strides, .kind = ATTRIBUTE_INTS, .required = true}, {0}},
    .layout = LAYOUT_TOLERANT,
    .family = &family_pixel_shuffle,
};

void pixel_shuffle(Graph *graph, Value *x, Value *y, const int64_t *strides) {
  Node *node = graph_node(graph, &op_pixel_shuffle, y->name, 1, 1);
  node->where = y->where;
  node->inputs[0] = x;
  set_attribute(graph, node, attribute_ints(graph->arena, ATTR_strides, y->rank - 2, strides));
  graph_set_output(node, 0, y);
}

bool pixel_shuffle_runs_blocked(const Graph *graph, const Value *y) {
  return dim_value(y->shape[1]) % graph->config->target->lanes == 0;
}

static LayoutSet layouts(Graph *graph, const Node *node) {
  return pixel_shuffle_runs_blocked(graph, node->outputs[0]) ? LAYOUT_SET_BLOCKED : 0;
}

double pixel_shuffle_seconds(const Graph *graph, const Value *x, bool blocked) {
  double bytes = 2 * value_optimum_bytes(x);
  return blocked ? moving_seconds(graph, bytes) : copying_seconds(graph, bytes);
}

static double seconds(Graph *graph, const Node *node, NodeLayout layout) {
  return pixel_shuffle_seconds(graph, node->inputs[0], layout.writes != LAYOUT_ROW_MAJOR);
}

/* A sequence is a plane of one row. */
static int64_t rows_of(const Node *node) {
  return node->outputs[0]->rank == 4 ? node_attribute(node, ATTR_strides)->ints[0] : 1;
}

static int64_t columns_of(const Node *node) {
  const Attribute *strides = node_attribute(node, ATTR_strides);
  return strides->ints[strides->count - 1];
}

static void lower_row_major(Program *program, const Node *node) {
  const Value *x = node->inputs[0], *y = node->outputs[0];
  PixelBlocks blocks = {x, y, rows_of(node), columns_of(node), true};
  StridedBox box = pixel_box(program->graph, &blocks, true);
  lower_strided_copy(program, node, &box, x, y);
}

static void lower_blocked(Program *program, const Node *node) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0], *y = node->outputs[0];
  Blocked in = blocked_of(graph, x), out = blocked_of(graph, y);
  KernelSpec *spec = kernel_spec(program, "pixel_shuffle");
  kernel_knob(spec, "UP_H", rows_of(node));
  kernel_knob(spec, "UP_W", columns_of(node));
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", x, READ);
  operand_value(call, "y", y, WRITE);
  operand_dim(call, "n", x->shape[0]);
  operand_extent(call, "x_image", in.image);
  operand_extent(call, "y_image", out.image);
  operand_integer(call, "blocks", out.blocks);
  operand_dim(call, "height", in.height);
  operand_dim(call, "width", in.width);
  call_touches(call, x);
  call_touches(call, y);
}

static void lower_node(Program *program, Node *node) {
  if (is_blocked(node))
    lower_blocked(program, node);
  else
    lower_row_major(program, node);
}

const KernelFamily family_pixel_shuffle = {
    .layouts = layouts, .takes_constant_data = true, .runs_any_plane = true, .seconds = seconds, .lower = lower_node};
