/* SPDX-License-Identifier: MIT */
/*
 * A convolution whose window is its whole input multiplies each weight once a sample, as a dense layer does: where its
 * weights are to be small (--precision), it becomes one. Such are the 1x1 convolutions behind a mean over all pixels,
 * and dense layers that a model has as convolutions of 7x7 windows.
 *
 *   Conv(x [N, C, H, W], w [K, C, H, W])   Reshape(Gemm(Reshape(x, [N, C H W]), w as [K, C H W]'), [N, K, 1, 1])
 */
#include "passes/convolutions_as_products.h"

#include "ir/precision.h"
#include "passes.h"
#include "passes/narrow_weights.h"
#include "shapes/build.h"
#include "shapes/shape.h"

static bool window_is_input(Graph *graph, const Node *node) {
  Window window;
  const Value *x = node->inputs[0];
  if (!is_op(node, OP_Conv) || node_int(node, ATTR_group) != 1) return false;
  if (!read_window(graph, node, &window) || !is_unpadded(&window)) return false;
  for (int i = 0; i < window.n_spatial; i++)
    if (!dim_equals(x->shape[2 + i], window.kernel[i]) || !dim_equals(window.out[i], 1)) return false;
  return true;
}

bool convolution_can_be_product(Graph *graph, const Node *node) {
  return window_is_input(graph, node) && can_be_narrow(node->inputs[1]);
}

/* Is it to have weights of fewer bits? */
static bool is_to_be_small(Graph *graph, const Node *node) {
  const PrecisionRule *rule = precision_rule_of(graph->arena, &graph->config->precision, node->name, NULL);
  return rule && precision_weights(rule->precision) && convolution_can_be_product(graph, node);
}

/* The same numbers: what is known of them stays true, as a row has those of an output channel. */
static Value *as_matrix(Graph *graph, const Value *weights) {
  int64_t rows = dim_value(weights->shape[0]), shape[] = {rows, value_count(weights) / rows};
  Value *matrix = graph_constant(graph, weights->name, weights->dtype, 2, shape, weights->data);
  matrix->where = weights->where;
  matrix->narrow = weights->narrow;
  matrix->block = weights->block;
  return matrix;
}

/* Activations that alone read `*result`, the convolution's, take the rows instead, so that they become part of the
 * product. Returns what they make of these; `*result` is then the last one's. */
static Value *activated(const Builder *builder, const UseList *uses, Value *rows, Value **result) {
  Node *node = uses->single[(*result)->id];
  while (node && node->op->layout == LAYOUT_OBLIVIOUS && node->n_inputs == 1 && node->n_outputs == 1) {
    *result = node->outputs[0];
    node->inputs[0] = rows;
    rows = graph_value(builder->graph, (*result)->name, node->where);
    graph_set_output(node, 0, rows);
    if (!infer_node(builder->graph, node)) bug("an activation does not fit where it fitted before");
    node = uses->single[(*result)->id];
  }
  return rows;
}

static void multiply(const Builder *builder, const UseList *uses, const Node *node) {
  Value *w = as_matrix(builder->graph, node->inputs[1]), *x = node->inputs[0], *y = node->outputs[0];
  Value *rows = build_reshape(builder, x, 2, (const Dim *const[]){x->shape[0], w->shape[1]});
  Value *inputs[] = {rows, w, node_input(node, 2)};
  const Attribute turned = attribute_int(ATTR_transB, 1);
  Node *product = build_op(builder, OP_Gemm, inputs[2] ? 3 : 2, inputs, 1, 1, &turned);
  Value *made = activated(builder, uses, product->outputs[0], &y),
        *result = build_reshape(builder, made, y->rank, y->shape);
  graph_set_output(result->producer, 0, y);
}

/* needs: infer_shapes, simplify (constant weights); before choose_precision. keeps: types and shapes of what remains;
 * results but for the order of sums. */
void convolutions_as_products(Graph *graph) {
  UseList uses = graph_uses(graph);
  bool any = false;
  for (int n = 0, n_nodes = graph->n_nodes; n < n_nodes; n++) {
    Node *node = graph->nodes[n];
    if (!is_to_be_small(graph, node)) continue;
    multiply(&(Builder){graph, node->name, node->where}, &uses, node);
    graph->nodes[n] = NULL;
    any = true;
  }
  if (!any) return;
  graph_close_gaps(graph);
  if (!sort_nodes(graph)) bug("products for convolutions read each other");
  graph_remove_dead(graph);
}
