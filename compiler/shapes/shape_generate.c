/* SPDX-License-Identifier: MIT */
/* Tensors made from shapes and a few numbers: Size, ConstantOfShape, EyeLike, Range. */
#include <math.h>

#include "ir/tensor.h"
#include "shapes/elements.h"
#include "shapes/intervals.h"
#include "shapes/shape.h"

bool shape_size(Graph *graph, Node *node) {
  const Value *input = node->inputs[0];
  set_shape(graph, node, 0, 0, NULL);
  node->outputs[0]->elements = ARENA_ARRAY(graph->arena, const Dim *, 1);
  node->outputs[0]->elements[0] = value_count_dim(graph, input, 0, input->rank);
  return true;
}

/* Without a value, zeros of f32. */
bool shape_constant_of_shape(Graph *graph, Node *node) {
  const Attribute *value = node_attribute(node, ATTR_value);
  DimList shape;
  if (!operand_dims(graph, node, ATTR_NONE, 0, &shape)) return false;
  if (!check_made_rank(node, "the result", shape.n)) return false;
  if (value && !(value_static(value->tensor) && value_count(value->tensor) == 1))
    return shape_error(node, "`value` must be one number, found %s", shape_text(graph, value->tensor));
  node->outputs[0]->dtype = value ? value->tensor->dtype : RNNCC_F32;
  return set_shape(graph, node, 0, shape.n, shape.items);
}

bool shape_eye_like(Graph *graph, Node *node) {
  const Value *input = node->inputs[0];
  if (!check_rank(graph, node, 0, 2, 2)) return false;
  node->outputs[0]->dtype = input->dtype;
  const Attribute *given = node_attribute(node, ATTR_dtype);
  if (given) node->outputs[0]->dtype = node_dtype(node, ATTR_dtype);
  if (node->outputs[0]->dtype == RNNCC_NONE) return shape_unsupported(node, "`dtype` is \"%.100s\"", given->s);
  return set_shape(graph, node, 0, 2, input->shape);
}

static const char *const range_operands[] = {"start", "limit", "delta"};

static bool check_range_operands(Graph *graph, const Node *node) {
  bool good = true;
  for (int i = 0; i < 3; i++) {
    const Value *value = node->inputs[i];
    if (value_static(value) && value_count(value) == 1) continue;
    good =
        shape_error(node, "%s (input %d) must be one number, found %s", range_operands[i], i, shape_text(graph, value));
  }
  return good;
}

static bool is_known(Graph *graph, const Value *value) { return value->data || known_ratios(graph, value); }

static bool all_known(Graph *graph, const Node *node) {
  return is_known(graph, node->inputs[0]) && is_known(graph, node->inputs[1]) && is_known(graph, node->inputs[2]);
}

bool read_range(Graph *graph, const Node *node, Ratio *start, Ratio *limit, Ratio *delta) {
  Ratio *const numbers[] = {start, limit, delta};
  for (int i = 0; i < 3; i++) {
    const Ratio *known = known_ratios(graph, node->inputs[i]);
    if (!known)
      return shape_unsupported(node, "%s (input %d) of %s, which is no ratio of integers, beside one from shapes",
                               range_operands[i], i, dtype_name(node->inputs[i]->dtype));
    *numbers[i] = *known;
  }
  return true;
}

/* For constant floats, which need not be ratios. */
static bool constant_range_extent(Graph *graph, const Node *node, const Dim **count) {
  double number[3];
  for (int i = 0; i < 3; i++)
    if (!value_number(node->inputs[i], &number[i])) return false;
  double steps = ceil((number[1] - number[0]) / number[2]);
  *count = dim_const(graph->dims, steps > 0 ? (int64_t)fmin(steps, 0x1p62) : 0);
  return number[2] != 0 && steps == steps;
}

static bool refuse_range(Graph *graph, const Node *node) {
  int i = 0;
  while (is_known(graph, node->inputs[i])) i++;
  const Value *value = node->inputs[i];
  return shape_unsupported(node,
                           "%s (input %d, `%.200s`) must be known at compile time: a constant%s, computed from shapes, "
                           "or an integer that has a maximum: %s",
                           range_operands[i], i, value->name, freeze_hint(graph, value), interval_hint);
}

/* The interval of an operand that is a whole number in every run. Floats are, if they are constants, or cast from
 * integers; exporters write a range of floats so. Beyond what f32 has exactly the interval is open. */
