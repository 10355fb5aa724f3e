/* SPDX-License-Identifier: MIT */
/* TopK: one heap for each column, see templates/top_k.c. */
#include "ir/family.h"
#include "program/build.h"

static void top_k_lower(Program *program, Node *node) {
  const Value *x = node->inputs[0], *values = node->outputs[0];
  int axis = normal_axis(node_int(node, ATTR_axis), x->rank);
  KernelSpec *spec = kernel_spec(program, "top_k");
  kernel_type(spec, "T", x->dtype);
  kernel_knob(spec, "LARGEST", node_int(node, ATTR_largest) != 0);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", x, READ);
  operand_value(call, "values", values, WRITE);
  operand_value(call, "positions", node->outputs[1], WRITE);
  operands_around(call, x, axis, "n");
  operand_dim(call, "k", values->shape[axis]);
  call_flops_of(call, 1, x);
  call_touches(call, x);
}

const KernelFamily family_top_k = {.lower = top_k_lower};
