/* SPDX-License-Identifier: MIT */
/* ExpectExtent: a check, and a copy of the elements that the run has. */
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

const KernelFamily family_expect = {.lower = expect_lower};
