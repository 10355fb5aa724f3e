/* SPDX-License-Identifier: MIT */
#include "reroll/steps.h"

#include "ir/op.h"

Steps steps_new(Arena *arena, int n, int n_parts) {
  return (Steps){n, n_parts, ARENA_ARRAY(arena, Strip, (int64_t)n * n_parts)};
}

Strip *steps_part(const Steps *steps, int part) { return steps->strips + (size_t)part * (size_t)steps->n; }

int strips_direction(const Strip *strips, int n) {
  if (n < 2 || strips[0].axis < 0) return 0;
  int64_t direction = strips[1].step - strips[0].step;
  for (int i = 0; i < n; i++) {
    Strip expected = strips[0];
    expected.step += i * direction;
    if (!strip_same(&strips[i], &expected)) return 0;
  }
  return direction == 1 || direction == -1 ? (int)direction : 0;
}

/* `n` steps from `begin` on, and the strip's columns; the whole value if that is all of it. */
static Value *cut(const Builder *builder, const Strip *strip, int64_t begin, int64_t n) {
  Value *value = strip->value;
  DimTable *dims = builder->graph->dims;
  int n_ranges = 0;
  Range ranges[2];
  if (strip->axis >= 0 && value->shape[strip->axis] != dim_const(dims, n))
    ranges[n_ranges++] = (Range){strip->axis, begin, begin + n};
  if (value->shape[value->rank - 1] != dim_const(dims, strip->count))
    ranges[n_ranges++] = (Range){value->rank - 1, strip->first, strip->first + strip->count};
  return n_ranges ? build_slice(builder, value, n_ranges, ranges) : value;
}

bool rows_come_first(const Value *value, int steps_axis) {
  for (int axis = 0; axis < steps_axis; axis++)
    if (!dim_equals(value->shape[axis], 1)) return true;
  return false;
}

/* The value's axes, that of the steps first. */
static Value *steps_first(const Builder *builder, Value *value, int steps_axis) {
  int64_t perm[MAX_RANK] = {steps_axis};
  for (int axis = 0, n = 1; axis < value->rank; axis++)
    if (axis != steps_axis) perm[n++] = axis;
  return build_transpose(builder, value, perm);
}

/* [n, B, columns] from neighbours of which `first` is the first in time. */
static Value *build_neighbours(const Builder *builder, const Strip *first, int n) {
  DimTable *dims = builder->graph->dims;
  const Dim *shape[] = {dim_const(dims, n), strip_rows(builder->graph, first), dim_const(dims, first->count)};
  Value *value = cut(builder, first, first->step, n);
  if (rows_come_first(first->value, first->axis)) value = steps_first(builder, value, first->axis);
  return build_reshape(builder, value, 3, shape);
}

/* Y_h where the strip is the last step of Y: it is there already. */
static Value *last_state(Graph *graph, const Strip *strip) {
  const Node *node = strip->value->producer;
  Value *last = node ? node_output(node, 1) : NULL;
  Strip state;
  if (!last || !strip_whole(last, &state)) return NULL;
  state = strip_origin(graph, state, NULL);
  return strip_same(&state, strip) ? last : NULL;
}

Value *build_strip(const Builder *builder, const Strip *strip) {
  DimTable *dims = builder->graph->dims;
  const Dim *shape[] = {dim_const(dims, 1), strip_rows(builder->graph, strip), dim_const(dims, strip->count)};
  Value *state = last_state(builder->graph, strip);
  return build_reshape(builder, state ? state : cut(builder, strip, strip->step, 1), 3, shape);
}

static Value *build_stack(const Builder *builder, const Strip *strips, int n, int direction) {
  Value **values = ARENA_ARRAY(builder->graph->arena, Value *, n);
  for (int i = 0; i < n; i++) values[direction < 0 ? n - 1 - i : i] = build_strip(builder, &strips[i]);
  return build_concat(builder, n, values, 0);
}

Value *build_steps(const Builder *builder, const Steps *steps, int direction) {
  Value **parts = ARENA_ARRAY(builder->graph->arena, Value *, steps->n_parts);
  for (int part = 0; part < steps->n_parts; part++) {
    const Strip *strips = steps_part(steps, part);
    parts[part] = strips_direction(strips, steps->n) == direction
                      ? build_neighbours(builder, &strips[direction < 0 ? steps->n - 1 : 0], steps->n)
                      : build_stack(builder, strips, steps->n, direction);
  }
  return build_concat(builder, steps->n_parts, parts, 2);
}
