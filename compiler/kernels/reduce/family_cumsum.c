/* SPDX-License-Identifier: MIT */
/* CumSum and CumProd, seen as x[outer, n, inner]. */
#include "ir/family.h"
#include "program/build.h"
#include "shapes/shape.h"

static void lower_cumsum(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0];
  int axis = cumsum_axis(graph, node);
  bool floating = x->dtype == RNNCC_F32 || x->dtype == RNNCC_F64;
  KernelSpec *spec = kernel_spec(program, "cumsum");
  if (floating)
    kernel_type(spec, "T", x->dtype);
  else
    kernel_bits(spec, "T", x->dtype);
  kernel_knob(spec, "EXCLUSIVE", node_int(node, ATTR_exclusive) != 0);
  kernel_knob(spec, "REVERSE", node_int(node, ATTR_reverse) != 0);
  kernel_knob(spec, "PRODUCT", is_op(node, OP_CumProd));
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", x, READ);
  operand_value(call, "y", node->outputs[0], WRITE);
  operands_around(call, x, axis, "n");
  call_flops_of(call, 1, x);
  call_bytes_of(call, 2 * (double)dtype_size(x->dtype), x);
}

const KernelFamily family_cumsum = {.lower = lower_cumsum};
