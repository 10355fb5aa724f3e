/* SPDX-License-Identifier: MIT */
/* NonMaxSuppression: workers process images and classes, then all write the selected boxes. */
#include "ir/family.h"
#include "knobs.h"
#include "program/build.h"
#include "shapes/shape.h"

/* Numbers of a row: a head; eight bytes for each candidate and one more; a place and five floats for each box that may
 * be selected. Even, so that candidates are aligned in all rows. */
static const Dim *row_numbers(Graph *graph, const Node *node) {
  DimTable *dims = graph->dims;
  const Dim *candidates = dim_mul(dims, dim_const(dims, 2), node->inputs[0]->shape[1]);
  const Dim *taken = dim_mul(dims, dim_const(dims, 6), nms_keep(graph, node));
  return dim_add(dims, dim_const(dims, NMS_HEAD + 2 + NMS_PAD), dim_add(dims, candidates, taken));
}

static void nms_scratch(Graph *graph, Node *node) {
  DimTable *dims = graph->dims;
  const Dim *rows = value_count_dim(graph, node->inputs[1], 0, 2);
  graph_scratch(graph, node, "rows", dim_mul(dims, dim_mul(dims, rows, row_numbers(graph, node)), dim_const(dims, 4)));
}

static void set_sizes(Call *call, Graph *graph, const Node *node) {
  operand_dim(call, "row_numbers", row_numbers(graph, node));
  operand_dim(call, "batch", node->inputs[1]->shape[0]);
  operand_dim(call, "classes", node->inputs[1]->shape[1]);
  operand_dim(call, "n", node->inputs[1]->shape[2]);
}

static void lower_nms(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *y = node->outputs[0];
  KernelSpec *spec = kernel_spec(program, "nms_select");
  kernel_knob(spec, "CENTRED", node_int(node, ATTR_center_point_box) != 0);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "boxes", node->inputs[0], READ);
  operand_value(call, "scores", node->inputs[1], READ);
  operand_value(call, "limit", node_input(node, 2), READ);
  operand_value(call, "overlap", node_input(node, 3), READ);
  operand_value(call, "least", node_input(node, 4), READ);
  operand_value(call, "rows", node->scratch, READ_WRITE);
  operand_dim(call, "keep", nms_keep(graph, node));
  set_sizes(call, graph, node);
  call_flops_of(call, 10, node->inputs[1]);
  call_bytes_of(call, 4, node->inputs[1]);
  Call *collect = kernel_call(program, node, kernel_spec(program, "nms_collect"));
  operand_value(collect, "rows", node->scratch, READ);
  operand_value(collect, "y", y, WRITE);
  operand_found(collect, "measured", y->shape[0]);
  set_sizes(collect, graph, node);
  call_bytes(collect, 24, EXTENTS(y->shape[0]));
}

const KernelFamily family_nms = {.scratch = nms_scratch, .lower = lower_nms};
