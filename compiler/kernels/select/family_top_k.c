/* SPDX-License-Identifier: MIT */
/* TopK: a heap a column, see templates/top_k.c. */
#include "ir/family.h"
#include "program/emitter.h"

static void top_k_emit(Emitter *emitter, Node *node) {
  Graph *graph = emitter_graph(emitter);
  const Value *x = node->inputs[0], *values = node->outputs[0];
  int axis = normal_axis(node_int(node, "axis"), x->rank);
  KernelSpec *spec = kernel_spec(emitter, "top_k");
  kernel_type(spec, "T", x->dtype);
  kernel_knob(spec, "LARGEST", node_int(node, "largest") != 0);
  KernelCall *call = kernel_call(emitter, node, spec);
  call_value(call, "x", x);
  call_value(call, "values", values);
  call_value(call, "positions", node->outputs[1]);
  call_dim(call, "outer", value_count_dim(graph, x, 0, axis));
  call_dim(call, "n", x->shape[axis]);
  call_dim(call, "inner", value_count_dim(graph, x, axis + 1, x->rank));
  call_dim(call, "k", values->shape[axis]);
  double count = (double)dim_optimum(value_count_dim(graph, x, 0, x->rank));
  call_cost(call, count, count * (double)dtype_size(x->dtype));
}

const KernelFamily family_top_k = {.name = "top_k", .emit = top_k_emit};
