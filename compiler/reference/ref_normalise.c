/* SPDX-License-Identifier: MIT */
/* BatchNormalization (inference), Softmax and LogSoftmax. */
#include <math.h>

#include "reference/kernels.h"

typedef struct Statistics {
  double mean, variance;
} Statistics;

/* Of channel c of x[N, C, plane]. */
static Statistics channel_statistics(const Tensor *x, int64_t c, int64_t C, int64_t plane) {
  Statistics s = {0, 0};
  double n = (double)tensor_count(x) / (double)C;
  for (int64_t first = c * plane; first < tensor_count(x); first += C * plane)
    for (int64_t i = first; i < first + plane; i++) s.mean += tensor_get(x, i) / n;
  for (int64_t first = c * plane; first < tensor_count(x); first += C * plane)
    for (int64_t i = first; i < first + plane; i++) s.variance += pow(tensor_get(x, i) - s.mean, 2) / n;
  return s;
}

static void set_running(const Node *node, const Tensor *kept, Tensor *next, int64_t c, double now) {
  double momentum = node_float(node, ATTR_momentum);
  if (next) tensor_set(next, c, tensor_get(kept, c) * momentum + now * (1 - momentum));
}

/* By the statistics that are given; in training by those of the batch, of which the outputs are the running ones. */
const char *ref_batch_norm(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *scale = inputs[1], *bias = inputs[2], *mean = inputs[3], *variance = inputs[4];
  int64_t C = x->rank > 1 ? x->shape[1] : 1, plane = tensor_extent(x, 2, x->rank);
  for (int k = 1; k < 5; k++)
    if (tensor_count(inputs[k]) != C) return "statistics do not match the channels";
  for (int64_t c = 0; c < C; c++) {
    bool trains = node_int(node, ATTR_training_mode) != 0;
    Statistics s = {tensor_get(mean, c), tensor_get(variance, c)};
    if (trains) s = channel_statistics(x, c, C, plane);
    double deviation = sqrt(s.variance + node_float(node, ATTR_epsilon));
    for (int64_t first = c * plane; first < tensor_count(x); first += C * plane)
      for (int64_t i = first; i < first + plane; i++)
        tensor_set(outputs[0], i, (tensor_get(x, i) - s.mean) / deviation * tensor_get(scale, c) + tensor_get(bias, c));
    set_running(node, mean, optional_output(node, outputs, 1), c, s.mean);
    set_running(node, variance, optional_output(node, outputs, 2), c, s.variance);
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
