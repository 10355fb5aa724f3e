/* SPDX-License-Identifier: MIT */
/*
 * DynamicQuantizeLinear in two calls with one barrier between: the ranges of a fixed number of parts, then of all
 * of them the scale and the zero point, which every worker finds for itself, and the numbers.
 */
#include "ir/family.h"
#include "program/build.h"

enum { PARTS = 64, RANGE_BYTES = 2 * sizeof(float) };

static void scratch(Graph *graph, Node *node) {
  graph_scratch(graph, node, "ranges", dim_const(graph->dims, PARTS * (int64_t)RANGE_BYTES));
}

static void lower_ranges(Program *program, const Node *node) {
  KernelSpec *spec = kernel_spec(program, "range_parts");
  kernel_knob(spec, "PARTS", PARTS);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", node->inputs[0], READ);
  operand_value(call, "ranges", node->scratch, WRITE);
  operand_dim(call, "count", value_count_dim(program->graph, node->inputs[0], 0, node->inputs[0]->rank));
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
  operand_dim(call, "count", value_count_dim(program->graph, node->inputs[0], 0, node->inputs[0]->rank));
  call_flops_of(call, 4, node->inputs[0]);
  call_touches(call, node->inputs[0]);
  call_touches(call, node->outputs[0]);
}

const KernelFamily family_dynamic_quantize = {.scratch = scratch, .lower = lower_node};
