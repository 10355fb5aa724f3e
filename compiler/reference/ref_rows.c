/* SPDX-License-Identifier: MIT */
/* Normalisations by statistics of the input: of rows, of neighbouring channels, by a norm along an axis. */
#include <math.h>

#include "reference/kernels.h"
#include "support/numbers.h"

typedef struct Row {
  int64_t first, n;
  double mean, inverse; /* of the deviation */
} Row;

static Row row_of(const Tensor *x, int64_t first, int64_t n, double epsilon, bool centred) {
  Row row = {.first = first, .n = n};
  double squares = 0;
  for (int64_t i = 0; centred && i < n; i++) row.mean += tensor_get(x, first + i) / (double)n;
  for (int64_t i = 0; i < n; i++) squares += pow(tensor_get(x, first + i) - row.mean, 2);
  row.inverse = 1 / sqrt(squares / (double)n + epsilon);
  return row;
}

static double normal(const Row *row, const Tensor *x, int64_t i) {
  return (tensor_get(x, row->first + i) - row->mean) * row->inverse;
}

/* An element of a tensor that has one, or one for each. */
static double parameter(const Tensor *tensor, int64_t i) { return tensor_get(tensor, i % tensor_count(tensor)); }

const char *ref_layer_norm(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *scale = inputs[1], *bias = optional_input(node, inputs, 2);
  Tensor *mean = optional_output(node, outputs, 1), *inverse = optional_output(node, outputs, 2);
  bool centred = is_op(node, OP_LayerNormalization);
  int axis = normal_axis(node_int(node, ATTR_axis), x->rank);
  if (axis < 0) return "axis out of range";
  int64_t rows = tensor_extent(x, 0, axis), n = tensor_extent(x, axis, x->rank);
  for (int64_t r = 0; r < rows; r++) {
    Row row = row_of(x, r * n, n, node_float(node, ATTR_epsilon), centred);
    for (int64_t i = 0; i < n; i++)
      tensor_set(outputs[0], r * n + i, normal(&row, x, i) * parameter(scale, i) + (bias ? parameter(bias, i) : 0));
    if (mean) tensor_set(mean, r, row.mean);
    if (inverse) tensor_set(inverse, r, row.inverse);
  }
  return NULL;
}

/* A row is a group of an image's channels; scale and bias have an entry for each channel or for each group. */
static void normalise_groups(const Node *node, const Tensor *const *inputs, Tensor *y, int64_t groups) {
  const Tensor *x = inputs[0];
  int64_t rows = x->shape[0] * groups, n = tensor_extent(x, 1, x->rank) / groups;
  int64_t each = tensor_extent(x, 1, x->rank) / tensor_count(inputs[1]); /* elements that share a parameter */
  for (int64_t r = 0; r < rows; r++) {
    Row row = row_of(x, r * n, n, node_float(node, ATTR_epsilon), true);
    for (int64_t i = 0; i < n; i++) {
      int64_t k = (r % groups * n + i) / each;
      tensor_set(y, r * n + i, normal(&row, x, i) * tensor_get(inputs[1], k) + tensor_get(inputs[2], k));
    }
  }
}

const char *ref_instance_norm(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  if (tensor_count(inputs[0])) normalise_groups(node, inputs, outputs[0], inputs[0]->shape[1]);
  return NULL;
}

const char *ref_group_norm(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  if (tensor_count(inputs[0])) normalise_groups(node, inputs, outputs[0], node_int(node, ATTR_num_groups));
  return NULL;
}

/* The squares of `size` channels around each, the odd one after it. */
const char *ref_lrn(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  int64_t size = node_int(node, ATTR_size), C = x->shape[1], plane = tensor_extent(x, 2, x->rank);
  for (int64_t i = 0; i < tensor_count(x); i++) {
    int64_t c = i / plane % C, first = max_int(c - (size - 1) / 2, 0), last = min_int(c + size / 2, C - 1);
    double squares = 0;
    for (int64_t k = first; k <= last; k++) squares += pow(tensor_get(x, i + (k - c) * plane), 2);
    double base = node_float(node, ATTR_bias) + node_float(node, ATTR_alpha) / (double)size * squares;
    tensor_set(outputs[0], i, tensor_get(x, i) / pow(base, node_float(node, ATTR_beta)));
  }
  return NULL;
}

/* A group of nothing but zeros stays as it is, as in ONNX Runtime. */
const char *ref_lp_norm(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  int axis = normal_axis(node_int(node, ATTR_axis), x->rank);
  if (axis < 0) return "axis out of range";
  int64_t p = node_int(node, ATTR_p), n = x->shape[axis], inner = tensor_extent(x, axis + 1, x->rank);
  for (int64_t i = 0; i < tensor_count(x); i++) {
    int64_t first = i / (n * inner) * n * inner + i % inner;
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += pow(fabs(tensor_get(x, first + k * inner)), (double)p);
    double norm = p == 2 ? sqrt(sum) : sum;
    tensor_set(outputs[0], i, norm == 0 ? 0 : tensor_get(x, i) / norm);
  }
  return NULL;
}
