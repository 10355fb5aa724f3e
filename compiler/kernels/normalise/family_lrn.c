/* SPDX-License-Identifier: MIT */
/* LRN: normalises each element by the squares of its pixel in neighbouring channels. */
#include "ir/family.h"
#include "knobs.h"
#include "program/build.h"
#include "support/numbers.h"

static int power_of(double beta) {
  if (beta == 0.75) return POWER_THREE_QUARTERS;
  if (beta == 0.5) return POWER_HALF;
  return beta == 1 ? POWER_ONE : POWER_ANY;
}

static void lower_lrn(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0];
  int64_t size = node_int(node, ATTR_size), reach = max_int(dim_upper(x->shape[1]) - 1, 0);
  double beta = node_float(node, ATTR_beta);
  KernelSpec *spec = kernel_spec(program, "lrn");
  kernel_knob(spec, "BEFORE", min_int((size - 1) / 2, reach));
  kernel_knob(spec, "AFTER", min_int(size / 2, reach));
  kernel_knob(spec, "POWER", power_of(beta));
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", x, READ);
  operand_value(call, "y", node->outputs[0], WRITE);
  operand_float(call, "alpha", node_float(node, ATTR_alpha) / (double)size);
  operand_float(call, "beta", beta);
  operand_float(call, "bias", node_float(node, ATTR_bias));
  operand_dim(call, "n", x->shape[0]);
  operand_dim(call, "channels", x->shape[1]);
  operand_dim(call, "plane", value_count_dim(graph, x, 2, x->rank));
  call_flops_of(call, 2 * (double)size, x);
  call_bytes_of(call, 8, x);
}

const KernelFamily family_lrn = {.lower = lower_lrn};
