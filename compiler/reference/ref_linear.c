/* SPDX-License-Identifier: MIT */
/* CumSum, CumProd and Det. */
#include <math.h>
#include <stdlib.h>

#include "reference/kernels.h"

/* What running sums, or products, begin with and add, or multiply. */
typedef struct Running {
  bool product, exclusive;
} Running;

static double next_float(const Running *running, double total, double x) {
  return running->product ? total * x : total + x;
}
static int64_t next_int(const Running *running, DType dtype, int64_t total, int64_t x) {
  return wrap_int(dtype, running->product ? wrap_mul(total, x) : wrap_add(total, x));
}

/* One sum or product of n elements, `stride` apart, from `first` on; integers wrap around. */
static void run_along(const Running *running, const Tensor *x, Tensor *y, int64_t first, int64_t n, int64_t stride) {
  double total = running->product;
  int64_t int_total = running->product;
  bool floating = dtype_is_float(x->dtype);
  for (int64_t i = 0; i < n; i++) {
    int64_t at = first + i * stride, int_before = int_total;
    double before = total;
    if (floating)
      total = next_float(running, total, tensor_get(x, at));
    else
      int_total = next_int(running, x->dtype, int_total, tensor_get_int(x, at));
    if (floating)
      tensor_set(y, at, running->exclusive ? before : total);
    else
      tensor_set_int(y, at, running->exclusive ? int_before : int_total);
  }
}

const char *ref_cumsum(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  int axis = tensor_count(inputs[1]) == 1 ? normal_axis(tensor_get_int(inputs[1], 0), x->rank) : -1;
  if (axis < 0) return "axis out of range";
  int64_t n = x->shape[axis], inner = tensor_extent(x, axis + 1, x->rank), total = tensor_count(x);
  const Running running = {is_op(node, OP_CumProd), node_int(node, ATTR_exclusive) != 0};
  bool reverse = node_int(node, ATTR_reverse) != 0;
  for (int64_t sum = 0; n > 0 && sum < total / n; sum++) {
    int64_t first = sum / inner * n * inner + sum % inner, last = first + (n - 1) * inner;
    run_along(&running, x, outputs[0], reverse ? last : first, n, reverse ? -inner : inner);
  }
  return NULL;
}

/* The matrix is destroyed: elimination with partial pivoting, in double. */
static double eliminate(double *a, int64_t m) {
  double product = 1;
  for (int64_t step = 0; step < m; step++) {
    int64_t pivot = step;
    for (int64_t row = step; row < m; row++)
      if (fabs(a[row * m + step]) > fabs(a[pivot * m + step])) pivot = row;
    if (a[pivot * m + step] == 0) return 0;
    for (int64_t column = 0; column < m && pivot != step; column++) {
      double kept = a[pivot * m + column];
      a[pivot * m + column] = a[step * m + column];
      a[step * m + column] = kept;
    }
    product *= pivot == step ? a[step * m + step] : -a[step * m + step];
    for (int64_t row = step + 1; row < m; row++) {
      double factor = a[row * m + step] / a[step * m + step];
      for (int64_t column = step; column < m; column++) a[row * m + column] -= factor * a[step * m + column];
    }
  }
  return product;
}

const char *ref_determinant(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  (void)node;
  const Tensor *x = inputs[0];
  int64_t m = x->shape[x->rank - 1], count = tensor_count(outputs[0]);
  double *matrix = malloc((size_t)(m * m + 1) * sizeof *matrix);
  if (!matrix) return "out of memory";
  for (int64_t i = 0; i < count; i++) {
    for (int64_t k = 0; k < m * m; k++) matrix[k] = tensor_get(x, i * m * m + k);
    tensor_set(outputs[0], i, eliminate(matrix, m));
  }
  free(matrix);
  return NULL;
}
