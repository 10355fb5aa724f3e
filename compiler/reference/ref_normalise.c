/* SPDX-License-Identifier: MIT */
/* BatchNormalization (inference), Softmax and LogSoftmax. */
#include <math.h>

#include "reference/kernels.h"

const char *ref_batch_norm(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *scale = inputs[1], *bias = inputs[2], *mean = inputs[3], *variance = inputs[4];
  int64_t C = x->rank > 1 ? x->shape[1] : 1, plane = tensor_extent(x, 2, x->rank);
  for (int k = 1; k < 5; k++)
    if (tensor_count(inputs[k]) != C) return "statistics do not match the channels";
  for (int64_t i = 0, n = tensor_count(x); i < n; i++) {
    int64_t c = i / plane % C;
    double deviation = sqrt(tensor_get(variance, c) + node_float(node, ATTR_epsilon));
    double normal = (tensor_get(x, i) - tensor_get(mean, c)) / deviation;
    tensor_set(outputs[0], i, normal * tensor_get(scale, c) + tensor_get(bias, c));
  }
  return NULL;
}

/* One row of n elements, `stride` apart: shifted by its maximum, so that exp() cannot overflow. */
static void softmax_row(const Tensor *x, Tensor *y, int64_t first, int64_t n, int64_t stride, bool logarithm) {
  double top = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++) top = fmax(top, tensor_get(x, first + i * stride));
  for (int64_t i = 0; i < n; i++) sum += exp(tensor_get(x, first + i * stride) - top);
  for (int64_t i = 0; i < n; i++) {
    double shifted = tensor_get(x, first + i * stride) - top;
    tensor_set(y, first + i * stride, logarithm ? shifted - log(sum) : exp(shifted) / sum);
  }
}

const char *ref_softmax(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  int axis = normal_axis(node_int(node, ATTR_axis), x->rank);
  if (x->rank == 0) return softmax_row(x, outputs[0], 0, 1, 1, is_op(node, OP_LogSoftmax)), NULL;
  if (axis < 0) return "axis out of range";
  int64_t n = x->shape[axis], inner = tensor_extent(x, axis + 1, x->rank), total = tensor_count(x);
  if (total == 0) return NULL;
  for (int64_t row = 0; row < total / n; row++)
    softmax_row(x, outputs[0], row / inner * n * inner + row % inner, n, inner, is_op(node, OP_LogSoftmax));
  return NULL;
}
