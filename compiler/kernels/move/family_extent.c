/* SPDX-License-Identifier: MIT */
/* Shape of a tensor whose extents only run time knows: the expressions over the named dimensions are stored. */
#include "ir/family.h"
#include "program/emitter.h"

static void extent_emit(Emitter *emitter, Node *node) {
  const Value *y = node->outputs[0];
  int n = (int)value_count(y);
  if (!y->elements) bug("n%d: a Shape whose elements are unknown", node->id);
  KernelCall *call = kernel_call(emitter, node, kernel_spec(emitter, "extent"));
  call_value(call, "out", y);
  call_argument(call, "n", "%d", n);
  call_dims(call, "values", n, (const Dim *const *)y->elements);
  call_cost(call, 0, 8.0 * n);
}

const KernelFamily family_extent = {.name = "extent", .emit = extent_emit};
