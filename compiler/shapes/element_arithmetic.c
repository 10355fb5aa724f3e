/* SPDX-License-Identifier: MIT */
/*
 * Arithmetic on elements that are ratios of a dimension and a number. An f32 is exact while the numerator stays within
 * 24 bits and the divisor is a power of two. A quotient n / d by another divisor is rounded, but with n below 2^24
 * never across an integer, which is at least 1/d away: Floor, Ceil and Cast of it are exact, other ops are unknown.
 */
#include "shapes/element_arithmetic.h"

#include "shapes/shape.h"
#include "support/numbers.h"

static bool is_float(const Value *value) { return dtype_is_float(value->dtype); }

static bool is_power_of_two(int64_t n) { return (n & (n - 1)) == 0; }
static bool is_exact(const Ratio *ratio) { return is_power_of_two(ratio->divisor); }

bool ratio_is_held(const Value *value, const Ratio *ratio) {
  const int64_t most = (int64_t)1 << FLOAT_BITS;
  if (!is_float(value)) return ratio->divisor == 1;
  return dim_upper(ratio->numerator) <= most && dim_lower(ratio->numerator) >= -most && ratio->divisor <= most;
}

/* The result is known. */
static bool known(const Dim *numerator, int64_t divisor, Ratio *result) {
  *result = (Ratio){numerator, divisor};
  return true;
}

static bool whole(const Dim *number, Ratio *result) { return known(number, 1, result); }

static const Dim *scaled(DimTable *dims, const Dim *number, int64_t by) {
  return dim_mul(dims, number, dim_const(dims, by));
}

/* a = x / divisor, b = y / divisor */
typedef struct Aligned {
  const Dim *x, *y;
  int64_t divisor;
} Aligned;

/* False unless both are exact; then one divisor divides the other. */
static bool align(DimTable *dims, const Ratio *a, const Ratio *b, Aligned *both) {
  if (!is_exact(a) || !is_exact(b)) return false;
  both->divisor = max_int(a->divisor, b->divisor);
  both->x = scaled(dims, a->numerator, both->divisor / a->divisor);
  both->y = scaled(dims, b->numerator, both->divisor / b->divisor);
  return true;
}

static bool add(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  (void)node;
  Aligned both;
  return align(dims, a, b, &both) && known(dim_add(dims, both.x, both.y), both.divisor, result);
}

static bool subtract(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  Ratio negative = {scaled(dims, b->numerator, -1), b->divisor};
  return add(dims, node, a, &negative, result);
}

static bool minimum(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  (void)node;
  Aligned both;
  return align(dims, a, b, &both) && known(dim_min(dims, both.x, both.y), both.divisor, result);
}

static bool maximum(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  (void)node;
  Aligned both;
  return align(dims, a, b, &both) && known(dim_max(dims, both.x, both.y), both.divisor, result);
}

/* In lowest terms, as far as the divisor's factors of two go. */
static Ratio reduced(DimTable *dims, const Dim *numerator, int64_t divisor) {
  const Dim *two = dim_const(dims, 2);
  for (const Dim *half; divisor % 2 == 0; numerator = half, divisor /= 2) {
    half = dim_div(dims, numerator, two);
    if (dim_mul(dims, half, two) != numerator) break;
  }
  return (Ratio){numerator, divisor};
}

static bool multiply(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  (void)node;
  int64_t divisor;
  if (!is_exact(a) || !is_exact(b) || __builtin_mul_overflow(a->divisor, b->divisor, &divisor)) return false;
  *result = reduced(dims, dim_mul(dims, a->numerator, b->numerator), divisor);
  return true;
}

/* Rounded towards zero: what is above zero and what is below it are rounded down alike. */
static bool truncate(DimTable *dims, const Dim *a, const Dim *b, Ratio *result) {
  const Dim *zero = dim_const(dims, 0), *above = dim_max(dims, a, zero),
            *below = dim_max(dims, dim_sub(dims, zero, a), zero);
  return dim_lower(b) > 0 && whole(dim_sub(dims, dim_div(dims, above, b), dim_div(dims, below, b)), result);
}

/* Integers divide by anything positive, floats by positive constants. */
static bool divide(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  if (!is_float(node->outputs[0])) return truncate(dims, a->numerator, b->numerator, result);
  int64_t divisor;
  if (!is_exact(a) || !is_exact(b) || !dim_is_const(b->numerator) || dim_value(b->numerator) <= 0) return false;
  if (__builtin_mul_overflow(a->divisor, dim_value(b->numerator), &divisor)) return false;
  *result = reduced(dims, scaled(dims, a->numerator, b->divisor), divisor);
  return true;
}

static bool modulo(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  if (is_float(node->outputs[0]) || dim_lower(b->numerator) <= 0) return false;
  if (node_int(node, ATTR_fmod) && !dim_at_most(dims, dim_const(dims, 0), a->numerator)) return false;
  const Dim *quotient = dim_div(dims, a->numerator, b->numerator);
  return whole(dim_sub(dims, a->numerator, dim_mul(dims, quotient, b->numerator)), result);
}

