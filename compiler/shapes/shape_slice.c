/* SPDX-License-Identifier: MIT */
/* Slice and Pad. Slice's bounds may be symbolic and outside the extent. */
#include "shapes/shape.h"
#include "support/numbers.h"

/* Counts a negative position from the end; NULL if its sign is not known. */
static const Dim *from_start(Graph *graph, const Dim *position, const Dim *extent) {
  const Dim *zero = dim_const(graph->dims, 0), *minus_one = dim_const(graph->dims, -1);
  if (dim_at_most(graph->dims, zero, position)) return position;
  return dim_at_most(graph->dims, position, minus_one) ? dim_add(graph->dims, position, extent) : NULL;
}

static const Dim *clamp(DimTable *dims, const Dim *position, const Dim *low, const Dim *high) {
  return dim_max(dims, low, dim_min(dims, position, high));
}

/* ceil(distance / step), at least 0. */
static const Dim *count_steps(DimTable *dims, const Dim *distance, int64_t step) {
  const Dim *raised = dim_add(dims, distance, dim_const(dims, step - 1));
  return dim_max(dims, dim_const(dims, 0), dim_div(dims, raised, dim_const(dims, step)));
}

/* "To the end" in either direction, as ONNX Runtime reads the largest integers. */
static bool is_open_end(const Dim *end) {
  return dim_is_const(end) && (dim_value(end) == INT64_MAX || dim_value(end) == INT32_MAX);
}

static bool slice_axis(Graph *graph, const Node *node, const Dim *start, const Dim *end, int64_t step,
                       SliceAxis *axis) {
  DimTable *dims = graph->dims;
  const Dim *extent = axis->extent, *zero = dim_const(dims, 0), *minus_one = dim_const(dims, -1);
  if (step < 0 && is_open_end(end)) end = dim_const(dims, INT64_MIN);
  start = from_start(graph, start, extent);
  end = from_start(graph, end, extent);
  if (!start || !end) return shape_unsupported(node, "a bound may be negative or not; its sign must be known");
  if (step == 0) return shape_error(node, "a step may not be 0");
  const Dim *last = dim_add(dims, extent, minus_one);
  axis->start = clamp(dims, start, zero, step > 0 ? extent : last);
  end = step > 0 ? clamp(dims, end, zero, extent) : clamp(dims, end, minus_one, last);
  const Dim *distance = step > 0 ? dim_sub(dims, end, axis->start) : dim_sub(dims, axis->start, end);
  int64_t length = step > 0 ? step : -max_int(step, -INT64_MAX), most = max_int(dim_upper(extent), 1);
  axis->extent = count_steps(dims, distance, min_int(length, most));
  axis->step = length < most ? step : step > 0 ? 1 : -1; /* a longer one reaches no second element */
  return true;
}

typedef struct SliceLists {
  DimList starts, ends;
  IntList axes, steps;
} SliceLists;

static bool read_lists(Graph *graph, const Node *node, SliceLists *lists) {
  bool good = operand_dims(graph, node, ATTR_starts, 1, &lists->starts);
  good = operand_dims(graph, node, ATTR_ends, 2, &lists->ends) && good;
  good = operand_ints(graph, node, ATTR_axes, 3, &lists->axes) && good;
  good = operand_ints(graph, node, ATTR_NONE, 4, &lists->steps) && good;
  if (!good) return false;
  int n = lists->starts.n;
  if (!lists->starts.given || !lists->ends.given) return shape_error(node, "starts and ends must be given");
  if (lists->ends.n != n || (lists->axes.given && lists->axes.n != n) || (lists->steps.given && lists->steps.n != n))
    return shape_error(node, "starts, ends, axes and steps must have one length; found %d, %d, %d and %d", n,
                       lists->ends.n, lists->axes.given ? lists->axes.n : n, lists->steps.given ? lists->steps.n : n);
  return n <= node->inputs[0]->rank ||
         shape_error(node, "%d axes are sliced, but the input is %s", n, shape_text(graph, node->inputs[0]));
}

bool read_slice(Graph *graph, const Node *node, SliceAxis axes[MAX_RANK]) {
  const Value *input = node->inputs[0];
  SliceLists lists;
  bool seen[MAX_RANK];
  if (!read_lists(graph, node, &lists) || !operand_axes(node, &lists.axes, input->rank, seen)) return false;
  for (int axis = 0; axis < input->rank; axis++)
    axes[axis] = (SliceAxis){dim_const(graph->dims, 0), input->shape[axis], 1};
  for (int i = 0; i < lists.starts.n; i++) {
    int axis = lists.axes.given ? normal_axis(lists.axes.items[i], input->rank) : i;
    int64_t step = lists.steps.given ? lists.steps.items[i] : 1;
    if (!slice_axis(graph, node, lists.starts.items[i], lists.ends.items[i], step, &axes[axis])) return false;
  }
  return true;
}

