/* SPDX-License-Identifier: MIT */
#include "kernels/attention/strided_view.h"

#include "ir/op.h"
#include "ir/tensor.h"
#include "kernels/move/strided_copy.h"
#include "shapes/shape.h"

static StridedView whole(Graph *graph, Value *value) {
  StridedView view = {.base = value, .offset = dim_const(graph->dims, 0), .rank = value->rank};
  for (int axis = 0; axis < value->rank; axis++) view.shape[axis] = value->shape[axis];
  dense_strides(graph, value, view.stride);
  return view;
}

static StridedView transposed(Graph *graph, const Node *node) {
  StridedView from = strided_view(graph, node->inputs[0]), view = from;
  const Attribute *perm = node_attribute(node, ATTR_perm);
  for (int axis = 0; axis < view.rank; axis++) {
    int source = perm ? normal_axis(perm->ints[axis], view.rank) : view.rank - 1 - axis;
    view.shape[axis] = from.shape[source];
    view.stride[axis] = from.stride[source];
  }
  return view;
}

/* One output of a Split. */
static StridedView part(Graph *graph, const Value *value) {
  const Node *node = value->producer;
  StridedView view = strided_view(graph, node->inputs[0]);
  int axis = normal_axis(node_int(node, ATTR_axis), view.rank);
  const Dim *first = dim_const(graph->dims, 0);
  for (int k = 0; k < value->producer_output; k++) first = dim_add(graph->dims, first, node->outputs[k]->shape[axis]);
  view.offset = dim_add(graph->dims, view.offset, dim_mul(graph->dims, first, view.stride[axis]));
  view.shape[axis] = value->shape[axis];
  return view;
}

static bool is_cut(const Node *node) {
  for (int k = 0; k < node->n_outputs; k++)
    if (!node->outputs[k]) return false;
  return is_op(node, OP_Split);
}

/* Has a Slice a first element that is known at compile time? Every axis then has a step. */
static bool is_constant_slice(Graph *graph, const Node *node, SliceAxis axes[MAX_RANK]) {
  if (!is_op(node, OP_Slice) || !read_slice(graph, node, axes)) return false;
  for (int axis = 0; axis < node->inputs[0]->rank; axis++)
    if (!dim_is_const(axes[axis].start)) return false;
  return true;
}

static StridedView sliced(Graph *graph, const Node *node, const SliceAxis axes[MAX_RANK]) {
  StridedView view = strided_view(graph, node->inputs[0]);
  for (int axis = 0; axis < view.rank; axis++) {
    view.offset = dim_add(graph->dims, view.offset, dim_mul(graph->dims, axes[axis].start, view.stride[axis]));
    view.stride[axis] = dim_mul(graph->dims, view.stride[axis], dim_const(graph->dims, axes[axis].step));
    view.shape[axis] = node->outputs[0]->shape[axis];
  }
  return view;
}

/* Gather by a constant scalar takes one place of an axis, which is then gone. */
static bool takes_one(const Node *node) {
  return is_op(node, OP_Gather) && value_is_constant(node->inputs[1]) && node->inputs[1]->rank == 0;
}

static StridedView taken(Graph *graph, const Node *node) {
  StridedView view = strided_view(graph, node->inputs[0]);
  int gone = normal_axis(node_int(node, ATTR_axis), view.rank);
  const Dim *index = dim_const(graph->dims, (int64_t)value_element(node->inputs[1], 0));
  if (dim_value(index) < 0) index = dim_add(graph->dims, index, view.shape[gone]);
  view.offset = dim_add(graph->dims, view.offset, dim_mul(graph->dims, index, view.stride[gone]));
  view.rank--;
  for (int axis = gone; axis < view.rank; axis++) {
    view.shape[axis] = view.shape[axis + 1];
    view.stride[axis] = view.stride[axis + 1];
  }
  return view;
}

/* ---- Reshape and its like ---- */

/* Do the axes begin .. end have the strides of one axis? */
static bool joins(Graph *graph, const StridedView *view, int begin, int end) {
  for (int axis = begin; axis + 1 < end; axis++)
    if (!same_dim(view->stride[axis], dim_mul(graph->dims, view->stride[axis + 1], view->shape[axis + 1])))
      return false;
  return true;
}

/* The fewest axes from `axis` and `own` on, of the view and of the value, that have as many elements; false if there
 * are none. */
static bool next_group(Graph *graph, const StridedView *view, const Value *value, int axis, int own, int *axis_end,
                       int *own_end) {
  for (*axis_end = axis + 1; *axis_end <= view->rank; ++*axis_end) {
    const Dim *elements = view->shape[axis];
    for (int i = axis + 1; i < *axis_end; i++) elements = dim_mul(graph->dims, elements, view->shape[i]);
    for (*own_end = own + 1; *own_end <= value->rank; ++*own_end)
      if (same_dim(elements, value_count_dim(graph, value, own, *own_end))) return true;
  }
  return false;
}

static bool is_one(const Dim *dim) { return dim_equals(dim, 1); }

/* Axes of length 1 have no stride that matters. */
static StridedView without_ones(StridedView view) {
  int rank = 0;
  for (int axis = 0; axis < view.rank; axis++) {
    if (is_one(view.shape[axis])) continue;
    view.shape[rank] = view.shape[axis];
    view.stride[rank++] = view.stride[axis];
  }
  view.rank = rank;
  return view;
}

/* The value's axes own .. own_end are the axes from .. from_end of the view, which join. */
static void divide(Graph *graph, const StridedView *from, int from_end, const Value *value, int own, int own_end,
                   StridedView *view) {
  const Dim *stride = from->stride[from_end - 1];
  for (int axis = own_end - 1; axis >= own; axis--) {
    view->stride[axis] = stride;
    stride = dim_mul(graph->dims, stride, value->shape[axis]);
  }
}

static StridedView reshaped(Graph *graph, Value *value) {
  StridedView from = without_ones(strided_view(graph, value->producer->inputs[0])), view = whole(graph, value);
  int axis = 0, own = 0, axis_end, own_end;
  view.base = from.base;
  view.offset = from.offset;
  while (own < value->rank) {
    if (is_one(value->shape[own])) {
      own++;
      continue;
    }
    if (axis == from.rank || !next_group(graph, &from, value, axis, own, &axis_end, &own_end) ||
        !joins(graph, &from, axis, axis_end))
      return whole(graph, value);
    divide(graph, &from, axis_end, value, own, own_end, &view);
    axis = axis_end;
    own = own_end;
  }
  return axis == from.rank ? view : whole(graph, value);
}

StridedView strided_view(Graph *graph, Value *value) {
  const Node *node = value->producer;
  SliceAxis axes[MAX_RANK];
  if (!node || node->n_epilogue) return whole(graph, value);
  if (is_op(node, OP_Transpose)) return transposed(graph, node);
  if (is_cut(node)) return part(graph, value);
  if (is_constant_slice(graph, node, axes)) return sliced(graph, node, axes);
  if (takes_one(node)) return taken(graph, node);
  if (op_is_view(node->op) && !node->op->family) return reshaped(graph, value);
  return whole(graph, value);
}