static bool negate(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  (void)node, (void)b;
  return known(scaled(dims, a->numerator, -1), a->divisor, result);
}

static bool absolute(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  const Dim *zero = dim_const(dims, 0);
  if (dim_at_most(dims, a->numerator, zero)) return negate(dims, node, a, b, result);
  *result = *a;
  return dim_at_most(dims, zero, a->numerator);
}

static bool floor_of(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  (void)node, (void)b;
  return whole(dim_div(dims, a->numerator, dim_const(dims, a->divisor)), result);
}

static bool ceil_of(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  Ratio raised = {dim_add(dims, a->numerator, dim_const(dims, a->divisor - 1)), a->divisor};
  return floor_of(dims, node, &raised, b, result);
}

static bool same(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  (void)dims, (void)node, (void)b;
  *result = *a;
  return is_exact(a);
}

/* Only if the new type can hold the number. */
static bool cast(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  DType to = node->outputs[0]->dtype;
  if (is_float(node->outputs[0])) return same(dims, node, a, b, result);
  if ((to == RNNCC_I64 || to == RNNCC_I32) && a->divisor == 1) return same(dims, node, a, b, result);
  if (to == RNNCC_I64 || to == RNNCC_I32) return truncate(dims, a->numerator, dim_const(dims, a->divisor), result);
  if (to != RNNCC_BOOL) return false;
  bool zero = dim_equals(a->numerator, 0);
  bool never_zero = dim_lower(a->numerator) > 0 || dim_upper(a->numerator) < 0;
  return (zero || never_zero) && whole(dim_const(dims, never_zero), result);
}

/* ---- comparisons: 0 or 1 where the bounds decide ---- */

static bool decided(DimTable *dims, bool yes, bool no, Ratio *result) {
  return (yes || no) && whole(dim_const(dims, yes), result);
}

/* a < b, of integers. */
static bool below(DimTable *dims, const Dim *a, const Dim *b) {
  return dim_at_most(dims, dim_add(dims, a, dim_const(dims, 1)), b);
}

static bool equal(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  (void)node;
  Aligned both;
  return align(dims, a, b, &both) &&
         decided(dims, same_dim(both.x, both.y), below(dims, both.x, both.y) || below(dims, both.y, both.x), result);
}

static bool less(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  (void)node;
  Aligned both;
  return align(dims, a, b, &both) &&
         decided(dims, below(dims, both.x, both.y), dim_at_most(dims, both.y, both.x), result);
}

static bool less_or_equal(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  (void)node;
  Aligned both;
  return align(dims, a, b, &both) &&
         decided(dims, dim_at_most(dims, both.x, both.y), below(dims, both.y, both.x), result);
}

static bool greater(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  return less(dims, node, b, a, result);
}

static bool greater_or_equal(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  return less_or_equal(dims, node, b, a, result);
}

static bool not(DimTable * dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  (void)node, (void)b;
  return whole(dim_sub(dims, dim_const(dims, 1), a->numerator), result);
}

static bool exclusive_or(DimTable *dims, const Node *node, const Ratio *a, const Ratio *b, Ratio *result) {
  Ratio same_value;
  return equal(dims, node, a, b, &same_value) && not(dims, node, &same_value, NULL, result);
}

static ElementOperation *const operations[N_OPS] = {[OP_Abs] = absolute,
                                                    [OP_Add] = add,
                                                    [OP_And] = minimum,
                                                    [OP_Cast] = cast,
                                                    [OP_CastLike] = cast,
                                                    [OP_Ceil] = ceil_of,
                                                    [OP_Div] = divide,
                                                    [OP_Equal] = equal,
                                                    [OP_Floor] = floor_of,
                                                    [OP_Greater] = greater,
                                                    [OP_GreaterOrEqual] = greater_or_equal,
                                                    [OP_Less] = less,
                                                    [OP_LessOrEqual] = less_or_equal,
                                                    [OP_Max] = maximum,
                                                    [OP_Min] = minimum,
                                                    [OP_Mod] = modulo,
                                                    [OP_Mul] = multiply,
                                                    [OP_Neg] = negate,
                                                    [OP_Not] = not,
                                                    [OP_Or] = maximum,
                                                    [OP_Sub] = subtract,
                                                    [OP_Sum] = add,
                                                    [OP_Xor] = exclusive_or};
static ElementOperation *const reductions[N_OPS] = {
    [OP_ReduceMax] = maximum, [OP_ReduceMin] = minimum, [OP_ReduceProd] = multiply, [OP_ReduceSum] = add};

ElementOperation *element_operation(OpKind op) { return operations[op]; }
ElementOperation *element_reduction(OpKind op) { return reductions[op]; }
