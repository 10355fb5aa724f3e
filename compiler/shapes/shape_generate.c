/* SPDX-License-Identifier: MIT */
/* Tensors made from shapes and a few numbers: Size, ConstantOfShape, EyeLike, Range. */
#include <math.h>

#include "ir/tensor.h"
#include "shapes/elements.h"
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

static bool check_range_operand(Graph *graph, const Node *node, int input, const char *name) {
  const Value *value = node->inputs[input];
  if (!value_static(value) || value_count(value) != 1)
    return shape_error(node, "%s (input %d) must be one number, found %s", name, input, shape_text(graph, value));
  if (value->data || known_ratios(graph, value)) return true;
  return shape_unsupported(
      node, "%s (input %d, `%.200s`) must be known at compile time: a constant%s, or computed from shapes", name, input,
      value->name, freeze_hint(graph, value));
}

bool read_range(Graph *graph, const Node *node, Ratio *start, Ratio *limit, Ratio *delta) {
  static const char *const names[] = {"start", "limit", "delta"};
  Ratio *const numbers[] = {start, limit, delta};
  for (int i = 0; i < 3; i++)
    if (!check_range_operand(graph, node, i, names[i])) return false;
  for (int i = 0; i < 3; i++) {
    const Ratio *known = known_ratios(graph, node->inputs[i]);
    if (!known)
      return shape_unsupported(node, "%s (input %d) of %s, which is no ratio of integers, beside one from shapes",
                               names[i], i, dtype_name(node->inputs[i]->dtype));
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

/* max(0, ceil((limit - start) / delta)). */
bool shape_range(Graph *graph, Node *node) {
  DimTable *dims = graph->dims;
  Ratio start, limit, delta;
  const Dim *constant;
  if (dtype_is_float(node->inputs[0]->dtype) && constant_range_extent(graph, node, &constant)) {
    set_shape(graph, node, 0, 1, &constant);
    return true;
  }
  if (!read_range(graph, node, &start, &limit, &delta)) return false;
  const Dim *zero = dim_const(dims, 0), *step = delta.numerator;
  const Dim *distance = dim_sub(dims, dim_mul(dims, limit.numerator, dim_const(dims, start.divisor)),
                                dim_mul(dims, start.numerator, dim_const(dims, limit.divisor)));
  if (dim_lower(step) <= 0 && dim_upper(step) >= 0)
    return shape_error(node, "delta is %s; it must not be 0, and its sign must be known", dim_text(graph, step));
  if (dim_upper(step) < 0) {
    step = dim_sub(dims, zero, step);
    distance = dim_sub(dims, zero, distance);
  }
  distance = dim_mul(dims, distance, dim_const(dims, delta.divisor));
  step = dim_mul(dims, step, dim_const(dims, start.divisor * limit.divisor));
  const Dim *raised = dim_sub(dims, dim_add(dims, distance, step), dim_const(dims, 1));
  const Dim *count = dim_max(dims, zero, dim_div(dims, raised, step));
  return set_shape(graph, node, 0, 1, &count);
}
