/* SPDX-License-Identifier: MIT */
/* CrossEntropy of scores, seen as x[outer, n, inner], and the gradient of these: a kernel each. */
#include "ir/family.h"
#include "program/build.h"

/* The kernel, with what both have: the scores and the targets. */
static Call *call_of(Program *program, const Node *node, KernelSpec *spec) {
  const Value *x = node->inputs[0];
  const Dim *inner = value_count_dim(program->graph, x, 2, x->rank);
  const Attribute *ignored = node_attribute(node, ATTR_ignore_index);
  kernel_knob(spec, "LAST_AXIS", dim_upper(inner) == 1);
  kernel_knob(spec, "IGNORES", ignored != NULL);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", x, READ);
  operand_value(call, "targets", node->inputs[1], READ);
  operand_dim(call, "outer", x->shape[0]);
  operand_dim(call, "n", x->shape[1]);
  operand_dim(call, "inner", inner);
  operand_integer(call, "ignored", ignored ? ignored->i : 0);
  call_flops_of(call, 4, x);
  return call;
}

static void lower_losses(Program *program, const Node *node) {
  Call *call = call_of(program, node, kernel_spec(program, "cross_entropy"));
  operand_value(call, "losses", node->outputs[0], WRITE);
  operand_value(call, "maxima", node_output(node, 1), WRITE);
  operand_value(call, "sums", node_output(node, 2), WRITE);
  call_bytes_of(call, 4, node->inputs[0]);
}

static void lower_gradient(Program *program, const Node *node) {
  Call *call = call_of(program, node, kernel_spec(program, "cross_entropy_gradient"));
  operand_value(call, "maxima", node->inputs[2], READ);
  operand_value(call, "sums", node->inputs[3], READ);
  operand_value(call, "d", node->inputs[4], READ);
  operand_value(call, "dx", node->outputs[0], WRITE);
  call_bytes_of(call, 8, node->inputs[0]);
}

static void lower_node(Program *program, Node *node) {
  if (is_op(node, OP_CrossEntropy))
    lower_losses(program, node);
  else
    lower_gradient(program, node);
}

const KernelFamily family_cross_entropy = {.lower = lower_node};
