/* SPDX-License-Identifier: MIT */
/*
 * Blocks of networks that read text, in the forms that have fast kernels: sums of element-wise results, which
 * fuse_reductions makes one kernel, and products with element-wise steps behind them.
 */
#include <math.h>

#include "expand/expansion.h"

/* x is [.., F] and the others are [F, F] and [F]. */
static Value *dense(const Formula *f, Value *x, Value *weight, Value *bias) {
  return plus(f, apply2(f, OP_MatMul, x, weight), bias);
}

/* R. Srivastava et al., Highway Networks, 2015: gate * layer + (1 - gate) * x. */
void expand_highway(const Formula *f, const Node *node, Value **results) {
  static const OpKind activations[] = {[HIGHWAY_Relu] = OP_Relu, [HIGHWAY_Tanh] = OP_Tanh};
  Value *x = node->inputs[0];
  Value *gate = apply(f, OP_Sigmoid, dense(f, x, node->inputs[1], node->inputs[2]));
  Value *layer = dense(f, x, node->inputs[3], node->inputs[4]);
  layer = apply(f, activations[node_word(node, ATTR_activation)], layer);
  results[0] = plus(f, times(f, gate, minus(f, layer, x)), x);
}

/* Hidden where the mask is false; a mask of numbers is added. */
static Value *masked(const Formula *f, Value *scores, Value *mask) {
  if (!mask) return scores;
  if (mask->dtype == RNNCC_F32) return plus(f, scores, mask);
  return apply3(f, OP_Where, mask, scores, number(f, scores, -INFINITY));
}

/* D. Bahdanau et al., Neural Machine Translation by Jointly Learning to Align and Translate, ICLR 2015: a query and a
 * key score v . tanh(q + k). */
void expand_additive_attention(const Formula *f, const Node *node, Value **results) {
  static const int64_t units[] = {3};
  Value *sums = plus(f, with_axis(f, node->inputs[0], 2), with_axis(f, node->inputs[1], 1));
  Value *scores = summed_away(f, times(f, apply(f, OP_Tanh, sums), node->inputs[3]), 1, units);
  Value *weights = softmax_along(f, masked(f, scores, node_input(node, 4)), 2);
  if (node_output(node, 0)) results[0] = apply2(f, OP_MatMul, weights, node->inputs[2]);
  if (node_output(node, 1)) results[1] = weights;
}

/* Part number `part` of the weight [3 D]. */
static Value *weight_part(const Formula *f, const Node *node, int64_t part) {
  int64_t features = dim_value(node->inputs[0]->shape[2]);
  const Range range = {0, part * features, (part + 1) * features};
  return build_slice(f, node->inputs[2], 1, &range);
}

/* w . [h; u; h u] is a sum of three products: of the context, of the question, and of both, (w h) . u. */
static Value *similarity(const Formula *f, const Node *node) {
  static const int64_t turned[] = {0, 2, 1}, last[] = {2};
  Value *context = node->inputs[0], *question = node->inputs[1];
  Value *of_context = reduced(f, OP_ReduceSum, times(f, context, weight_part(f, node, 0)), 1, last);
  Value *of_question = summed_away(f, times(f, question, weight_part(f, node, 1)), 1, last);
  Value *both = times(f, context, weight_part(f, node, 2));
  both = apply2(f, OP_MatMul, both, build_transpose(f, question, turned));
  return plus(f, plus(f, both, with_axis(f, of_question, 1)), of_context);
}

/* M. Seo et al., Bidirectional Attention Flow for Machine Comprehension, ICLR 2017. */
void expand_attention_flow(const Formula *f, const Node *node, Value **results) {
  static const int64_t turned[] = {0, 2, 1}, last[] = {2};
  Value *context = node->inputs[0], *question = node->inputs[1];
  Value *context_mask = node_input(node, 3), *question_mask = node_input(node, 4);
  Value *scores = masked(f, similarity(f, node), question_mask ? with_axis(f, question_mask, 1) : NULL);
  Value *attended = apply2(f, OP_MatMul, softmax_along(f, scores, 2), question);
  Value *most = reduced(f, OP_ReduceMax, scores, 1, last); /* [B, T, 1] */
  most = softmax_along(f, masked(f, most, context_mask ? with_axis(f, context_mask, 2) : NULL), 1);
  Value *attending = apply2(f, OP_MatMul, build_transpose(f, most, turned), context); /* [B, 1, D] */
  Value *const parts[] = {context, attended, times(f, context, attended), times(f, context, attending)};
  results[0] = build_concat(f, 4, parts, 2);
}

/* R. Kadlec et al., Text Understanding with the Attention Sum Reader Network, ACL 2016: a candidate gets the attention
 * to all places where it stands. */
void expand_attention_sum(const Formula *f, const Node *node, Value **results) {
  static const int64_t words[] = {2};
  Value *tokens = with_axis(f, node->inputs[1], 1), *candidates = with_axis(f, node->inputs[2], 2);
  Value *there = cast(f, apply2(f, OP_Equal, candidates, tokens), RNNCC_F32);
  results[0] = summed_away(f, times(f, there, with_axis(f, node->inputs[0], 1)), 1, words);
}
