/* SPDX-License-Identifier: MIT */
/* MaxUnpool; its indices are known at run time only. */
#include "ir/family.h"
#include "kernels/conv/convolution.h"
#include "program/build.h"
#include "support/diagnostics.h"

static void lower_unpool(Program *program, Node *node) {
  static const char *const IN[] = {"width", "height", "depth"}, *const OUT[] = {"out_w", "out_h", "out_d"};
  Graph *graph = program->graph;
  const Value *x = node->inputs[0], *y = node->outputs[0];
  const Dim *one = dim_const(graph->dims, 1);
  Window window;
  if (!read_unpooled(graph, node, &window)) bug("n%d: an unpooling that has no shape", node->id);
  KernelSpec *spec = kernel_spec(program, "unpool");
  kernel_bits(spec, "T", x->dtype);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", x, READ);
  operand_value(call, "indices", node->inputs[1], READ);
  operand_value(call, "y", y, WRITE);
  operand_dim(call, "count", value_count_dim(graph, x, 0, x->rank));
  operand_dim(call, "volumes", value_count_dim(graph, x, 0, 2));
  for (int k = 0; k < 3; k++) {
    bool own = k < window.n_spatial;
    operand_dim(call, IN[k], own ? window.out[window.n_spatial - 1 - k] : one);
    operand_dim(call, OUT[k], own ? y->shape[y->rank - 1 - k] : one);
  }
  call_touches(call, node->inputs[1]);
  call_touches(call, x);
  call_touches(call, y);
}

const KernelFamily family_unpool = {.lower = lower_unpool};
