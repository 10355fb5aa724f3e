/* SPDX-License-Identifier: MIT */
/* NonMaxSuppression: workers take images and classes, then all write what was taken. */
#include "ir/family.h"
#include "program/emitter.h"
#include "shapes/shape.h"

enum { HEAD = 16, PAD = 16 }; /* of templates/nms_select.c */

/* Numbers of a row: a head; eight bytes a candidate, and for one more; a place and five floats a box that may be taken.
 * An even number, so that candidates are aligned in all rows. */
static const Dim *row_numbers(Graph *graph, const Node *node) {
  DimTable *dims = graph->dims;
  const Dim *candidates = dim_mul(dims, dim_const(dims, 2), node->inputs[0]->shape[1]);
  const Dim *taken = dim_mul(dims, dim_const(dims, 6), nms_keep(graph, node));
  return dim_add(dims, dim_const(dims, HEAD + 2 + PAD), dim_add(dims, candidates, taken));
}

static void nms_scratch(Graph *graph, Node *node) {
  DimTable *dims = graph->dims;
  const Dim *rows = value_count_dim(graph, node->inputs[1], 0, 2);
  graph_scratch(graph, node, "rows", dim_mul(dims, dim_mul(dims, rows, row_numbers(graph, node)), dim_const(dims, 4)));
}

static const Value *optional(const Node *node, int input) {
  return input < node->n_inputs ? node->inputs[input] : NULL;
}

static void set_sizes(KernelCall *call, Graph *graph, const Node *node) {
  call_dim(call, "row_numbers", row_numbers(graph, node));
  call_dim(call, "batch", node->inputs[1]->shape[0]);
  call_dim(call, "classes", node->inputs[1]->shape[1]);
  call_dim(call, "n", node->inputs[1]->shape[2]);
}

static void emit_nms(Emitter *emitter, Node *node) {
  Graph *graph = emitter_graph(emitter);
  const Value *y = node->outputs[0];
  int rows = node->scratch->id;
  double scores = (double)dim_optimum(value_count_dim(graph, node->inputs[1], 0, 3));
  KernelSpec *spec = kernel_spec(emitter, "nms_select");
  kernel_knob(spec, "CENTRED", node_int(node, "center_point_box") != 0);
  KernelCall *call = kernel_call(emitter, node, spec);
  call_value(call, "boxes", node->inputs[0]);
  call_value(call, "scores", node->inputs[1]);
  call_value(call, "limit", optional(node, 2));
  call_value(call, "overlap", optional(node, 3));
  call_value(call, "least", optional(node, 4));
  call_argument(call, "rows", "(int32_t *)(void *)t%d", rows);
  call_dim(call, "keep", nms_keep(graph, node));
  set_sizes(call, graph, node);
  call_cost(call, 10 * scores, 4 * scores);
  KernelCall *collect = kernel_call(emitter, node, kernel_spec(emitter, "nms_collect"));
  call_argument(collect, "rows", "(const int32_t *)(const void *)t%d", rows);
  call_value(collect, "y", y);
  call_measured(collect, "measured", y->shape[0]);
  set_sizes(collect, graph, node);
  call_cost(collect, 0, 24.0 * (double)dim_optimum(y->shape[0]));
}

const KernelFamily family_nms = {.name = "nms", .scratch = nms_scratch, .emit = emit_nms};
