/* SPDX-License-Identifier: MIT */
#include "expand/formula.h"

#include "ir/tensor.h"
#include "shapes/intervals.h"
#include "shapes/shape.h"

static Value *applied(const Formula *f, OpKind op, int n, Value *const *inputs, const Attribute *attribute) {
  return build_op(f, op, n, inputs, 1, attribute ? 1 : 0, attribute)->outputs[0];
}

Value *apply(const Formula *f, OpKind op, Value *x) { return applied(f, op, 1, &x, NULL); }
Value *apply2(const Formula *f, OpKind op, Value *a, Value *b) {
  return applied(f, op, 2, (Value *const[]){a, b}, NULL);
}
Value *apply3(const Formula *f, OpKind op, Value *a, Value *b, Value *c) {
  return applied(f, op, 3, (Value *const[]){a, b, c}, NULL);
}

Value *plus(const Formula *f, Value *a, Value *b) { return apply2(f, OP_Add, a, b); }
Value *minus(const Formula *f, Value *a, Value *b) { return apply2(f, OP_Sub, a, b); }
Value *times(const Formula *f, Value *a, Value *b) { return apply2(f, OP_Mul, a, b); }
Value *over(const Formula *f, Value *a, Value *b) { return apply2(f, OP_Div, a, b); }

Value *number(const Formula *f, const Value *like, double value) {
  Tensor *scalar = tensor_new(f->graph->arena, like->dtype, 0, NULL);
  tensor_set(scalar, 0, value);
  return graph_constant(f->graph, f->name, like->dtype, 0, NULL, scalar->data);
}

Value *integers(const Formula *f, int n, const int64_t *data) {
  const int64_t count = n;
  const void *copy = arena_copy(f->graph->arena, data, (size_t)n * sizeof *data);
  return graph_constant(f->graph, f->name, RNNCC_I64, 1, &count, copy);
}

Value *places_along(const Formula *f, Value *x, int64_t axis) {
  Value *none = integers(f, 1, (const int64_t[]){0}), *one = integers(f, 1, (const int64_t[]){1});
  return apply3(f, OP_Range, none, build_extent(f, x, axis), one);
}

Value *counted_from_start(const Formula *f, Value *indices) {
  if (value_interval(f->graph, indices).least >= 0) return indices;
  if (indices->dtype != RNNCC_I64) indices = cast(f, indices, RNNCC_I64);
  Value *negative = apply2(f, OP_Less, indices, number(f, indices, 0));
  return apply3(f, OP_Where, negative, number(f, indices, 0x1p52), indices);
}

Value *floats(const Formula *f, int rank, const int64_t *shape, const float *data) {
  int64_t count = 1;
  for (int axis = 0; axis < rank; axis++) count *= shape[axis];
  const void *copy = arena_copy(f->graph->arena, data, (size_t)count * sizeof *data);
  return graph_constant(f->graph, f->name, RNNCC_F32, rank, shape, copy);
}

Value *reduced(const Formula *f, OpKind op, Value *x, int n, const int64_t *axes) {
  return apply2(f, op, x, integers(f, n, axes));
}

Value *summed_away(const Formula *f, Value *x, int n, const int64_t *axes) {
  const Attribute attribute = attribute_int(ATTR_keepdims, 0);
  return applied(f, OP_ReduceSum, 2, (Value *const[]){x, integers(f, n, axes)}, &attribute);
}

Value *reshaped_to(const Formula *f, Value *x, Value *extents) {
  const Attribute allowzero = attribute_int(ATTR_allowzero, 1);
  bool empty = dim_upper(value_count_dim(f->graph, x, 0, x->rank)) == 0;
  return applied(f, OP_Reshape, 2, (Value *const[]){x, extents}, empty ? &allowzero : NULL);
}

static bool has_extent(const Value *x, int axis, const Dim *extent) {
  return axis < x->rank && same_dim(x->shape[axis], extent);
}

/* The same where a 0 is an extent, so that it cannot stand for x's: that one is found by Shape. */
static Value *reshaped_empty(const Formula *f, Value *x, int rank, const Dim *const *shape, const int64_t *target) {
  Value *extents[MAX_RANK];
  for (int axis = 0; axis < rank; axis++) {
    bool own = has_extent(x, axis, shape[axis]);
    extents[axis] = own ? build_extent(f, x, axis) : integers(f, 1, &target[axis]);
  }
  return reshaped_to(f, x, build_concat(f, rank, extents, 0));
}

Value *reshaped(const Formula *f, Value *x, int rank, const Dim *const *shape) {
  int64_t target[MAX_RANK];
  int open = 0;
  bool same = rank == x->rank, empty = false;
  for (int axis = 0; axis < rank; axis++) {
    bool own = has_extent(x, axis, shape[axis]);
    same &= own;
    target[axis] = dim_is_const(shape[axis]) ? dim_value(shape[axis]) : own ? 0 : -1;
    open += target[axis] == -1;
    empty |= target[axis] == 0 && !own;
  }
  if (same) return x;
  if (open > 1)
    fatal_at(f->where, EXIT_UNSUPPORTED, "`%.200s`: %d extents that are merged are known at run time only; one may be",
             f->name, open);
  return empty ? reshaped_empty(f, x, rank, shape, target) : apply2(f, OP_Reshape, x, integers(f, rank, target));
}

Value *cast(const Formula *f, Value *x, DType to) {
  const Attribute attribute = attribute_type(ATTR_to, to);
  return x->dtype == to ? x : applied(f, OP_Cast, 1, &x, &attribute);
}

Value *gathered(const Formula *f, Value *x, Value *indices, int64_t axis) {
  const Attribute attribute = attribute_int(ATTR_axis, axis);
  return applied(f, OP_Gather, 2, (Value *const[]){x, indices}, &attribute);
}

Value *with_axis(const Formula *f, Value *x, int64_t axis) { return apply2(f, OP_Unsqueeze, x, integers(f, 1, &axis)); }
Value *without_axis(const Formula *f, Value *x, int64_t axis) {
  return apply2(f, OP_Squeeze, x, integers(f, 1, &axis));
}

Value *matrices_turned(const Formula *f, Value *x) {
  int64_t perm[MAX_RANK];
  for (int axis = 0; axis < x->rank; axis++) perm[axis] = axis;
  perm[x->rank - 1] = x->rank - 2;
  perm[x->rank - 2] = x->rank - 1;
  return build_transpose(f, x, perm);
}

Value *softmax_along(const Formula *f, Value *x, int64_t axis) {
  const Attribute attribute = attribute_int(ATTR_axis, axis);
  return applied(f, OP_Softmax, 1, &x, &attribute);
}

Value *flat_softmax(const Formula *f, Value *x, int64_t axis) {
  const Attribute attribute = attribute_int(ATTR_axis, axis);
  Value *rows = applied(f, OP_Flatten, 1, &x, &attribute);
  return reshaped_to(f, softmax_along(f, rows, 1), apply(f, OP_Shape, x));
}
