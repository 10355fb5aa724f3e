/* SPDX-License-Identifier: MIT */
/* Matrix products of 8-bit numbers with zero points (ir/integer_product.h): sums in i64, the rest in f32, step by step.
 */
#include <math.h>

#include "ir/dtype.h"
#include "ir/integer_product.h"
#include "reference/kernels.h"

static const Tensor *tensor_at(const Node *node, const Tensor *const *inputs, int input) {
  return input < 0 ? NULL : optional_input(node, inputs, input);
}

/* An element of the product. */
typedef struct Place {
  const Walk *batch;
  int64_t row, column;
} Place;

/* The number of a place: of one for all, of a list whose number `own` it is, or of what broadcasts to the product. */
static double number_at(const Tensor *tensor, const Place *at, int64_t own) {
  if (!tensor) return 0;
  if (tensor->rank < 2) return tensor_get(tensor, tensor_count(tensor) > 1 ? own : 0);
  int64_t i = 0;
  for (int axis = 0, left = tensor->rank; axis < tensor->rank; axis++, left--) {
    int64_t index = 0;
    if (tensor->shape[axis] > 1)
      index = left == 1 ? at->column : left == 2 ? at->row : at->batch->index[at->batch->rank + 2 - left];
    i = i * tensor->shape[axis] + index;
  }
  return tensor_get(tensor, i);
}

/* The number of element i of the result. */
static double number_of_result(const Tensor *tensor, const Tensor *y, int64_t i) {
  int64_t place = 0, stride = 1;
  for (int axis = tensor->rank - 1, own = y->rank - 1; axis >= 0; axis--, own--) {
    if (tensor->shape[axis] > 1) place += i % y->shape[own] * stride;
    stride *= tensor->shape[axis];
    if (own >= 0) i /= y->shape[own];
  }
  return tensor_get(tensor, place);
}

typedef struct Operands {
  const Node *node;
  const Tensor *a_scale, *a_zero, *b_scale, *b_zero, *bias, *addend, *y_scale, *y_zero;
} Operands;

static float scale_of(const Operands *o, const Tensor *y, int64_t i, const Place *at) {
  float scale = (float)number_at(o->a_scale, at, at->row) * (float)number_at(o->b_scale, at, at->column);
  if (o->node->op->kind == OP_QGemm) scale *= (float)node_float(o->node, ATTR_alpha);
  return o->y_scale ? scale / (float)number_of_result(o->y_scale, y, i) : scale;
}

static void finish(const Operands *o, Tensor *y, int64_t i, const Place *at, int64_t sum) {
  sum += (int64_t)number_at(o->bias, at, at->column);
  if (y->dtype == RNNCC_I32) {
    tensor_set_int(y, i, wrap_int(RNNCC_I32, sum));
    return;
  }
  float value = (float)sum * scale_of(o, y, i, at);
  if (o->addend) value += (float)number_at(o->addend, at, at->column);
  if (y->dtype == RNNCC_F32) {
    tensor_set(y, i, (double)value);
    return;
  }
  float least = (float)dtype_min(y->dtype), most = (float)dtype_max(y->dtype);
  value = rintf(value) + (o->y_zero ? (float)number_of_result(o->y_zero, y, i) : 0);
  tensor_set(y, i, (double)fminf(fmaxf(value, least), most));
}

const char *ref_integer_product(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const ProductInputs *at = product_inputs(node);
  Tensor a = *inputs[at->a], b = *inputs[at->b], *y = outputs[0];
  const Operands o = {node,
                      tensor_at(node, inputs, at->a_scale),
                      tensor_at(node, inputs, at->a_zero),
                      tensor_at(node, inputs, at->b_scale),
                      tensor_at(node, inputs, at->b_zero),
                      tensor_at(node, inputs, at->bias),
                      tensor_at(node, inputs, at->addend),
                      tensor_at(node, inputs, at->y_scale),
                      tensor_at(node, inputs, at->y_zero)};
  bool turned = at->op == OP_QGemm && node_int(node, ATTR_transB) != 0;
  bool one_row = a.rank == 1, one_column = b.rank == 1;
  int64_t M = one_row ? 1 : a.shape[a.rank - 2], K = a.shape[a.rank - 1];
  int64_t N = one_column ? 1 : b.shape[b.rank - (turned ? 2 : 1)];
  if (K != b.shape[one_column ? 0 : b.rank - (turned ? 1 : 2)]) return "inner dimensions differ";
  Walk batch = walk_over(y->rank - !one_row - !one_column, y->shape);
  a.rank -= one_row ? 1 : 2;
  b.rank -= one_column ? 1 : 2;
  if (!walk_add_broadcast(&batch, &a) || !walk_add_broadcast(&batch, &b)) return "batch dimensions do not broadcast";
  int64_t matrix = 0;
  for (bool on = walk_begin(&batch); on; on = walk_next(&batch), matrix++)
    for (int64_t i = 0; i < M * N; i++) {
      const Place place = {&batch, i / N, i % N};
      int64_t row = i / N, column = i % N, sum = 0, from_a = batch.offset[0] * M * K + row * K;
      int64_t from_b = batch.offset[1] * K * N + (turned ? column * K : column), step = turned ? 1 : N;
      int64_t a_zero = (int64_t)number_at(o.a_zero, &place, row);
      int64_t b_zero = (int64_t)number_at(o.b_zero, &place, column);
      for (int64_t k = 0; k < K; k++)
        sum += (tensor_get_int(inputs[at->a], from_a + k) - a_zero) *
               (tensor_get_int(inputs[at->b], from_b + k * step) - b_zero);
      finish(&o, y, matrix * M * N + i, &place, sum);
    }
  return NULL;
}
