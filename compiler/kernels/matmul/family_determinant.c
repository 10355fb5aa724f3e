/* SPDX-License-Identifier: MIT */
/* Det: one matrix after the other, in a copy that elimination destroys. */
#include "ir/family.h"
#include "program/emitter.h"

static void scratch(Graph *graph, Node *node) {
  const Dim *m = node->inputs[0]->shape[node->inputs[0]->rank - 1];
  const Dim *bytes = dim_mul(graph->dims, dim_mul(graph->dims, m, m), dim_const(graph->dims, (int64_t)sizeof(double)));
  graph_scratch(graph, node, "matrix", bytes);
}

static void emit_determinant(Emitter *emitter, Node *node) {
  Graph *graph = emitter_graph(emitter);
  const Value *x = node->inputs[0];
  const Dim *m = x->shape[x->rank - 1], *count = value_count_dim(graph, x, 0, x->rank - 2);
  KernelSpec *spec = kernel_spec(emitter, "determinant");
  kernel_type(spec, "T", x->dtype);
  KernelCall *call = kernel_call(emitter, node, spec);
  call_value(call, "x", x);
  call_value(call, "y", node->outputs[0]);
  call_argument(call, "scratch", "(double *)(void *)t%d", node->scratch->id);
  call_dim(call, "count", count);
  call_dim(call, "m", m);
  double order = (double)dim_optimum(m), matrices = (double)dim_optimum(count);
  call_cost(call, matrices * order * order * order * 2 / 3, matrices * order * order * (double)dtype_size(x->dtype));
}

const KernelFamily family_determinant = {.name = "determinant", .scratch = scratch, .emit = emit_determinant};
