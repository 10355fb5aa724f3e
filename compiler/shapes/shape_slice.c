/* SPDX-License-Identifier: MIT */
/* Slice and Pad. Slice's bounds may be symbolic and outside the extent; or known in the run alone, and so is the extent
 * then. */
#include "ir/equal_nodes.h"
#include "shapes/shape.h"
#include "support/diagnostics.h"
#include "support/numbers.h"

static bool is_negative(Graph *graph, const Dim *position) {
  return dim_at_most(graph->dims, position, dim_const(graph->dims, -1));
}

static bool is_sign_known(Graph *graph, const Dim *position) {
  return is_negative(graph, position) || dim_at_most(graph->dims, dim_const(graph->dims, 0), position);
}

/* Counts a negative position from the end. */
static const Dim *from_start(Graph *graph, const Dim *position, const Dim *extent) {
  return is_negative(graph, position) ? dim_add(graph->dims, position, extent) : position;
}

/* Of nothing the last place, `high`, is before the first one. */
static const Dim *clamp(DimTable *dims, const Dim *position, const Dim *low, const Dim *high) {
  return dim_min(dims, dim_max(dims, position, low), high);
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

/* ---- bounds that only the run knows ---- */

/* Are they known when compiling, and whether they count from the end? An absent list is. */
static bool is_list_known(Graph *graph, const Value *bounds) {
  const Dim **elements = bounds ? known_elements(graph, bounds) : NULL;
  for (int64_t i = 0; elements && i < value_count(bounds); i++)
    if (!is_sign_known(graph, elements[i])) return false;
  return !bounds || elements;
}

static bool bounds_known(Graph *graph, const Node *node) {
  return is_list_known(graph, node_input(node, 1)) && is_list_known(graph, node_input(node, 2));
}

/* How many bounds the node gives as that operand; -1 if that is not known. */
static int bound_count(const Node *node, AttributeName name, int input) {
  const Attribute *given = node_attribute(node, name);
  const Value *bounds = node_input(node, input);
  if (given || !bounds) return given ? (int)given->count : -1;
  return bounds->rank == 1 && dim_is_const(bounds->shape[0]) ? (int)dim_value(bounds->shape[0]) : -1;
}

bool read_found_slice(Graph *graph, const Node *node, FoundSlice *slice) {
  const Value *input = node->inputs[0];
  IntList axes, steps;
  bool seen[MAX_RANK];
  int n = slice->n = bound_count(node, ATTR_starts, 1);
  if (n < 0 || n != bound_count(node, ATTR_ends, 2))
    return shape_error(node, "starts and ends must be lists of one known length");
  if (!operand_ints(graph, node, ATTR_axes, 3, &axes) || !operand_ints(graph, node, ATTR_NONE, 4, &steps)) return false;
  if (n > input->rank || (axes.given && axes.n != n) || (steps.given && steps.n != n))
    return shape_error(node, "%d bounds of %d axes and %d steps; the input is %s", n, axes.given ? axes.n : n,
                       steps.given ? steps.n : n, shape_text(graph, input));
  if (!operand_axes(node, &axes, input->rank, seen)) return false;
  for (int i = 0; i < n; i++) {
    int axis = slice->axes[i] = axes.given ? normal_axis(axes.items[i], input->rank) : i;
    int64_t step = steps.given ? steps.items[i] : 1, most = max_int(dim_upper(input->shape[axis]), 1);
    if (step == 0) return shape_error(node, "a step may not be 0");
    slice->steps[i] = max_int(-most, min_int(step, most)); /* a longer one reaches no second element */
  }
  return true;
}

/* An earlier Slice by the same bounds of a tensor that is as long; or NULL. */
static const Node *slice_alike(Graph *graph, const Node *node, const FoundSlice *slice) {
  enum { LOOKED_AT = 1000 }; /* nodes: hostile graphs have many */
  for (int n = graph->n_nodes - 1; n >= 0 && n >= graph->n_nodes - LOOKED_AT; n--) {
    const Node *earlier = graph->nodes[n];
    bool alike = earlier != node && is_op(earlier, OP_Slice) && earlier->outputs[0]->rank == node->inputs[0]->rank &&
                 earlier->n_inputs == node->n_inputs && same_attributes(earlier, node);
    for (int i = 1; alike && i < node->n_inputs; i++) alike = earlier->inputs[i] == node->inputs[i];
    for (int i = 0; alike && i < slice->n; i++)
      alike = same_dim(earlier->inputs[0]->shape[slice->axes[i]], node->inputs[0]->shape[slice->axes[i]]);
    if (alike) return earlier;
  }
  return NULL;
}

static bool shape_found_slice(Graph *graph, Node *node) {
  const Value *input = node->inputs[0];
  const Dim *shape[MAX_RANK];
  FoundSlice slice;
  if (!read_found_slice(graph, node, &slice)) return false;
  const Node *alike = slice_alike(graph, node, &slice);
  for (int axis = 0; axis < input->rank; axis++) shape[axis] = input->shape[axis];
  for (int i = 0; i < slice.n; i++) {
    int axis = slice.axes[i];
    int64_t step = slice.steps[i];
    const Dim *most = count_steps(graph->dims, input->shape[axis], step < 0 ? -step : step);
    shape[axis] = alike ? alike->outputs[0]->shape[axis] : data_dependent_dim(graph, 0, most);
  }
  return set_shape(graph, node, 0, input->rank, shape);
}

/* Bounds may have become known after the extents were inferred. */
bool slice_is_found(Graph *graph, const Node *node) {
  SliceAxis axes[MAX_RANK];
  if (!bounds_known(graph, node)) return true;
  if (!read_slice(graph, node, axes)) bug("the slice was good before");
  for (int axis = 0; axis < node->inputs[0]->rank; axis++)
    if (!same_dim(axes[axis].extent, node->outputs[0]->shape[axis])) return true;
  return false;
}

bool shape_slice(Graph *graph, Node *node) {
  SliceAxis axes[MAX_RANK];
  const Dim *shape[MAX_RANK];
  int rank = node->inputs[0]->rank;
  if (!bounds_known(graph, node)) return shape_found_slice(graph, node);
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

/* Checks the pad against what is kept of the extent: reflect does not repeat the border, and goes back once;
 * wrap goes round as often as it takes, but not of nothing. */
static bool check_reach(Graph *graph, const Node *node, int axis, const Dim *pad) {
  PadMode mode = node_word(node, ATTR_mode);
  const Dim *most = node->inputs[0]->shape[axis];
  if (mode == PAD_reflect) most = dim_sub(graph->dims, most, dim_const(graph->dims, 1));
  if (mode == PAD_wrap && dim_lower(most) > 0) return true;
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
