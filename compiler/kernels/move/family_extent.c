/* SPDX-License-Identifier: MIT */
/* Shape of a tensor whose extents are known at run time: stores the dim expressions. */
#include "ir/family.h"
#include "program/build.h"

static void extent_lower(Program *program, Node *node) {
  const Value *y = node->outputs[0];
  int n = (int)value_count(y);
  if (!y->elements) bug("n%d: a Shape whose elements are unknown", node->id);
  Call *call = kernel_call(program, node, kernel_spec(program, "extent"));
  operand_value(call, "out", y, WRITE);
  operand_integer(call, "n", n);
  operand_dim_array(call, "values", n, (const Dim *const *)y->elements);
  call_touches(call, y);
}

const KernelFamily family_extent = {.lower = extent_lower};
