/* SPDX-License-Identifier: MIT */
/* LpNormalization, seen as x[outer, n, inner]. */
#include "ir/family.h"
#include "program/build.h"

static void lower_lp_norm(Program *program, Node *node) {
  const Value *x = node->inputs[0];
  int axis = normal_axis(node_int(node, ATTR_axis), x->rank);
  KernelSpec *spec = kernel_spec(program, "lp_norm");
  kernel_knob(spec, "P", node_int(node, ATTR_p));
  kernel_knob(spec, "LAST_AXIS", dim_upper(value_count_dim(program->graph, x, axis + 1, x->rank)) == 1);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", x, READ);
  operand_value(call, "y", node->outputs[0], WRITE);
  operands_around(call, x, axis, "n");
  call_flops_of(call, 3, x);
  call_bytes_of(call, 8, x);
}

const KernelFamily family_lp_norm = {.lower = lower_lp_norm};
