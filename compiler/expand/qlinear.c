/* SPDX-License-Identifier: MIT */
/* ONNX Runtime's own operators of quantised numbers: between floats, which hold them exactly. */
#include "expand/quantised.h"
#include "ir/integer_mean.h"
#include "ir/tensor.h"
#include "shapes/shape.h"

/* The tensor at `input`, whose scale and zero point follow, in floats. */
static Value *in_floats(const Formula *f, const Node *node, int input) {
  return times(f, less_zero_point(f, node->inputs[input], node_input(node, input + 2)), node->inputs[input + 1]);
}

/* In the scale at `input` and the zero point behind it. */
static Value *as_result(const Formula *f, const Node *node, Value *y, int input) {
  return quantised(f, over(f, y, node->inputs[input]), node_input(node, input + 1), node->outputs[0]->dtype);
}

/* The same, but the zero point is added before the sum is rounded: halves go to the even number, zero point included.
 */
static Value *rounded_last(const Formula *f, const Node *node, Value *y, Value *zero) {
  if (zero) y = plus(f, y, cast(f, zero, RNNCC_F32));
  return quantised(f, y, NULL, node->outputs[0]->dtype);
}

/* What a kernel may add as it writes the result of a convolution. */
static bool is_residual(const Node *node) {
  for (int i = 1; i < node->n_inputs; i++)
    if (i != 3 && node->inputs[i] && !node->inputs[i]->data) return false;
  return is_op(node->inputs[0]->producer, OP_QLinearConv) || is_op(node->inputs[3]->producer, OP_QLinearConv);
}

static bool has_alpha_one(const Node *node) {
  double alpha = node_float(node, ATTR_alpha);
  return !(alpha < 1) && !(alpha > 1);
}

/* The same, of one tensor. */
static bool is_rescaling(const Node *node) {
  for (int i = 1; i < node->n_inputs; i++)
    if (node->inputs[i] && !node->inputs[i]->data) return false;
  return has_alpha_one(node) && is_op(node->inputs[0]->producer, OP_QLinearConv);
}

void expand_qlinear_add(const Formula *f, const Node *node, Value **results) {
  if (!is_residual(node)) expand_quantised_sum(f, node, results);
}

void expand_quantised_sum(const Formula *f, const Node *node, Value **results) {
  Value *sum = plus(f, in_floats(f, node, 0), in_floats(f, node, 3));
  if (node_int(node, ATTR_rounds_first))
    results[0] = as_result(f, node, sum, 6);
  else
    results[0] = rounded_last(f, node, over(f, sum, node->inputs[6]), node_input(node, 7));
}

/* The numbers are multiplied before they are scaled: their product is exact. */
void expand_qlinear_mul(const Formula *f, const Node *node, Value **results) {
  Value *const *in = node->inputs;
  Value *a = less_zero_point(f, in[0], node_input(node, 2)), *b = less_zero_point(f, in[3], node_input(node, 5));
  Value *scale = over(f, times(f, in[1], in[4]), in[6]);
  results[0] = rounded_last(f, node, times(f, times(f, a, b), scale), node_input(node, 7));
}

void expand_qlinear_where(const Formula *f, const Node *node, Value **results) {
  Value *chosen = apply3(f, OP_Where, node->inputs[0], in_floats(f, node, 1), in_floats(f, node, 4));
  results[0] = as_result(f, node, chosen, 7);
}

void expand_qlinear_sigmoid(const Formula *f, const Node *node, Value **results) {
  results[0] = as_result(f, node, apply(f, OP_Sigmoid, in_floats(f, node, 0)), 3);
}

void expand_qlinear_leaky_relu(const Formula *f, const Node *node, Value **results) {
  if (!is_rescaling(node)) expand_quantised_leaky_relu(f, node, results);
}

void expand_quantised_leaky_relu(const Formula *f, const Node *node, Value **results) {
  const Attribute alpha = attribute_float(ATTR_alpha, node_float(node, ATTR_alpha));
  Value *x = in_floats(f, node, 0);
  if (!has_alpha_one(node)) x = build_op(f, OP_LeakyRelu, 1, &x, 1, 1, &alpha)->outputs[0];
  results[0] = as_result(f, node, x, 3);
}

void expand_qlinear_softmax(const Formula *f, const Node *node, Value **results) {
  Value *x = in_floats(f, node, 0);
  int axis = normal_axis(node_int(node, ATTR_axis), x->rank);
  bool flat = node_int(node, ATTR_opset) < 13 && axis < x->rank - 1;
  results[0] = as_result(f, node, flat ? flat_softmax(f, x, axis) : softmax_along(f, x, axis), 3);
}

void expand_qlinear_global_pool(const Formula *f, const Node *node, Value **results) {
  if (integer_mean_has_kernel(node)) return;
  Value *x = node->inputs[0];
  int channels = node_int(node, ATTR_channels_last) != 0 ? x->rank - 1 : 1, n = 0;
  int64_t axes[MAX_RANK];
  for (int axis = 1; axis < x->rank; axis++)
    if (axis != channels) axes[n++] = axis;
  Value *mean = reduced(f, OP_ReduceMean, less_zero_point(f, x, node->inputs[2]), n, axes);
  results[0] = as_result(f, node, times(f, mean, node->inputs[1]), 3);
}

/* Padding is 0, which is not the zero point. */
void expand_qlinear_pool(const Formula *f, const Node *node, Value **results) {
  if (integer_mean_has_kernel(node)) return;
  Attribute *own = ARENA_ARRAY(f->graph->arena, Attribute, node->n_attributes);
  Value *x = in_floats(f, node, 0);
  int n = 0;
  for (int i = 0; i < node->n_attributes; i++)
    if (node->attributes[i].id != ATTR_channels_last && node->attributes[i].id != ATTR_rounds_first)
      own[n++] = node->attributes[i];
  Value *mean = build_op(f, OP_AveragePool, 1, &x, 1, n, own)->outputs[0];
  if (node_int(node, ATTR_rounds_first))
    results[0] = as_result(f, node, mean, 3);
  else
    results[0] = rounded_last(f, node, over(f, mean, node->inputs[3]), node_input(node, 4));
}

static bool same_number(const Value *a, const Value *b) {
  double x, y;
  return a == b || (value_number(a, &x) && value_number(b, &y) && !(x < y) && !(x > y));
}

/* Each part in the result's scale: its numbers are those of the result. */
void expand_qlinear_concat(const Formula *f, const Node *node, Value **results) {
  Value *const *in = node->inputs;
  int n = (node->n_inputs - 2) / 3;
  Value **parts = ARENA_ARRAY(f->graph->arena, Value *, n);
  for (int i = 0; i < n; i++) {
    int first = 2 + 3 * i;
    bool as_it_is = same_number(in[first + 1], in[0]) && same_number(in[first + 2], in[1]);
    parts[i] = as_it_is ? in[first] : as_result(f, node, in_floats(f, node, first), 0);
  }
  results[0] = build_concat(f, n, parts, node_int(node, ATTR_axis));
}
