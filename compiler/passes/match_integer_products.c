/* SPDX-License-Identifier: MIT */
/*
 * MatMulInteger -> Cast to f32 -> Mul by a scale -> Add of a bias, as quantisers write a product whose input is
 * quantised in each run, becomes MatMulIntegerToFloat: one kernel, whose sums in i32 are not in memory.
 */
#include "ir/op.h"
#include "passes.h"
#include "shapes/build.h"
#include "shapes/shape.h"

typedef struct Match {
  Graph *graph;
  UseList uses;
} Match;

/* The producer of a value that no other node reads, if it is of that operator; NULL: none. */
static const Node *only_from(const Match *match, const Value *value, OpKind op) {
  bool alone = value->producer && is_op(value->producer, op) && match->uses.count[value->id] == 1;
  return alone ? value->producer : NULL;
}

static bool is_one(const Value *value) { return value->rank <= 1 && value_max_count(value) == 1; }
static bool is_row(const Value *value, const Dim *columns) {
  return value->rank == 1 && same_dim(value->shape[0], columns);
}

/* Scales of A and of B whose product it is; one of them may be 1. False: there are none. */
static bool split_scale(const Builder *f, Value *scale, const Dim *columns, Value **a, Value **b) {
  const Node *product = scale->producer;
  for (int i = 0; product && is_op(product, OP_Mul) && i < 2; i++) {
    *a = product->inputs[i];
    *b = product->inputs[1 - i];
    if (is_one(*a) && (is_one(*b) || is_row(*b, columns))) return true;
  }
  static const float one = 1;
  if (!is_one(scale) && !is_row(scale, columns)) return false;
  *a = graph_constant(f->graph, f->name, RNNCC_F32, 0, NULL, &one);
  *b = scale;
  return true;
}

/* The product that a Mul scales. */
static bool match_scaled(const Match *match, const Builder *f, const Node *mul) {
  for (int i = 0; i < 2; i++) {
    const Node *cast = only_from(match, mul->inputs[i], OP_Cast);
    const Node *product = cast ? only_from(match, cast->inputs[0], OP_MatMulInteger) : NULL;
    Value *a_scale, *b_scale;
    if (!product || product->inputs[1]->rank < 2 || mul->outputs[0]->dtype != RNNCC_F32) continue;
    const Value *b = product->inputs[1];
    if (!split_scale(f, mul->inputs[1 - i], b->shape[b->rank - 1], &a_scale, &b_scale)) continue;
    Value *const inputs[] = {product->inputs[0],     product->inputs[1],    a_scale, b_scale,
                             node_input(product, 2), node_input(product, 3)};
    graph_set_output(build_op(f, OP_MatMulIntegerToFloat, 6, inputs, 1, 0, NULL), 0, mul->outputs[0]);
    return true;
  }
  return false;
}

/* The product that an Add gives its bias. */
static bool match_biased(const Match *match, const Builder *f, const Node *add) {
  for (int i = 0; i < 2; i++) {
    const Node *product = only_from(match, add->inputs[i], OP_MatMulIntegerToFloat);
    if (!product || node_input(product, 6)) continue;
    const Value *b = product->inputs[1];
    if (!is_row(add->inputs[1 - i], b->shape[b->rank - 1])) continue;
    Value *inputs[7] = {[6] = add->inputs[1 - i]};
    for (int k = 0; k < 6; k++) inputs[k] = node_input(product, k);
    graph_set_output(build_op(f, OP_MatMulIntegerToFloat, 7, inputs, 1, 0, NULL), 0, add->outputs[0]);
    return true;
  }
  return false;
}

static bool has_integer_products(const Graph *graph) {
  for (int n = 0; n < graph->n_nodes; n++)
    if (is_op(graph->nodes[n], OP_MatMulInteger) || is_op(graph->nodes[n], OP_MatMulIntegerToFloat)) return true;
  return false;
}

/* needs: infer_shapes, dense ids. keeps: types, shapes and results, the names of outputs. breaks: nothing. */
void match_integer_products(Graph *graph) {
  if (!has_integer_products(graph)) return;
  const Match match = {graph, graph_uses(graph)};
  Node **nodes;
  int n_nodes = graph_take_nodes(graph, &nodes);
  for (int n = 0; n < n_nodes; n++) {
    const Builder f = {graph, nodes[n]->name, nodes[n]->where};
    bool done = (is_op(nodes[n], OP_Mul) && match_scaled(&match, &f, nodes[n])) ||
                (is_op(nodes[n], OP_Add) && match_biased(&match, &f, nodes[n]));
    if (!done) graph_append(graph, nodes[n]);
  }
  graph_renumber(graph);
  graph_remove_dead(graph);
}
