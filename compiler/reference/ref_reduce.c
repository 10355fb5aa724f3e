/* SPDX-License-Identifier: MIT */
/*
 * Reductions over any set of axes, the global pools, and ArgMax/ArgMin. NaN propagates through maxima and minima, and
 * the first NaN wins an ArgMax or ArgMin, as in numpy; ONNX Runtime lets both depend on NaN's place.
 */
#include <math.h>
#include <string.h>

#include "reference/kernels.h"

static double step_sum(double sum, double x) { return sum + x; }
static double step_product(double product, double x) { return product * x; }
static double step_square(double sum, double x) { return sum + x * x; }
static double step_absolute(double sum, double x) { return sum + fabs(x); }
static double step_exp(double sum, double x) { return sum + exp(x); }
static double step_max(double best, double x) { return isnan(best) || x <= best ? best : x; }
static double step_min(double best, double x) { return isnan(best) || x >= best ? best : x; }

static double finish_none(double total, int64_t n) { return (void)n, total; }
static double finish_mean(double total, int64_t n) { return n ? total / (double)n : 0; } /* as ONNX Runtime's */
static double finish_sqrt(double total, int64_t n) { return (void)n, sqrt(total); }
static double finish_log(double total, int64_t n) { return (void)n, log(total); }

static int64_t int_step_square(int64_t sum, int64_t x) { return wrap_add(sum, wrap_mul(x, x)); }
static int64_t int_step_absolute(int64_t sum, int64_t x) { return wrap_add(sum, x < 0 ? wrap_sub(0, x) : x); }
static int64_t int_step_max(int64_t best, int64_t x) { return x > best ? x : best; }
static int64_t int_step_min(int64_t best, int64_t x) { return x < best ? x : best; }

typedef struct Reduction {
  double start;
  double (*step)(double total, double x);
  double (*finish)(double total, int64_t n);
  int64_t int_start;
  int64_t (*int_step)(int64_t total, int64_t x); /* NULL: no integers */
} Reduction;

static const Reduction REDUCTIONS[N_OPS] = {
    [OP_ReduceSum] = {0, step_sum, finish_none, 0, wrap_add},
    [OP_ReduceMean] = {0, step_sum, finish_mean, 0, wrap_add},
    [OP_ReduceMax] = {-INFINITY, step_max, finish_none, INT64_MIN, int_step_max},
    [OP_ReduceMin] = {INFINITY, step_min, finish_none, INT64_MAX, int_step_min},
    [OP_ReduceProd] = {1, step_product, finish_none, 1, wrap_mul},
    [OP_ReduceSumSquare] = {0, step_square, finish_none, 0, int_step_square},
    [OP_ReduceL1] = {0, step_absolute, finish_none, 0, int_step_absolute},
    [OP_ReduceL2] = {0, step_square, finish_sqrt, 0, NULL},
    [OP_ReduceLogSum] = {0, step_sum, finish_log, 0, NULL},
    [OP_ReduceLogSumExp] = {0, step_exp, finish_log, 0, NULL},
    [OP_GlobalMaxPool] = {-INFINITY, step_max, finish_none, 0, NULL},
    [OP_GlobalAveragePool] = {0, step_sum, finish_mean, 0, NULL},
};

static const Reduction *reduction_of(const Node *node) {
  const Reduction *reduction = &REDUCTIONS[node->op->kind];
  if (reduction->step) return reduction;
  bug("no reference for %s", node->op->name);
}

/* Marks the axes to reduce: given by attribute or second input; all of them if there are none. */
static const char *reduced_axes(const Node *node, const Tensor *const *inputs, bool reduced[MAX_RANK]) {
  const Tensor *x = inputs[0];
  memset(reduced, 0, MAX_RANK);
  if (op_is_global_pool(node->op)) {
    for (int axis = 2; axis < x->rank; axis++) reduced[axis] = true;
    return NULL;
  }
  const Tensor *list = optional_input(node, inputs, 1);
  const Attribute *attribute = node_attribute(node, ATTR_axes);
  int64_t n = list ? tensor_count(list) : attribute ? (int64_t)attribute->count : 0;
  bool all = n == 0 && !node_int(node, ATTR_noop_with_empty_axes);
  for (int axis = 0; axis < x->rank; axis++) reduced[axis] = all;
  for (int64_t i = 0; i < n; i++) {
    int axis = normal_axis(list ? tensor_get_int(list, i) : attribute->ints[i], x->rank);
    if (axis < 0) return "axis out of range";
    reduced[axis] = true;
  }
  return NULL;
}

