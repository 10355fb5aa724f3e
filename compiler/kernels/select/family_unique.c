/* SPDX-License-Identifier: MIT */
/* Unique: of slices along the axis, or of all elements. */
#include "ir/family.h"
#include "program/build.h"

static void unique_sizes(Graph *graph, const Node *node, const Dim *sizes[3]) {
  const Value *x = node->inputs[0];
  bool has_axis = node_has(node, ATTR_axis);
  int axis = has_axis ? normal_axis(node_int(node, ATTR_axis), x->rank) : 0, end = has_axis ? axis + 1 : x->rank;
  sizes[0] = value_count_dim(graph, x, 0, axis);
  sizes[1] = value_count_dim(graph, x, axis, end);
  sizes[2] = value_count_dim(graph, x, end, x->rank);
}

static void unique_scratch(Graph *graph, Node *node) {
  const Dim *sizes[3];
  unique_sizes(graph, node, sizes);
  graph_scratch(graph, node, "lists", dim_mul(graph->dims, sizes[1], dim_const(graph->dims, 4 * (int)sizeof(int64_t))));
}

static void lower_unique(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *y = node->outputs[0];
  const Dim *sizes[3];
  unique_sizes(graph, node, sizes);
  KernelSpec *spec = kernel_spec(program, "unique");
  kernel_type(spec, "T", y->dtype);
  kernel_knob(spec, "SORTED", node_int(node, ATTR_sorted) != 0);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", node->inputs[0], READ);
  operand_value(call, "y", y, WRITE);
  operand_value(call, "indices", node_output(node, 1), WRITE);
  operand_value(call, "inverse", node_output(node, 2), WRITE);
  operand_value(call, "counts", node_output(node, 3), WRITE);
  operand_found(call, "measured",
                y->shape[node_has(node, ATTR_axis) ? normal_axis(node_int(node, ATTR_axis), y->rank) : 0]);
  operand_value(call, "lists", node->scratch, READ_WRITE);
  operand_dim(call, "outer", sizes[0]);
  operand_dim(call, "n", sizes[1]);
  operand_dim(call, "inner", sizes[2]);
  call_bytes_of(call, 2 * (double)dtype_size(node->inputs[0]->dtype), node->inputs[0]);
}

const KernelFamily family_unique = {.scratch = unique_scratch, .lower = lower_unique};
