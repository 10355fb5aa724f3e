/* SPDX-License-Identifier: MIT */
/* Softmax and LogSoftmax, seen as x[outer, n, inner]. */
#include "ir/family.h"
#include "program/build.h"

static void lower_softmax(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0];
  int axis = x->rank ? normal_axis(node_int(node, ATTR_axis), x->rank) : 0, end = x->rank ? axis + 1 : 0;
  const Dim *inner = value_count_dim(graph, x, end, x->rank);
  KernelSpec *spec = kernel_spec(program, "softmax");
  kernel_knob(spec, "LOGARITHM", is_op(node, OP_LogSoftmax));
  kernel_knob(spec, "LAST_AXIS", dim_upper(inner) == 1);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", x, READ);
  operand_value(call, "y", node->outputs[0], WRITE);
  operand_dim(call, "outer", value_count_dim(graph, x, 0, axis));
  operand_dim(call, "n", value_count_dim(graph, x, axis, end));
  operand_dim(call, "inner", inner);
  call_flops_of(call, 4, x);
  call_bytes_of(call, 8, x);
}

const KernelFamily family_softmax = {.lower = lower_softmax};
