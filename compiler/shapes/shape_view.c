/* SPDX-License-Identifier: MIT */
/* The same elements in another shape: Reshape, Flatten, Squeeze, Unsqueeze. */
#include "shapes/shape.h"

/* Replaces 0 by the input's extent; *open is the axis of the -1, or -1. */
static bool resolve_target(Graph *graph, const Node *node, DimList *target, int *open) {
  const Value *input = node->inputs[0];
  bool copies_zero = node_int(node, ATTR_allowzero) == 0;
  *open = -1;
  for (int axis = 0; axis < target->n; axis++) {
    const Dim *extent = target->items[axis];
    if (!dim_is_const(extent)) continue;
    int64_t value = dim_value(extent);
    if (value < -1)
      return shape_error(node, "the target has %lld on axis %d; only -1, 0 and extents are allowed", (long long)value,
                         axis);
    if (value == -1 && *open >= 0)
      return shape_error(node, "the target has -1 on axes %d and %d; one at most", *open, axis);
    if (value == -1) *open = axis;
    if (value == 0 && copies_zero && axis >= input->rank)
      return shape_error(node, "the target has 0 on axis %d, but the input, %s, has no such axis", axis,
                         shape_text(graph, input));
    if (value == 0 && copies_zero) target->items[axis] = input->shape[axis];
  }
  return true;
}

/* Replaces -1 by its extent; false with an error if the elements do not fit. */
static bool settle_target(Graph *graph, const Node *node, DimList *target, int open) {
  DimTable *dims = graph->dims;
  const Value *input = node->inputs[0];
  const Dim *total = value_count_dim(graph, input, 0, input->rank), *product = dim_const(dims, 1);
  for (int axis = 0; axis < target->n; axis++) {
    if (axis == open) continue;
    if (dim_lower(target->items[axis]) < 0)
      return shape_error(node, "the target has %s on axis %d; it must not be negative",
                         dim_text(graph, target->items[axis]), axis);
    product = dim_mul(dims, product, target->items[axis]);
  }
  if (open >= 0) {
    bool divides = dim_lower(product) > 0;
    target->items[open] = divides ? dim_div(dims, total, product) : dim_div_exact(dims, total, product);
    if (!target->items[open])
      return shape_error(node, "the target's -1 stands for %s elements divided by %s, which may be 0",
                         dim_text(graph, total), dim_text(graph, product));
    product = dim_mul(dims, product, target->items[open]);
  }
  if (same_dim(product, total)) return true;
  return shape_error(node, "%s has %s elements; the target %s %s", shape_text(graph, input), dim_text(graph, total),
                     open >= 0 ? "comes out even only for" : "has", dim_text(graph, product));
}

bool shape_reshape(Graph *graph, Node *node) {
  DimList given;
  int open;
  if (!operand_dims(graph, node, ATTR_NONE, 1, &given) || !check_made_rank(node, "the result", given.n)) return false;
  DimList target = given; /* a copy: the elements belong to the input */
  target.items = arena_copy(graph->arena, given.items, (size_t)given.n * sizeof *given.items);
  if (!resolve_target(graph, node, &target, &open) || !settle_target(graph, node, &target, open)) return false;
  return set_shape(graph, node, 0, target.n, target.items);
}

/* [product of the axes before, product of the rest]; `axis` may be the rank itself. */
bool shape_flatten(Graph *graph, Node *node) {
  const Value *input = node->inputs[0];
  int64_t axis = node_int(node, ATTR_axis);
  if (axis < -(int64_t)input->rank || axis > input->rank)
    return shape_error(node, "axis is %lld; it must be in %d..%d", (long long)axis, -input->rank, input->rank);
  int cut = (int)(axis < 0 ? axis + input->rank : axis);
  const Dim *shape[] = {value_count_dim(graph, input, 0, cut), value_count_dim(graph, input, cut, input->rank)};
  return set_shape(graph, node, 0, 2, shape);
}

static bool is_one(const Dim *extent) { return dim_lower(extent) == 1 && dim_upper(extent) == 1; }

/* Without axes, removes every extent that is always 1. */
bool shape_squeeze(Graph *graph, Node *node) {
  const Value *input = node->inputs[0];
  IntList axes;
  bool marked[MAX_RANK];
  if (!operand_ints(graph, node, ATTR_axes, 1, &axes) || !operand_axes(node, &axes, input->rank, marked)) return false;
  const Dim *shape[MAX_RANK];
  int rank = 0;
  for (int axis = 0; axis < input->rank; axis++) {
    bool one = is_one(input->shape[axis]);
    if (marked[axis] && !one)
      return shape_error(node, "axis %d of %s is not 1 and cannot be squeezed", axis, shape_text(graph, input));
    if (!(axes.given ? marked[axis] : one)) shape[rank++] = input->shape[axis];
  }
  return set_shape(graph, node, 0, rank, shape);
}

/* Axes are those of the result. */
bool shape_unsqueeze(Graph *graph, Node *node) {
  const Value *input = node->inputs[0];
  IntList axes;
  bool marked[MAX_RANK];
  if (!operand_ints(graph, node, ATTR_axes, 1, &axes)) return false;
  if (!axes.given) return shape_error(node, "axes must be given, as an attribute or as input 1");
  int rank = input->rank + axes.n;
  if (!check_made_rank(node, "the result", rank) || !operand_axes(node, &axes, rank, marked)) return false;
  const Dim *shape[MAX_RANK];
  for (int axis = 0, from = 0; axis < rank; axis++)
    shape[axis] = marked[axis] ? dim_const(graph->dims, 1) : input->shape[from++];
  return set_shape(graph, node, 0, rank, shape);
}
