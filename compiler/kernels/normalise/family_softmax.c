/* SPDX-License-Identifier: MIT */
/* Softmax and LogSoftmax, seen as x[outer, n, inner]. */
#include "ir/family.h"
#include "program/build.h"

static void lower_softmax(Program *program, Node *node) {
  const Value *x = node->inputs[0];
  int axis = x->rank ? normal_axis(node_int(node, ATTR_axis), x->rank) : 0;
  KernelSpec *spec = kernel_spec(program, "softmax");
  kernel_knob(spec, "LOGARITHM", is_op(node, OP_LogSoftmax));
  kernel_knob(spec, "LAST_AXIS", dim_upper(value_count_dim(program->graph, x, axis + 1, x->rank)) == 1);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", x, READ);
  operand_value(call, "y", node->outputs[0], WRITE);
  operands_around(call, x, axis, "n");
  call_flops_of(call, 4, x);
  call_bytes_of(call, 8, x);
}

const KernelFamily family_softmax = {.lower = lower_softmax};
