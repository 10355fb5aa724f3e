/* SPDX-License-Identifier: MIT */
/* Operators of random numbers. */
#include <float.h>

#include "expand/draw.h"
#include "expand/expansion.h"

/* The type that is drawn where this one is asked for. */
static DType drawn_type(DType dtype) { return dtype == RNNCC_F64 ? RNNCC_F64 : RNNCC_F32; }

static Value *drawn_as(const Formula *f, const Node *node, DrawLaw law, double first, double step) {
  const Value *y = node->outputs[0];
  return cast(f, drawn(f, node, law, first, step, drawn_type(y->dtype), y->rank, y->shape), y->dtype);
}

void expand_uniform(const Formula *f, const Node *node, Value **results) {
  double low = node_float(node, ATTR_low);
  results[0] = drawn_as(f, node, DRAW_uniform, low, node_float(node, ATTR_high) - low);
}

void expand_normal(const Formula *f, const Node *node, Value **results) {
  results[0] = drawn_as(f, node, DRAW_normal, node_float(node, ATTR_mean), node_float(node, ATTR_scale));
}

/* u < p: never where p is 0, always where it is 1. */
void expand_bernoulli(const Formula *f, const Node *node, Value **results) {
  Value *p = node->inputs[0], *u = drawn(f, node, DRAW_uniform, 0, 1, p->dtype, p->rank, p->shape);
  results[0] = cast(f, apply2(f, OP_Less, u, p), node->outputs[0]->dtype);
}

/* Element 0 of the number alone; of a ratio that is outside 0..1, or none, element 1, which fails the run. */
static Value *if_a_ratio(const Formula *f, Value *ratio) {
  Value *above = apply2(f, OP_GreaterOrEqual, ratio, number(f, ratio, 0));
  Value *below = apply2(f, OP_LessOrEqual, ratio, number(f, ratio, 1));
  Value *wrong = apply(f, OP_Not, apply2(f, OP_And, above, below));
  return gathered(f, with_axis(f, ratio, 0), cast(f, wrong, RNNCC_I64), 0);
}

/* One that the model has is checked with its shapes. */
static Value *dropout_ratio(const Formula *f, const Node *node) {
  Value *given = node_input(node, DROPOUT_RATIO);
  if (!given) return number(f, &(Value){.dtype = RNNCC_F32}, node_float(node, ATTR_ratio));
  Value *ratio = build_reshape(f, given, 0, NULL);
  return given->data ? ratio : if_a_ratio(f, ratio);
}

/* x / (1 - ratio) where u >= ratio, else 0. If all are dropped the scale is a number all the same: 0 times infinity
 * would be no gradient. */
static void drop_elements(const Formula *f, const Node *node, Value **results) {
  Value *x = node->inputs[0], *ratio = dropout_ratio(f, node), *one = number(f, ratio, 1);
  Value *u = drawn(f, node, DRAW_uniform, 0, 1, RNNCC_F32, x->rank, x->shape);
  Value *kept = apply2(f, OP_GreaterOrEqual, u, ratio);
  Value *scale = apply2(f, OP_Min, over(f, one, minus(f, one, ratio)), number(f, ratio, FLT_MAX));
  results[0] = apply3(f, OP_Where, kept, times(f, x, cast(f, scale, x->dtype)), number(f, x, 0));
  results[1] = kept;
}

/* Without numbers of a draw nothing is dropped: number_draws. */
void expand_dropout(const Formula *f, const Node *node, Value **results) {
  Value *x = node->inputs[0], *dropped[2];
  if (node->n_inputs > node->op->max_inputs) {
    drop_elements(f, node, dropped);
  } else {
    dropped[0] = x;
    dropped[1] = NULL;
    if (node_output(node, 1)) {
      Value *all = number(f, node->outputs[1], 1);
      dropped[1] = apply2(f, OP_Expand, all, apply(f, OP_Shape, x));
    }
  }
  for (int i = 0; i < node->n_outputs; i++) results[i] = dropped[i];
}

/* Sums of the classes' probabilities up to each, [N, C]: times a factor, which is the last one's inverse. */
static Value *running_sums(const Formula *f, Value *logits) {
  const int64_t classes = 1, zero = 0;
  Value *sizes = apply(f, OP_Exp, minus(f, logits, reduced(f, OP_ReduceMax, logits, 1, &classes)));
  Value *axis =
      graph_constant(f->graph, f->name, RNNCC_I64, 0, NULL, arena_copy(f->graph->arena, &classes, sizeof zero));
  return apply2(f, OP_CumSum, sizes, axis);
}

/* The class of a sample is how many running sums are not above u times the last: a class of probability 0 is never
 * one, as u times the last is rounded to less than the last. */
void expand_multinomial(const Formula *f, const Node *node, Value **results) {
  Value *logits = node->inputs[0];
  const Value *y = node->outputs[0];
  const int64_t last = -1, classes = 2;
  Value *sums = running_sums(f, logits), *all = gathered(f, sums, integers(f, 1, &last), 1);
  Value *u = drawn(f, node, DRAW_uniform, 0, 1, logits->dtype, 2, y->shape);
  Value *below = apply2(f, OP_LessOrEqual, with_axis(f, sums, 1), with_axis(f, times(f, u, all), 2));
  results[0] = summed_away(f, cast(f, below, y->dtype), 1, &classes);
}
