/* SPDX-License-Identifier: MIT */
/* Blocks of networks that read text: a highway layer, additive attention, attention flow, attention sum. */
#include "shapes/shape.h"

/* x [..., F], of the gate and of the layer: weight [F, F], bias [F]. */
bool shape_highway(Graph *graph, Node *node) {
  if (!check_rank(graph, node, 0, 2, MAX_RANK)) return false;
  const Value *x = node->inputs[0];
  const Dim *features = x->shape[x->rank - 1], *square[] = {features, features};
  for (int k = 1; k < 5; k += 2)
    if (!check_shape(graph, node, k, 2, square, "[features, features]") ||
        !check_shape(graph, node, k + 1, 1, &features, "[features]"))
      return false;
  return shape_same(graph, node);
}

/* Is the mask absent, or may its axes be repeated to that shape? */
static bool check_mask(Graph *graph, const Node *node, int input, const Dim *const *scores) {
  const Value *mask = node_input(node, input);
  if (!mask) return true;
  if (!check_rank(graph, node, input, 1, 3)) return false;
  for (int i = 1; i <= mask->rank; i++) {
    const Dim *own = mask->shape[mask->rank - i], *all = scores[3 - i];
    if (!dim_equals(own, 1) && !same_dim(own, all))
      return shape_error(node, "the mask %s does not broadcast to [batch, queries, keys]; its %s is not 1 or %s",
                         shape_text(graph, mask), dim_text(graph, own), dim_text(graph, all));
  }
  return true;
}

/* Q [B, S, U], K [B, T, U], V [B, T, D], v [U], mask; results [B, S, D] and weights [B, S, T]. */
bool shape_additive_attention(Graph *graph, Node *node) {
  for (int k = 0; k < 3; k++)
    if (!check_rank(graph, node, k, 3, 3)) return false;
  const Dim **q = node->inputs[0]->shape, **v = node->inputs[2]->shape, *units = q[2];
  const Dim *keys[] = {q[0], v[1], units}, *values[] = {q[0], v[1], v[2]};
  const Dim *result[] = {q[0], q[1], v[2]}, *weights[] = {q[0], q[1], v[1]};
  if (!check_shape(graph, node, 1, 3, keys, "[batch, keys, units]")) return false;
  if (!check_shape(graph, node, 2, 3, values, "[batch, keys, features]")) return false;
  if (!check_shape(graph, node, 3, 1, &units, "[units]") || !check_mask(graph, node, 4, weights)) return false;
  return set_shape(graph, node, 0, 3, result) && set_shape(graph, node, 1, 3, weights);
}

/* The context [B, T, D], the question [B, J, D], the weight [3 D], masks [B, T] and [B, J]; the result [B, T, 4 D]. */
bool shape_attention_flow(Graph *graph, Node *node) {
  if (!check_rank(graph, node, 0, 3, 3) || !check_rank(graph, node, 1, 3, 3)) return false;
  const Dim **context = node->inputs[0]->shape, **question = node->inputs[1]->shape, *features = context[2];
  if (!dim_is_const(features))
    return shape_error(node, "the features of %s must be constant", shape_text(graph, node->inputs[0]));
  const Dim *asked[] = {context[0], question[1], features};
  const Dim *weight = dim_mul(graph->dims, features, dim_const(graph->dims, 3));
  const Dim *result[] = {context[0], context[1], dim_mul(graph->dims, features, dim_const(graph->dims, 4))};
  return check_shape(graph, node, 1, 3, asked, "[batch, words, features]") &&
         check_shape(graph, node, 2, 1, &weight, "[3*features]") &&
         check_shape(graph, node, 3, 2, context, "[batch, words of the context]") &&
         check_shape(graph, node, 4, 2, question, "[batch, words of the question]") &&
         set_shape(graph, node, 0, 3, result);
}

/* Attention to the words of a text [B, T], these words, and candidates [B, C]; the result [B, C]. */
bool shape_attention_sum(Graph *graph, Node *node) {
  if (!check_rank(graph, node, 0, 2, 2) || !check_rank(graph, node, 2, 2, 2)) return false;
  const Dim **attention = node->inputs[0]->shape, *result[] = {attention[0], node->inputs[2]->shape[1]};
  return check_shape(graph, node, 1, 2, attention, "[batch, words]") &&
         check_shape(graph, node, 2, 2, result, "[batch, candidates]") && set_shape(graph, node, 0, 2, result);
}