bool shape_slice(Graph *graph, Node *node) {
  SliceAxis axes[MAX_RANK];
  const Dim *shape[MAX_RANK];
  int rank = node->inputs[0]->rank;
  if (!read_slice(graph, node, axes)) return false;
  for (int axis = 0; axis < rank; axis++) shape[axis] = axes[axis].extent;
  return set_shape(graph, node, 0, rank, shape);
}

/* Pads [begin of each axis..., end of each axis...], over `axes` or all axes. */
bool read_pads(Graph *graph, const Node *node, const Dim *before[MAX_RANK], const Dim *after[MAX_RANK]) {
  const Value *input = node->inputs[0];
  DimList pads;
  IntList axes;
  bool seen[MAX_RANK];
  if (!operand_dims(graph, node, ATTR_pads, 1, &pads) || !operand_ints(graph, node, ATTR_NONE, 3, &axes)) return false;
  if (!pads.given) return shape_error(node, "pads must be given, as an attribute or as input 1");
  int n = axes.given ? axes.n : input->rank;
  if (pads.n != 2 * n)
    return shape_error(node, "there are %d pads; %d are needed, before and after each of %d axes", pads.n, 2 * n, n);
  if (!operand_axes(node, &axes, input->rank, seen)) return false;
  for (int axis = 0; axis < MAX_RANK; axis++) before[axis] = after[axis] = dim_const(graph->dims, 0);
  for (int i = 0; i < n; i++) {
    int axis = axes.given ? normal_axis(axes.items[i], input->rank) : i;
    before[axis] = pads.items[i];
    after[axis] = pads.items[n + i];
  }
  return true;
}

/* What is left of n elements where `pad` may be negative: n - max(0, -pad), in a form whose bounds are close. */
static const Dim *cropped(DimTable *dims, const Dim *n, const Dim *pad) {
  return dim_min(dims, n, dim_add(dims, n, pad));
}

PadAxis pad_axis(DimTable *dims, const Dim *extent, const Dim *before, const Dim *after) {
  const Dim *zero = dim_const(dims, 0);
  return (PadAxis){.before = dim_max(dims, zero, before),
                   .after = dim_max(dims, zero, after),
                   .origin = dim_max(dims, zero, dim_sub(dims, zero, before)),
                   .extent = cropped(dims, cropped(dims, extent, before), after)};
}

/* Checks the pad against what is kept of the extent: reflect does not repeat the border, wrap goes round once. */
static bool check_reach(Graph *graph, const Node *node, int axis, const Dim *pad) {
  PadMode mode = node_word(node, ATTR_mode);
  const Dim *most = node->inputs[0]->shape[axis];
  if (mode == PAD_reflect) most = dim_sub(graph->dims, most, dim_const(graph->dims, 1));
  if (mode == PAD_constant || mode == PAD_edge || dim_at_most(graph->dims, pad, most)) return true;
  return shape_error(node, "a pad of %s on axis %d of %s; mode \"%s\" allows at most %s%s%s", dim_text(graph, pad),
                     axis, shape_text(graph, node->inputs[0]), node_string(node, ATTR_mode), dim_text(graph, most),
                     dim_is_const(pad) && dim_is_const(most) ? "" : " at all extents; give dimensions a larger minimum",
                     dims_places(graph, 2, (const Dim *[]){pad, most}));
}

/* Where the axis is cropped and filled, as much is cropped as there is at most; of nothing its own elements fill
 * nothing. */
static bool check_crop(Graph *graph, const Node *node, int axis, const PadAxis *pads) {
  bool cropped = pads->extent != node->inputs[0]->shape[axis];
  bool filled = !dim_equals(pads->before, 0) || !dim_equals(pads->after, 0);
  const Dim *least = dim_const(graph->dims, node_word(node, ATTR_mode) == PAD_constant ? 0 : 1);
  if (!cropped || !filled) return true; /* the result's extent is checked */
  if (dim_at_most(graph->dims, least, pads->extent)) return true;
  return shape_error(node, "negative pads leave %s elements of axis %d of %s; at least %s must be left%s",
                     dim_text(graph, pads->extent), axis, shape_text(graph, node->inputs[0]), dim_text(graph, least),
                     dims_places(graph, 1, &pads->extent));
}

bool shape_pad(Graph *graph, Node *node) {
  const Value *input = node->inputs[0];
  const Dim *before[MAX_RANK], *after[MAX_RANK], *shape[MAX_RANK];
  if (!read_pads(graph, node, before, after) || !check_scalar(graph, node, 2)) return false;
  for (int axis = 0; axis < input->rank; axis++) {
    PadAxis pads = pad_axis(graph->dims, input->shape[axis], before[axis], after[axis]);
    if (!check_reach(graph, node, axis, before[axis]) || !check_reach(graph, node, axis, after[axis])) return false;
    if (!check_crop(graph, node, axis, &pads)) return false;
    shape[axis] = dim_add(graph->dims, input->shape[axis], dim_add(graph->dims, before[axis], after[axis]));
  }
  return set_shape(graph, node, 0, input->rank, shape);
}
