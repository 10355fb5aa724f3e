/* SPDX-License-Identifier: MIT */
#include "passes/channel_affine.h"

#include <math.h>

#include "ir/op.h"
#include "ir/tensor.h"

/* ---- batch normalisation ---- */

/* Of a constant, of any type. Where its numbers can change, what is made of them is made again. */
static double number_at(const Value *constant, int64_t c) {
  const Tensor numbers = {.dtype = constant->dtype, .data = (void *)constant->data};
  return tensor_get(&numbers, c);
}

static bool normalise(const Node *node, ChannelAffine *affine) {
  if (node_int(node, ATTR_training_mode)) return false; /* by the statistics of the batch */
  for (int i = 1; i < 5; i++)
    if (!node->inputs[i]->data) return false;
  double epsilon = node_float(node, ATTR_epsilon);
  for (int64_t c = 0; c < affine->C; c++) {
    affine->s[c] = number_at(node->inputs[1], c) / sqrt(number_at(node->inputs[4], c) + epsilon);
    affine->t[c] = number_at(node->inputs[2], c) - affine->s[c] * number_at(node->inputs[3], c);
  }
  return true;
}

/* ---- arithmetic ---- */

/* The constant `a` beside x; it stands on the left or the right. */
static void add(double a, bool left, double *s, double *t) {
  (void)left;
  *s = 1;
  *t = a;
}

static void subtract(double a, bool left, double *s, double *t) {
  *s = left ? -1 : 1;
  *t = left ? a : -a;
}

static void multiply(double a, bool left, double *s, double *t) {
  (void)left;
  *s = a;
  *t = 0;
}

/* a / x is not affine: infinite, so refused. */
static void divide(double a, bool left, double *s, double *t) {
  *s = left ? INFINITY : 1 / a;
  *t = 0;
}

typedef void Coefficients(double a, bool left, double *s, double *t);

static Coefficients *const arithmetic[N_OPS] = {
    [OP_Add] = add,
    [OP_Div] = divide,
    [OP_Mul] = multiply,
    [OP_Sub] = subtract,
};

/* A constant that broadcasts to x's shape and varies along channels at most. */
static bool is_per_channel(const Value *constant, const Value *x) {
  if (!constant->data || constant->rank > x->rank) return false;
  for (int axis = 0; axis < constant->rank; axis++) {
    int of_x = axis + x->rank - constant->rank;
    if (dim_value(constant->shape[axis]) != 1 && (of_x != 1 || constant->shape[axis] != x->shape[1])) return false;
  }
  return true;
}

static bool calculate(Coefficients *coefficients, const Node *node, ChannelAffine *affine) {
  bool left = node->inputs[0]->data != NULL;
  const Value *constant = node->inputs[left ? 0 : 1];
  if (!is_per_channel(constant, affine->x)) return false;
  const float *a = constant->data;
  int64_t step = value_count(constant) == 1 ? 0 : 1;
  for (int64_t c = 0; c < affine->C; c++) coefficients((double)a[c * step], left, &affine->s[c], &affine->t[c]);
  return true;
}

/* ---- both ---- */

static bool all_finite(const ChannelAffine *affine) {
  for (int64_t c = 0; c < affine->C; c++)
    if (!isfinite(affine->s[c]) || !isfinite(affine->t[c])) return false;
  return true;
}

bool channel_affine_of(Graph *graph, const Node *node, ChannelAffine *affine) {
  Coefficients *coefficients = arithmetic[node->op->kind];
  bool norm = is_op(node, OP_BatchNormalization);
  if (!coefficients && !norm) return false;
  Value *x = node->inputs[coefficients && node->inputs[0]->data ? 1 : 0];
  if (x->data || x->dtype != RNNCC_F32 || x->rank < 2 || !dim_is_const(x->shape[1])) return false;
  *affine = (ChannelAffine){.x = x, .C = dim_value(x->shape[1])};
  affine->s = ARENA_ARRAY(graph->arena, double, affine->C);
  affine->t = ARENA_ARRAY(graph->arena, double, affine->C);
  return (norm ? normalise(node, affine) : calculate(coefficients, node, affine)) && all_finite(affine);
}
