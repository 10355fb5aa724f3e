/* SPDX-License-Identifier: MIT */
/* Det: elimination in a copy, one matrix after the other. */
#include "ir/family.h"
#include "program/build.h"

static void scratch(Graph *graph, Node *node) {
  const Dim *m = node->inputs[0]->shape[node->inputs[0]->rank - 1];
  const Dim *bytes = dim_mul(graph->dims, dim_mul(graph->dims, m, m), dim_const(graph->dims, (int64_t)sizeof(double)));
  graph_scratch(graph, node, "matrix", bytes);
}

static void lower_determinant(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0];
  const Dim *m = x->shape[x->rank - 1], *count = value_count_dim(graph, x, 0, x->rank - 2);
  KernelSpec *spec = kernel_spec(program, "determinant");
  kernel_type(spec, "T", x->dtype);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", x, READ);
  operand_value(call, "y", node->outputs[0], WRITE);
  operand_value(call, "scratch", node->scratch, READ_WRITE);
  operand_dim(call, "count", count);
  operand_dim(call, "m", m);
  call_flops(call, 2.0 / 3, EXTENTS(count, m, m, m));
  call_touches(call, x);
}

const KernelFamily family_determinant = {.scratch = scratch, .lower = lower_determinant};
