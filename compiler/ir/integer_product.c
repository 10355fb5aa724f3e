/* SPDX-License-Identifier: MIT */
#include "ir/integer_product.h"

#include <stdlib.h>

#include "ir/tensor.h"

static const ProductInputs operators[] = {
    {OP_MatMulInteger, 0, -1, 2, 1, -1, 3, -1, -1, -1, -1},
    {OP_QLinearMatMul, 0, 1, 2, 3, 4, 5, -1, -1, 6, 7},
    {OP_QGemm, 0, 1, 2, 3, 4, 5, 6, -1, 7, 8},
    {OP_MatMulIntegerToFloat, 0, 2, 4, 1, 3, 5, -1, 6, -1, -1},
};

const ProductInputs *product_inputs(const Node *node) {
  for (int i = 0; i < (int)(sizeof operators / sizeof *operators); i++)
    if (operators[i].op == node->op->kind) return &operators[i];
  return NULL;
}

/* Absent, or one number for all. */
static bool is_one(const Value *value) { return !value || value_max_count(value) == 1; }
static bool is_known_one(const Value *value) { return !value || (value->data && value_count(value) == 1); }

/* ---- weights ---- */

static int byte_at(const Value *value, int64_t i) {
  return value->dtype == RNNCC_U8 ? ((const uint8_t *)value->data)[i] : ((const int8_t *)value->data)[i];
}

/* Columns of the matrices, and how many elements stand between two of them, and between two depths. */
typedef struct Columns {
  int64_t matrices, depth, columns, column_stride, depth_stride;
} Columns;

static Columns columns_of(const Value *b, bool turned) {
  int64_t rows = dim_value(b->shape[b->rank - 2]), last = dim_value(b->shape[b->rank - 1]);
  Columns c = {.depth = turned ? last : rows, .columns = turned ? rows : last};
  c.matrices = rows * last ? value_count(b) / (rows * last) : 0;
  c.column_stride = turned ? last : 1;
  c.depth_stride = turned ? 1 : last;
  return c;
}

static int zero_of(const Value *zero, int64_t column) {
  return !zero ? 0 : byte_at(zero, value_count(zero) > 1 ? column : 0);
}

/* The extremes of the differences, and the largest sum of their magnitudes in a column. */
typedef struct Reach {
  int least, most;
  int64_t sum;
} Reach;

static Reach reach_of(const Value *b, const Value *zero, bool turned) {
  Columns c = columns_of(b, turned);
  Reach reach = {0, 0, 0};
  for (int64_t i = 0; i < c.matrices * c.columns; i++) {
    int64_t column = i % c.columns, first = i / c.columns * c.columns * c.depth + column * c.column_stride, sum = 0;
    int less = zero_of(zero, column);
    for (int64_t k = 0; k < c.depth; k++) {
      int w = byte_at(b, first + k * c.depth_stride) - less;
      reach.least = w < reach.least ? w : reach.least;
      reach.most = w > reach.most ? w : reach.most;
      sum += abs(w);
    }
    reach.sum = sum > reach.sum ? sum : reach.sum;
  }
  return reach;
}

static bool fits(Reach reach) { return reach.least >= INT8_MIN && reach.most <= INT8_MAX; }

CentredWeights centred_weights(Arena *arena, const Value *b, const Value *zero, bool turned) {
  Columns c = columns_of(b, turned);
  bool fit = fits(reach_of(b, zero, turned));
  int top = b->dtype == RNNCC_U8 ? 128 : 0; /* where differences do not fit: the numbers themselves, as s8 */
  CentredWeights centred = {.numbers = ARENA_ARRAY(arena, int8_t, value_count(b) ? value_count(b) : 1)};
  if (!fit) centred.zero = zero_of(zero, 0) - top;
  for (int64_t i = 0; i < c.matrices * c.columns; i++) {
    int64_t column = i % c.columns, first = i / c.columns * c.columns * c.depth + column * c.column_stride;
    int less = fit ? zero_of(zero, column) : top;
    for (int64_t k = 0; k < c.depth; k++) {
      int64_t at = first + k * c.depth_stride;
      centred.numbers[at] = (int8_t)(byte_at(b, at) - less);
    }
  }
  return centred;
}

/* ---- what the kernels run ---- */

static double largest_bias(const Value *bias) {
  double most = 0;
  for (int64_t i = 0; bias && bias->data && i < value_count(bias); i++) {
    double x = value_element(bias, i);
    if (x < 0) x = -x;
    if (x > most) most = x;
  }
  return most;
}

/* One for each column, or absent. */
static bool is_row(const Value *value, const Dim *columns) {
  if (!value) return true;
  if (value->rank < 1 || !dim_equals(value->shape[value->rank - 1], dim_value(columns))) return false;
  for (int axis = 0; axis < value->rank - 1; axis++)
    if (!dim_equals(value->shape[axis], 1)) return false;
  return true;
}

/* One number for all, or one for each column, the same in all matrices. */
static bool is_of_columns(const Value *value, const Dim *columns) {
  if (is_one(value)) return true;
  for (int axis = 0; axis < value->rank - 1; axis++)
    if (!dim_equals(value->shape[axis], 1)) return false;
  return value->shape[value->rank - 1] == columns;
}

static bool scales_have_kernel(const Node *node, const ProductInputs *at) {
  const Value *a = node_input(node, at->a_scale), *b = node_input(node, at->b_scale);
  if (at->addend >= 0) return is_one(a);
  return is_known_one(a) && (!b || b->data) && is_known_one(node_input(node, at->y_scale)) &&
         is_known_one(node_input(node, at->y_zero));
}

/* Packed in each run: of any bytes. */
static bool matrix_of_run_has_kernel(const Node *node, const ProductInputs *at) {
  const Value *b = node->inputs[at->b], *addend = node_input(node, at->addend);
  const Dim *depth = b->shape[b->rank - 2];
  if (addend && (addend->rank != 1 || addend->shape[0] != b->shape[b->rank - 1])) return false;
  if (at->op == OP_QGemm || !dim_is_const(depth) || !is_known_one(node_input(node, at->b_zero))) return false;
  return dim_value(depth) > 0 && 255.0 * 255.0 * (double)dim_value(depth) < 0x1p31;
}

bool integer_product_has_kernel(const Node *node) {
  const ProductInputs *at = product_inputs(node);
  const Value *a = node->inputs[at->a], *b = node->inputs[at->b], *zero = node_input(node, at->b_zero);
  bool is_gemm = at->op == OP_QGemm, turned = is_gemm && node_int(node, ATTR_transB) != 0;
  if ((zero && !zero->data) || b->rank < 2 || a->rank < 1) return false;
  if (!is_one(node_input(node, at->a_zero)) || !scales_have_kernel(node, at)) return false;
  const Dim *columns = b->shape[b->rank - (turned ? 2 : 1)];
  if (!is_of_columns(zero, columns) || !is_of_columns(node_input(node, at->b_scale), columns)) return false;
  if (!b->data) return matrix_of_run_has_kernel(node, at);
  if (is_gemm && node_int(node, ATTR_transA) != 0) return false;
  int64_t depth = dim_value(b->shape[b->rank - (turned ? 1 : 2)]);
  if (depth == 0 || value_count(b) == 0) return false;
  if (!is_row(node_input(node, at->bias), columns) || !is_row(node_input(node, at->addend), columns)) return false;
  Reach reach = reach_of(b, zero, turned);
  bool one_zero = !zero || value_count(zero) == 1;
  return (one_zero || fits(reach)) && 255.0 * (double)reach.sum + largest_bias(node_input(node, at->bias)) < 0x1p31;
}
