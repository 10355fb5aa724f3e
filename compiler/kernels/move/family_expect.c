/* SPDX-License-Identifier: MIT */
/* Checks in the run, and copies: ExpectExtent of the elements that the run has, ExpectBetween of all. */
#include "ir/family.h"
#include "kernels/move/strided_copy.h"

static void expect_lower(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0], *y = node->outputs[0];
  int axis = normal_axis(node_int(node, ATTR_axis), x->rank);
  const Dim *in_stride[MAX_RANK], *out_stride[MAX_RANK];
  Call *check = kernel_call(program, node, kernel_spec(program, "expect_extent"));
  operand_dim(check, "found", x->shape[axis]);
  operand_dim(check, "expected", y->shape[axis]);
  dense_strides(graph, x, in_stride);
  dense_strides(graph, y, out_stride);
  StridedBox box = strided_box(graph, y->rank, y->shape, in_stride, out_stride);
  box.shape[axis] = dim_min(graph->dims, x->shape[axis], y->shape[axis]);
  lower_strided_copy(program, node, &box, x, y);
}

static void expect_between_lower(Program *program, Node *node) {
  const Value *x = node->inputs[0];
  KernelSpec *spec = kernel_spec(program, "expect_between");
  kernel_type(spec, "T", x->dtype);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", x, READ);
  operand_value(call, "y", node->outputs[0], WRITE);
  operand_dim(call, "n", value_count_dim(program->graph, x, 0, x->rank));
  operand_integer(call, "least", node_int(node, ATTR_least));
  operand_integer(call, "most", node_int(node, ATTR_most));
  call_bytes_of(call, 2 * (double)dtype_size(x->dtype), x);
}

const KernelFamily family_expect = {.lower = expect_lower};
const KernelFamily family_expect_between = {.lower = expect_between_lower};
