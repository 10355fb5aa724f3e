/* SPDX-License-Identifier: MIT */
/* MatMul and Gemm: C[M,N] = A[M,K] B[K,N]. */
#include "reference/kernels.h"

/* One matrix inside a tensor: element (row, column) is at offset + row * rows + column * columns. */
typedef struct Matrix {
  const Tensor *tensor;
  int64_t offset, rows, columns; /* strides in elements */
} Matrix;

static double dot_float(const Matrix *a, const Matrix *b, int64_t row, int64_t column, int64_t K) {
  double sum = 0;
  for (int64_t k = 0; k < K; k++)
    sum += tensor_get(a->tensor, a->offset + row * a->rows + k * a->columns) *
           tensor_get(b->tensor, b->offset + k * b->rows + column * b->columns);
  return sum;
}

static int64_t dot_int(const Matrix *a, const Matrix *b, int64_t row, int64_t column, int64_t K) {
  int64_t sum = 0;
  for (int64_t k = 0; k < K; k++)
    sum = wrap_add(sum, wrap_mul(tensor_get_int(a->tensor, a->offset + row * a->rows + k * a->columns),
                                 tensor_get_int(b->tensor, b->offset + k * b->rows + column * b->columns)));
  return sum;
}

static void multiply(const Matrix *a, const Matrix *b, int64_t M, int64_t N, int64_t K, Tensor *out, int64_t offset) {
  for (int64_t i = 0; i < M * N; i++) {
    if (dtype_is_float(out->dtype))
      tensor_set(out, offset + i, dot_float(a, b, i / N, i % N, K));
    else
      tensor_set_int(out, offset + i, wrap_int(out->dtype, dot_int(a, b, i / N, i % N, K)));
  }
}

/* A vector on the left is a row, on the right a column, as numpy.matmul has it; that axis is missing in the output. */
const char *ref_matmul(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  (void)node;
  Tensor a = *inputs[0], b = *inputs[1], *out = outputs[0];
  if (a.rank < 1 || b.rank < 1) return "MatMul of a scalar";
  int64_t M = a.rank > 1 ? a.shape[a.rank - 2] : 1, K = a.shape[a.rank - 1];
  int64_t N = b.rank > 1 ? b.shape[b.rank - 1] : 1;
  if (K != b.shape[b.rank > 1 ? b.rank - 2 : 0]) return "inner dimensions differ";

  Walk batch = walk_over(out->rank - (inputs[0]->rank > 1) - (inputs[1]->rank > 1), out->shape);
  a.rank -= a.rank > 1 ? 2 : 1;
  b.rank -= b.rank > 1 ? 2 : 1;
  if (!walk_add_broadcast(&batch, &a) || !walk_add_broadcast(&batch, &b)) return "batch dimensions do not broadcast";
  int64_t matrix = 0;
  for (bool on = walk_begin(&batch); on; on = walk_next(&batch)) {
    Matrix left = {inputs[0], batch.offset[0] * M * K, K, 1};
    Matrix right = {inputs[1], batch.offset[1] * K * N, N, 1};
    multiply(&left, &right, M, N, K, out, M * N * matrix++);
  }
  return NULL;
}

static int64_t scale(double factor, int64_t value) {
  double product = factor * (double)value;
  if (factor == 1) return value;
  return product > -0x1p63 && product < 0x1p63 ? (int64_t)product : INT64_MIN;
}

/* alpha A' B' + beta C, where a beta of 0 leaves C out, whatever is in it. With integers alpha and beta apply in
 * double, as long as they are not 1. */
const char *ref_gemm(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *a = inputs[0], *b = inputs[1], *c = optional_input(node, inputs, 2);
  Tensor *out = outputs[0];
  bool a_turned = node_int(node, ATTR_transA), b_turned = node_int(node, ATTR_transB);
  double alpha = node_float(node, ATTR_alpha), beta = node_float(node, ATTR_beta);
  int64_t M = a->shape[a_turned], K = a->shape[!a_turned], N = b->shape[!b_turned];
  if (b->shape[b_turned] != K) return "inner dimensions differ";
  Matrix left = {a, 0, a_turned ? 1 : K, a_turned ? M : 1};
  Matrix right = {b, 0, b_turned ? 1 : N, b_turned ? K : 1};

  Walk walk = walk_over(2, (int64_t[]){M, N});
  if (c && !walk_add_broadcast(&walk, c)) return "C does not broadcast";
  bool adds = c && beta != 0;
  int64_t i = 0;
  for (bool on = walk_begin(&walk); on; on = walk_next(&walk), i++) {
    if (dtype_is_float(out->dtype)) {
      double sum = alpha * dot_float(&left, &right, i / N, i % N, K);
      tensor_set(out, i, adds ? sum + beta * tensor_get(c, walk.offset[0]) : sum);
      continue;
    }
    int64_t sum = dot_int(&left, &right, i / N, i % N, K);
    int64_t added = adds ? tensor_get_int(c, walk.offset[0]) : 0;
    tensor_set_int(out, i, wrap_int(out->dtype, wrap_add(scale(alpha, sum), scale(beta, added))));
  }
  return NULL;
}