static IntRange whole_interval(Graph *graph, const Value *value) {
  static const int64_t exact = 1 << 24;
  IntRange of = {INT64_MIN, INT64_MAX};
  double number;
  if (!dtype_is_float(value->dtype)) return value_interval(graph, value);
  if (value_number(value, &number) && number == rint(number) && fabs(number) <= (double)exact)
    of = (IntRange){(int64_t)number, (int64_t)number};
  else if (is_op(value->producer, OP_Cast))
    of = value_interval(graph, value->producer->inputs[0]);
  return (IntRange){of.least < -exact ? INT64_MIN : of.least, of.most > exact ? INT64_MAX : of.most};
}

/* ceil((limit - start) / delta) of a positive delta, at least 0; INT64_MAX if it is no int64_t. */
static int64_t elements_between(int64_t start, int64_t limit, int64_t delta) {
  int64_t distance;
  if (__builtin_sub_overflow(limit, start, &distance)) return limit > start ? INT64_MAX : 0;
  return distance > 0 ? (distance - 1) / delta + 1 : 0;
}

static IntRange negated(IntRange of) {
  return (IntRange){of.most == INT64_MAX ? INT64_MIN : -of.most, of.least == INT64_MIN ? INT64_MAX : -of.least};
}

/* Its operands are read in the run; the fewest and most elements that they allow bound it. */
static bool shape_bounded_range(Graph *graph, Node *node) {
  enum { START, LIMIT, DELTA };
  IntRange of[3];
  for (int i = 0; i < 3; i++) of[i] = whole_interval(graph, node->inputs[i]);
  bool falls = of[DELTA].most < 0;
  for (int i = 0; i < 3 && falls; i++) of[i] = negated(of[i]);
  if (of[DELTA].least <= 0) return refuse_range(graph, node);
  int64_t least = elements_between(of[START].most, of[LIMIT].least, of[DELTA].most);
  int64_t most = elements_between(of[START].least, of[LIMIT].most, of[DELTA].least);
  if (most > INT32_MAX) return refuse_range(graph, node);
  const Dim *count = data_dependent_dim(graph, least, dim_const(graph->dims, most));
  return set_shape(graph, node, 0, 1, &count);
}

/* max(0, ceil((limit - start) / delta)), of a step whose sign is known. */
static const Dim *extent_of(DimTable *dims, const Ratio *start, const Ratio *limit, const Ratio *delta) {
  const Dim *zero = dim_const(dims, 0), *step = delta->numerator;
  const Dim *distance = dim_sub(dims, dim_mul(dims, limit->numerator, dim_const(dims, start->divisor)),
                                dim_mul(dims, start->numerator, dim_const(dims, limit->divisor)));
  if (dim_upper(step) < 0) {
    step = dim_sub(dims, zero, step);
    distance = dim_sub(dims, zero, distance);
  }
  distance = dim_mul(dims, distance, dim_const(dims, delta->divisor));
  step = dim_mul(dims, step, dim_const(dims, start->divisor * limit->divisor));
  return dim_max(dims, zero, dim_ceil_div(dims, distance, step));
}

bool shape_range(Graph *graph, Node *node) {
  Ratio start, limit, delta;
  const Dim *count;
  if (!check_range_operands(graph, node)) return false;
  if (dtype_is_float(node->inputs[0]->dtype) && constant_range_extent(graph, node, &count))
    return set_shape(graph, node, 0, 1, &count);
  if (!all_known(graph, node)) return shape_bounded_range(graph, node);
  if (!read_range(graph, node, &start, &limit, &delta)) return false;
  const Dim *step = delta.numerator;
  if (dim_lower(step) <= 0 && dim_upper(step) >= 0)
    return shape_error(node, "delta is %s; it must not be 0, and its sign must be known", dim_text(graph, step));
  count = extent_of(graph->dims, &start, &limit, &delta);
  return set_shape(graph, node, 0, 1, &count);
}

/* Operands may have become known after the extent was inferred. */
bool range_is_known(Graph *graph, const Node *node) {
  Ratio start, limit, delta;
  const Dim *count = node->outputs[0]->shape[0];
  if (dim_is_const(count) || dtype_is_float(node->inputs[0]->dtype)) return all_known(graph, node);
  return all_known(graph, node) && read_range(graph, node, &start, &limit, &delta) &&
         same_dim(count, extent_of(graph->dims, &start, &limit, &delta));
}
