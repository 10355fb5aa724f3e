/* SPDX-License-Identifier: MIT */
/*
 * Gather. Constant indices are checked at compile time, against the least length of the axis; those of a graph input
 * before the run; all others in the kernel.
 */
#include "ir/family.h"
#include "kernels/index/index_check.h"
#include "program/build.h"

static void gather_lower(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0], *indices = node->inputs[1], *y = node->outputs[0];
  int axis = normal_axis(node_int(node, ATTR_axis), x->rank);
  KernelSpec *spec = kernel_spec(program, "gather");
  kernel_bits(spec, "T", x->dtype);
  kernel_type(spec, "Index", indices->dtype);
  bool checked = indices_checked(program, indices, x->shape[axis]);
  kernel_knob(spec, "CHECKED", !checked);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "in", x, READ);
  operand_value(call, "indices", indices, READ);
  operand_value(call, "out", y, WRITE);
  if (checked) operand_null(call, "fault");
  operand_dim(call, "outer", value_count_dim(graph, x, 0, axis));
  operand_dim(call, "length", x->shape[axis]);
  operand_dim(call, "count", value_count_dim(graph, indices, 0, indices->rank));
  operand_dim(call, "inner", value_count_dim(graph, x, axis + 1, x->rank));
  call_cost(call, 0, 2.0 * value_optimum_bytes(y));
}

const KernelFamily family_gather = {.lower = gather_lower};
