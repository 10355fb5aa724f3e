/* SPDX-License-Identifier: MIT */
#include "ir/integer_mean.h"

#include <math.h>

#include "ir/op.h"
#include "ir/tensor.h"

/* Inputs of both operators; zero points may be absent. */
enum { X, X_SCALE, X_ZERO, Y_SCALE, Y_ZERO };

bool is_integer_mean(const Node *node) {
  return is_op(node, OP_QLinearAveragePool) || is_op(node, OP_QLinearGlobalAveragePool);
}

static double window_points(const Node *node) {
  const Attribute *window = node_attribute(node, ATTR_kernel_shape);
  double points = 1;
  for (size_t i = 0; i < window->count; i++) points *= (double)window->ints[i];
  return points;
}

double integer_mean_points(const Node *node) {
  if (is_op(node, OP_QLinearAveragePool)) return window_points(node);
  const Value *x = node->inputs[X];
  bool channels_last = node_int(node, ATTR_channels_last) != 0;
  double points = 1;
  for (int axis = 1; axis < x->rank; axis++)
    if (axis != (channels_last ? x->rank - 1 : 1)) points *= (double)dim_upper(x->shape[axis]);
  return points;
}

static bool is_known(const Value *value) { return !value || (value->data && value_count(value) == 1); }

static float factor_of(const Node *node) {
  return (float)(value_element(node->inputs[X_SCALE], 0) / value_element(node->inputs[Y_SCALE], 0));
}

bool integer_mean_has_kernel(const Node *node) {
  for (int i = X_SCALE; i <= Y_ZERO; i++)
    if (!is_known(node_input(node, i))) return false;
  return isnormal(factor_of(node)) && 255 * integer_mean_points(node) < 0x1p31;
}

static int zero_at(const Node *node, int input) {
  const Value *zero = node_input(node, input);
  return zero ? (int)value_element(zero, 0) : 0;
}

/* That of all pixels rounds first, in ONNX Runtime, too. */
IntegerMean integer_mean_of(const Node *node) {
  bool first = !is_op(node, OP_QLinearAveragePool) || node_int(node, ATTR_rounds_first) != 0;
  int zero = zero_at(node, Y_ZERO);
  return (IntegerMean){.x_zero = zero_at(node, X_ZERO),
                       .factor = factor_of(node),
                       .before = first ? 0 : zero,
                       .behind = first ? zero : 0};
}
