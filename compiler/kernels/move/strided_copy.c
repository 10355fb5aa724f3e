/* SPDX-License-Identifier: MIT */
/*
 * A box is simplified before it is lowered: axes of one element are removed, neighbours that are contiguous on both
 * sides are merged, and the axis along which the input is contiguous becomes the last one or the one before it.
 */
#include "kernels/move/strided_copy.h"

#include "knobs.h"
#include "program/build.h"

void dense_strides(Graph *graph, const Value *value, const Dim *strides[MAX_RANK]) {
  for (int axis = 0; axis < value->rank; axis++) strides[axis] = value_count_dim(graph, value, axis + 1, value->rank);
}

StridedBox strided_box(Graph *graph, int rank, const Dim *const *shape, const Dim *const *in_stride,
                       const Dim *const *out_stride) {
  StridedBox box = {.rank = rank};
  for (int axis = 0; axis < rank; axis++) {
    box.shape[axis] = shape[axis];
    box.in_stride[axis] = in_stride[axis];
    box.out_stride[axis] = out_stride[axis];
  }
  box.in_offset = box.out_offset = dim_const(graph->dims, 0);
  return box;
}

static void set_axis(StridedBox *box, int to, const StridedBox *from, int axis) {
  box->shape[to] = from->shape[axis];
  box->in_stride[to] = from->in_stride[axis];
  box->out_stride[to] = from->out_stride[axis];
}

/* Is a step along `axis` the same as going on past the end of the next axis? */
static bool joined(DimTable *dims, const StridedBox *box, int axis) {
  const Dim *extent = box->shape[axis + 1];
  return dim_mul(dims, box->in_stride[axis + 1], extent) == box->in_stride[axis] &&
         dim_mul(dims, box->out_stride[axis + 1], extent) == box->out_stride[axis];
}

static StridedBox simplified(Graph *graph, const StridedBox *box) {
  StridedBox simple = *box;
  simple.rank = 0;
  for (int axis = 0; axis < box->rank; axis++) {
    if (dim_equals(box->shape[axis], 1)) continue;
    set_axis(&simple, simple.rank++, box, axis);
    if (simple.rank < 2 || !joined(graph->dims, &simple, simple.rank - 2)) continue;
    const Dim *both = dim_mul(graph->dims, simple.shape[simple.rank - 2], simple.shape[simple.rank - 1]);
    set_axis(&simple, simple.rank - 2, &simple, simple.rank - 1);
    simple.shape[--simple.rank - 1] = both;
  }
  if (simple.rank == 0) {
    simple.rank = 1;
    simple.shape[0] = simple.in_stride[0] = simple.out_stride[0] = dim_const(graph->dims, 1);
  }
  return simple;
}

/* Puts the axis along which the input is contiguous before the last one. The order of a box's axes is free. */
static bool bring_contiguous(StridedBox *box) {
  for (int axis = 0; axis < box->rank - 1; axis++) {
    if (!dim_equals(box->in_stride[axis], 1)) continue;
    StridedBox before = *box;
    for (int k = axis; k < box->rank - 2; k++) set_axis(box, k, &before, k + 1);
    set_axis(box, box->rank - 2, &before, axis);
    return true;
  }
  return false;
}

static int choose_inner(StridedBox *box) {
  const Dim *from = box->in_stride[box->rank - 1];
  if (!dim_equals(box->out_stride[box->rank - 1], 1)) return INNER_ANY;
  if (dim_equals(from, 1)) return INNER_CONTIGUOUS;
  if (dim_equals(from, 0)) return INNER_FILL;
  return bring_contiguous(box) ? INNER_TILED : INNER_ANY;
}

/* The number of elements from the first one touched to the last; NULL if it is not constant. */
static const Dim *span_of(Graph *graph, const StridedBox *box, const Dim *const *strides) {
  int64_t span = 1;
  for (int axis = 0; axis < box->rank; axis++) {
    if (!dim_is_const(box->shape[axis]) || !dim_is_const(strides[axis]) || dim_value(strides[axis]) < 0) return NULL;
    if (dim_value(box->shape[axis]) == 0) return dim_const(graph->dims, 0);
    span += (dim_value(box->shape[axis]) - 1) * dim_value(strides[axis]);
  }
  return dim_const(graph->dims, span);
}

/* Where it can be proved to be inside it stays as it is. */
const Dim *offset_inside(Graph *graph, const Value *value, const Dim *offset) {
  const Dim *end = dim_const(graph->dims, value_max_count(value)), *zero = dim_const(graph->dims, 0);
  return dim_max(graph->dims, dim_min(graph->dims, offset, end), zero);
}

Call *lower_strided_copy(Program *program, const Node *node, const StridedBox *given, const Value *in,
                         const Value *out) {
  StridedBox box = simplified(program->graph, given);
  int inner = choose_inner(&box);
  KernelSpec *spec = kernel_spec(program, "copy_strided");
  kernel_bits(spec, "T", out->dtype);
  kernel_knob(spec, "RANK", box.rank);
  kernel_knob(spec, "INNER", inner);
  Call *call = kernel_call(program, node, spec);
  if (in)
    operand_elements(call, "in", in, offset_inside(program->graph, in, box.in_offset),
                     span_of(program->graph, &box, box.in_stride), READ);
  else
    operand_integer_array(call, "in", 1, (const int64_t[]){0});
  operand_elements(call, "out", out, offset_inside(program->graph, out, box.out_offset),
                   span_of(program->graph, &box, box.out_stride), WRITE);
  operand_dim_array(call, "shape", box.rank, box.shape);
  operand_dim_array(call, "in_stride", box.rank, box.in_stride);
  operand_dim_array(call, "out_stride", box.rank, box.out_stride);
  const Dim *extents[MAX_RANK + 1] = {NULL};
  for (int axis = 0; axis < box.rank; axis++) extents[axis] = box.shape[axis];
  call_bytes(call, 2 * (double)dtype_size(out->dtype), extents);
  return call;
}

void lower_whole_copy(Program *program, const Node *node, const Value *from, const Value *to) {
  const Dim *strides[MAX_RANK];
  dense_strides(program->graph, from, strides);
  StridedBox box = strided_box(program->graph, from->rank, (const Dim *const *)from->shape, strides, strides);
  lower_strided_copy(program, node, &box, from, to);
}
