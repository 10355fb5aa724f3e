/* SPDX-License-Identifier: MIT */
/* Losses of classes: what the target's class has, weighed, summed or averaged; and of sequences of labels. */
#include "expand/expansion.h"

/* Over all elements. */
static Value *of_all(const Formula *f, OpKind op, Value *x) {
  const Attribute attribute = attribute_int(ATTR_keepdims, 0);
  return build_op(f, op, 1, &x, 1, 1, &attribute)->outputs[0];
}

/* x[n, target[n, ...], ...]: of axis 1, the target's. */
static Value *at_target(const Formula *f, Value *x, Value *target) {
  const Attribute axis = attribute_int(ATTR_axis, 1);
  Value *inputs[] = {x, with_axis(f, target, 1)};
  Value *picked = build_op(f, OP_GatherElements, 2, inputs, 1, 1, &axis)->outputs[0];
  return without_axis(f, picked, 1);
}

/* The loss of each place: of log-probabilities x, or, if these are known, of the scores that x is the LogSoftmax of. A
 * target to ignore may be no class: it is read as class 0. */
static Value *of_places(const Formula *f, const Node *node, Value *x, Value *scores, Value *target, Value *ignored) {
  const Attribute *ignore = node_attribute(node, ATTR_ignore_index);
  Value *const inputs[] = {scores, target};
  if (scores) return build_op(f, OP_CrossEntropy, 2, inputs, 1, ignore ? 1 : 0, ignore)->outputs[0];
  if (ignored) target = apply3(f, OP_Where, ignored, number(f, target, 0), target);
  Value *loss = apply(f, OP_Neg, at_target(f, x, counted_from_start(f, target)));
  return ignored ? apply3(f, OP_Where, ignored, number(f, x, 0), loss) : loss;
}

/* What a place counts in the mean: its class's weight, 0 where the target is ignored. NULL: as much as any. */
static Value *counts_of(const Formula *f, const Node *node, Value *like, Value *target, Value *ignored) {
  Value *weights = node_input(node, 2), *count = NULL;
  if (weights && ignored) target = apply3(f, OP_Where, ignored, number(f, target, 0), target);
  if (weights) count = gathered(f, weights, target, 0);
  return ignored ? apply3(f, OP_Where, ignored, number(f, like, 0), count ? count : number(f, like, 1)) : count;
}

static Value *negative_log_likelihood(const Formula *f, const Node *node, Value *x, Value *scores) {
  const Attribute *ignore = node_attribute(node, ATTR_ignore_index);
  Value *target = cast(f, node->inputs[1], RNNCC_I64);
  Value *ignored = ignore ? apply2(f, OP_Equal, target, integers(f, 1, &ignore->i)) : NULL;
  Value *loss = of_places(f, node, x, scores, target, ignored), *count = counts_of(f, node, loss, target, ignored);
  if (node_input(node, 2)) loss = times(f, loss, count);
  int reduction = node_word(node, ATTR_reduction);
  if (reduction == LOSS_none) return loss;
  if (reduction == LOSS_mean && !count) return of_all(f, OP_ReduceMean, loss);
  Value *sum = of_all(f, OP_ReduceSum, loss);
  return reduction == LOSS_sum ? sum : over(f, sum, of_all(f, OP_ReduceSum, count));
}

/* The f32 scores of which x is the LogSoftmax along the classes. NULL: it is none. */
static Value *scores_of(const Value *x) {
  const Node *node = x->producer;
  bool found =
      is_op(node, OP_LogSoftmax) && x->dtype == RNNCC_F32 && normal_axis(node_int(node, ATTR_axis), x->rank) == 1;
  return found ? node->inputs[0] : NULL;
}

void expand_likelihood_loss(const Formula *f, const Node *node, Value **results) {
  Value *x = node->inputs[0];
  results[0] = negative_log_likelihood(f, node, x, scores_of(x));
}

/* Log-probabilities that are an output are read; else there are none. */
void expand_softmax_loss(const Formula *f, const Node *node, Value **results) {
  const Attribute axis = attribute_int(ATTR_axis, 1);
  Value *scores = node->inputs[0];
  if (!node_output(node, 1)) {
    results[0] = negative_log_likelihood(f, node, NULL, scores);
    return;
  }
  results[1] = build_op(f, OP_LogSoftmax, 1, &scores, 1, 1, &axis)->outputs[0];
  results[0] = negative_log_likelihood(f, node, results[1], NULL);
}

/* The mean is of the samples' losses, each a label. */
void expand_ctc_loss(const Formula *f, const Node *node, Value **results) {
  const Attribute attributes[] = {attribute_int(ATTR_blank, node_int(node, ATTR_blank)),
                                  attribute_int(ATTR_zero_infinity, node_int(node, ATTR_zero_infinity))};
  Value *inputs[4] = {node->inputs[0]};
  for (int i = 1; i < 4; i++) inputs[i] = cast(f, node->inputs[i], RNNCC_I64);
  Value *loss = build_op(f, OP_CTCLikelihood, 4, inputs, 1, 2, attributes)->outputs[0];
  int reduction = node_word(node, ATTR_reduction);
  if (reduction == LOSS_mean) {
    Value *lengths = cast(f, inputs[3], loss->dtype);
    loss = over(f, loss, apply2(f, OP_Max, lengths, number(f, loss, 1)));
  }
  results[0] = reduction == LOSS_none ? loss : of_all(f, reduction == LOSS_sum ? OP_ReduceSum : OP_ReduceMean, loss);
}
