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

/* The number at a position, of one for all or one for each. */
static double number_at(const Tensor *tensor, int64_t position) {
  return tensor ? tensor_get(tensor, tensor_extent(tensor, 0, tensor->rank) > 1 ? position : 0) : 0;
}

typedef struct Operands {
  const Node *node;
  const Tensor *a_scale, *a_zero, *b_scale, *b_zero, *bias, *addend, *y_scale, *y_zero;
} Operands;

static float scale_of(const Operands *o, int64_t row, int64_t column) {
  float scale = (float)number_at(o->a_scale, row) * (float)number_at(o->b_scale, column);
  if (o->node->op->kind == OP_QGemm) scale *= (float)node_float(o->node, ATTR_alpha);
  return o->y_scale ? scale / (float)number_at(o->y_scale, 0) : scale;
}

static void finish(const Operands *o, Tensor *y, int64_t at, int64_t row, int64_t column, int64_t sum) {
  sum += (int64_t)number_at(o->bias, column);
  if (y->dtype == RNNCC_I32) {
    tensor_set_int(y, at, wrap_int(RNNCC_I32, sum));
    return;
  }
  float value = (float)sum * scale_of(o, row, column);
  if (o->addend) value += (float)number_at(o->addend, column);
  if (y->dtype == RNNCC_F32) {
    tensor_set(y, at, (double)value);
    return;
  }
  float least = (float)dtype_min(y->dtype), most = (float)dtype_max(y->dtype);
  value = rintf(value) + (float)number_at(o->y_zero, 0);
  tensor_set(y, at, (double)fminf(fmaxf(value, least), most));
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
  int64_t M = a.rank > 1 ? a.shape[a.rank - 2] : 1, K = a.shape[a.rank - 1], N = b.shape[b.rank - (turned ? 2 : 1)];
  if (b.rank < 2 || K != b.shape[b.rank - (turned ? 1 : 2)]) return "inner dimensions differ";
  Walk batch = walk_over(y->rank - (a.rank > 1) - 1, y->shape);
  a.rank -= a.rank > 1 ? 2 : 1;
  b.rank -= 2;
  if (!walk_add_broadcast(&batch, &a) || !walk_add_broadcast(&batch, &b)) return "batch dimensions do not broadcast";
  int64_t matrix = 0;
  for (bool on = walk_begin(&batch); on; on = walk_next(&batch), matrix++)
    for (int64_t i = 0; i < M * N; i++) {
      int64_t row = i / N, column = i % N, sum = 0, from_a = batch.offset[0] * M * K + row * K;
      int64_t from_b = batch.offset[1] * K * N + (turned ? column * K : column), step = turned ? 1 : N;
      int64_t a_zero = (int64_t)number_at(o.a_zero, row), b_zero = (int64_t)number_at(o.b_zero, column);
      for (int64_t k = 0; k < K; k++)
        sum += (tensor_get_int(inputs[at->a], from_a + k) - a_zero) *
               (tensor_get_int(inputs[at->b], from_b + k * step) - b_zero);
      finish(&o, y, matrix * M * N + i, row, column, sum);
    }
  return NULL;
}