/* The elements that become one output element are a box in x that begins at `base`. */
static double fold(const Reduction *reduction, const Tensor *x, Walk *box, int64_t base, int64_t n) {
  double total = reduction->start, shift = 0;
  if (reduction->step == step_exp) { /* by the maximum, so that exp() cannot overflow */
    shift = -INFINITY;
    for (bool on = walk_begin(box); on; on = walk_next(box)) shift = fmax(shift, tensor_get(x, base + box->offset[0]));
    if (isinf(shift)) shift = 0;
  }
  for (bool on = walk_begin(box); on; on = walk_next(box))
    total = reduction->step(total, tensor_get(x, base + box->offset[0]) - shift);
  return reduction->finish(total, n) + shift;
}

/* An u64 in the order of i64: its greatest and least are theirs. */
static int64_t ordered(const Tensor *x, const Reduction *reduction, int64_t value) {
  bool compares = reduction->step == step_max || reduction->step == step_min;
  return compares && x->dtype == RNNCC_U64 ? value ^ INT64_MIN : value;
}

static int64_t fold_int(const Reduction *reduction, const Tensor *x, Walk *box, int64_t base, int64_t n) {
  int64_t total = reduction->int_start;
  bool positive = x->dtype == RNNCC_U64 && reduction->int_step == int_step_absolute;
  int64_t (*step)(int64_t, int64_t) = positive ? wrap_add : reduction->int_step;
  for (bool on = walk_begin(box); on; on = walk_next(box))
    total = step(total, ordered(x, reduction, tensor_get_int(x, base + box->offset[0])));
  total = ordered(x, reduction, total);
  if (reduction->finish != finish_mean) return total;
  return x->dtype == RNNCC_U64 ? (int64_t)((uint64_t)total / (uint64_t)n) : total / n;
}

/* The maximum of an empty set is the type's least number, the minimum its greatest. */
static int64_t saturate(DType dtype, int64_t value) {
  if (value == INT64_MIN) return dtype_min(dtype);
  return value == INT64_MAX ? wrap_int(dtype, dtype_info(dtype)->kind == DTYPE_UNSIGNED ? -1 : dtype_max(dtype))
                            : value;
}

const char *ref_reduce(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  Tensor *y = outputs[0];
  const Reduction *reduction = reduction_of(node);
  bool reduced[MAX_RANK], floating = dtype_is_float(x->dtype);
  const char *wrong = reduced_axes(node, inputs, reduced);
  if (wrong) return wrong;

  int64_t strides[MAX_RANK], n = 1, groups = 1, i = 0;
  tensor_strides(x, strides);
  Walk outer = walk_over(x->rank, x->shape), box = outer;
  for (int axis = 0; axis < x->rank; axis++) {
    Walk *other = reduced[axis] ? &outer : &box;
    other->shape[axis] = 1;
    *(reduced[axis] ? &n : &groups) *= x->shape[axis];
  }
  if (groups != tensor_count(y)) return "axes differ from the output's shape";
  walk_add(&outer, 0, strides);
  walk_add(&box, 0, strides);
  if (!floating && n == 0 && reduction->finish == finish_mean) return "mean of no integers";
  for (bool on = walk_begin(&outer); on; on = walk_next(&outer), i++) {
    if (floating) {
      tensor_set(y, i, fold(reduction, x, &box, outer.offset[0], n));
      continue;
    }
    int64_t total = fold_int(reduction, x, &box, outer.offset[0], n);
    tensor_set_int(y, i, n ? wrap_int(y->dtype, total) : saturate(y->dtype, total));
  }
  return NULL;
}

/* Whether `a` beats `b`, the best so far. `sign` is 1 for the maximum, -1 for the minimum. */
static bool float_beats(double a, double b, int sign) { return !isnan(b) && (isnan(a) || sign * a > sign * b); }
static bool int_beats(Wide a, Wide b, int sign) { return sign > 0 ? a > b : a < b; }

static bool beats(const Tensor *x, int64_t a, int64_t b, int sign, bool last) {
  if (dtype_is_float(x->dtype)) {
    double challenger = tensor_get(x, a), best = tensor_get(x, b);
    return float_beats(challenger, best, sign) || (last && challenger == best);
  }
  Wide challenger = tensor_get_wide(x, a), best = tensor_get_wide(x, b);
  return int_beats(challenger, best, sign) || (last && challenger == best);
}

const char *ref_arg(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  int axis = normal_axis(node_int(node, ATTR_axis), x->rank), sign = !is_op(node, OP_ArgMax) ? -1 : 1;
  if (axis < 0) return "axis out of range";
  bool last = node_int(node, ATTR_select_last_index);
  int64_t n = x->shape[axis], inner = tensor_extent(x, axis + 1, x->rank);
  if (n == 0 && tensor_count(outputs[0]) > 0) return "no elements to choose from";
  for (int64_t i = 0, count = tensor_count(outputs[0]); i < count; i++) {
    int64_t first = i / inner * n * inner + i % inner, best = 0;
    for (int64_t k = 1; k < n; k++)
      if (beats(x, first + k * inner, first + best * inner, sign, last)) best = k;
    tensor_set_int(outputs[0], i, best);
  }
  return NULL;
}
