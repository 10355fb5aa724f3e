/* SPDX-License-Identifier: MIT */
/* BatchNormalization whose statistics are not constant, or that has no neighbour to fold into. */
#include "emit/elementwise.h"
#include "emit/family.h"

static void call_float(KernelCall *call, const char *parameter, Arena *arena, float value) {
  Text text = text_new(arena);
  text_float(&text, value);
  call_argument(call, parameter, "%s", text.data);
}

static void emit_batch_norm(Emitter *emitter, Node *node) {
  static const char *const STATISTIC[] = {"x", "scale", "bias", "mean", "variance"};
  Graph *graph = emitter_graph(emitter);
  const Value *x = node->inputs[0];
  int last = x->rank > 1 ? 2 : x->rank;
  const Dim *plane = value_count_dim(graph, x, last, x->rank);
  KernelSpec *spec = kernel_spec(emitter, "batch_norm");
  kernel_knob(spec, "FLAT", dim_upper(plane) == 1);
  if (node->n_epilogue) kernel_hook(spec, "epilogue", elementwise_epilogue_body(emitter_arena(emitter), node));
  KernelCall *call = kernel_call(emitter, node, spec);
  for (int k = 0; k < 5; k++) call_value(call, STATISTIC[k], node->inputs[k]);
  call_value(call, "y", node->outputs[0]);
  call_float(call, "epsilon", emitter_arena(emitter), (float)node_float(node, "epsilon"));
  call_dim(call, "n", value_count_dim(graph, x, 0, 1));
  call_dim(call, "channels", value_count_dim(graph, x, 1, last));
  call_dim(call, "plane", plane);
  double count = (double)dim_optimum(value_count_dim(graph, x, 0, x->rank));
  call_cost(call, 2 * count, 8 * count);
}

static bool takes_epilogue(const Node *host, const Node *epilogue) {
  (void)host;
  return elementwise_is_epilogue(epilogue);
}

const KernelFamily family_batch_norm = {
    .name = "batch_norm",
    .takes_epilogue = takes_epilogue,
    .emit = emit_batch_norm,
};
