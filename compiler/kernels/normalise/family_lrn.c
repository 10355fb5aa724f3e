/* SPDX-License-Identifier: MIT */
/* LRN: each element by the squares of its pixel in the channels around. */
#include "ir/family.h"
#include "program/emitter.h"

/* As POWER of templates/lrn.c. */
static int power_of(double beta) {
  if (beta == 0.75) return 1;
  if (beta == 0.5) return 2;
  return beta == 1 ? 3 : 0;
}

static void emit_lrn(Emitter *emitter, Node *node) {
  Graph *graph = emitter_graph(emitter);
  const Value *x = node->inputs[0];
  int64_t size = node_int(node, "size");
  double beta = node_float(node, "beta");
  KernelSpec *spec = kernel_spec(emitter, "lrn");
  kernel_knob(spec, "BEFORE", (size - 1) / 2);
  kernel_knob(spec, "AFTER", size / 2);
  kernel_knob(spec, "POWER", power_of(beta));
  KernelCall *call = kernel_call(emitter, node, spec);
  call_value(call, "x", x);
  call_value(call, "y", node->outputs[0]);
  call_float(call, "alpha", node_float(node, "alpha") / (double)size);
  call_float(call, "beta", beta);
  call_float(call, "bias", node_float(node, "bias"));
  call_dim(call, "n", x->shape[0]);
  call_dim(call, "channels", x->shape[1]);
  call_dim(call, "plane", value_count_dim(graph, x, 2, x->rank));
  double count = (double)dim_optimum(value_count_dim(graph, x, 0, x->rank));
  call_cost(call, 2 * count * (double)size, 8 * count);
}

const KernelFamily family_lrn = {.name = "lrn", .emit = emit_lrn};
