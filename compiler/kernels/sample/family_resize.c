/* SPDX-License-Identifier: MIT */
/*
 * Resize by constant tables: nearest elements in one sweep, interpolation one axis at a time, on blocked tensors both
 * axes at once.
 */
#include <string.h>

#include "ir/family.h"
#include "ir/tensor.h"
#include "layout/blocked.h"
#include "program/build.h"
#include "reference/resize_taps.h"
#include "support/diagnostics.h"

/* As in templates/resize_blocked.c and resize_nearest.c. */
enum { MAX_BLOCKED_TAPS = 64, MAX_FACTOR = 16 };

typedef struct ResizeSchedule {
  Schedule base;
  Resize resize;
  ResizeTaps taps[MAX_RANK];  /* of every axis between the first and the last that is resized */
  int n_axes, axes[MAX_RANK]; /* the resized ones, in the order of interpolation */
} ResizeSchedule;

static const ResizeSchedule *schedule_of(const Node *node) { return (const ResizeSchedule *)node->schedule; }

static Resize resize_of(Graph *graph, const Node *node) {
  Resize resize;
  if (!read_resize(graph, node, &resize)) bug("n%d: a Resize that has no shape", node->id);
  return resize;
}

static bool is_nearest(const Node *node) { return node_word(node, ATTR_mode) == RESIZE_nearest; }

static ResizeTaps taps_of(Graph *graph, const Node *node, const Resize *resize, int axis) {
  if (resize->resized[axis]) return resize_taps(graph->arena, node, &resize->axis[axis]);
  return resize_identity(graph->arena, dim_value(node->inputs[0]->shape[axis]));
}

/* ---- choice ---- */

/* Axes that shrink first, the outermost before the others, because fewer rows remain; then those that grow, the
 * innermost first. */
static void order_axes(const Resize *resize, ResizeSchedule *schedule) {
  for (int axis = 0; axis < resize->rank; axis++)
    if (resize->resized[axis] && resize->axis[axis].out < resize->axis[axis].in)
      schedule->axes[schedule->n_axes++] = axis;
  for (int axis = resize->rank - 1; axis >= 0; axis--)
    if (resize->resized[axis] && resize->axis[axis].out >= resize->axis[axis].in)
      schedule->axes[schedule->n_axes++] = axis;
}

static void schedule(Graph *graph, Node *node) {
  ResizeSchedule *schedule = ARENA_NEW(graph->arena, ResizeSchedule);
  schedule->resize = resize_of(graph, node);
  order_axes(&schedule->resize, schedule);
  schedule->base.text =
      arena_format(graph->arena, "resize_%s%s", node_string(node, ATTR_mode), is_blocked(node) ? "_blocked" : "");
  node->schedule = &schedule->base;
}

static LayoutSet layouts(Graph *graph, const Node *node) {
  Resize resize = resize_of(graph, node);
  if (resize.resized[0] || resize.resized[1]) return 0;
  if (node_word(node, ATTR_coordinate_transformation_mode) == COORDINATES_tf_crop_and_resize) return 0;
  for (int axis = 2; axis < resize.rank; axis++)
    if (taps_of(graph, node, &resize, axis).n > MAX_BLOCKED_TAPS) return 0;
  return LAYOUT_SET_BLOCKED;
}

/* ---- tables ---- */

static Value *index_table(Graph *graph, int64_t count, const int32_t *starts) {
  return graph_constant(graph, "resize index", RNNCC_I32, 1, &count, starts);
}

/* [out][taps] -> [taps][out]. */
static Value *weight_table(Graph *graph, const ResizeTaps *taps, int64_t out) {
  int64_t count = out * taps->n;
  float *weight = ARENA_ARRAY(graph->arena, float, count);
  for (int64_t o = 0; o < out; o++)
    for (int k = 0; k < taps->n; k++) weight[k * out + o] = taps->weight[o * taps->n + k];
  return graph_constant(graph, "resize weight", RNNCC_F32, 1, &count, weight);
}

static void make_taps(Graph *graph, const Node *node, int first, int last) {
  ResizeSchedule *schedule = (ResizeSchedule *)node->schedule;
  for (int axis = first; axis <= last; axis++) schedule->taps[axis] = taps_of(graph, node, &schedule->resize, axis);
}

static void pack_two(Graph *graph, Node *node, int axis) {
  const ResizeTaps *taps = &schedule_of(node)->taps[axis];
  int64_t out = dim_value(node->outputs[0]->shape[axis]);
  graph_pack(graph, node, index_table(graph, out, taps->start));
  graph_pack(graph, node, weight_table(graph, taps, out));
}

/* The first and the last resized axis; the last axis if there is none. */
static void table_axes(const Node *node, int *first, int *last) {
  const Resize *resize = &schedule_of(node)->resize;
  *first = *last = resize->rank - 1;
  for (int axis = resize->rank - 1; axis >= 0; axis--)
    if (resize->resized[axis]) *first = axis;
  for (int axis = 0; axis < resize->rank; axis++)
    if (resize->resized[axis]) *last = axis;
}

static void pack_nearest(Graph *graph, Node *node) {
  int first, last;
  int64_t count = 0, at = 0;
  table_axes(node, &first, &last);
  make_taps(graph, node, first, last);
  for (int axis = first; axis <= last; axis++) count += dim_value(node->outputs[0]->shape[axis]);
  int32_t *table = ARENA_ARRAY(graph->arena, int32_t, count);
  for (int axis = first; axis <= last; axis++)
    for (int64_t o = 0; o < dim_value(node->outputs[0]->shape[axis]); o++)
      table[at++] = schedule_of(node)->taps[axis].start[o];
  graph_pack(graph, node, index_table(graph, count, table));
}

static bool in_one_sweep(const Node *node) { return is_nearest(node) || schedule_of(node)->n_axes == 0; }

static void pack(Graph *graph, Node *node) {
  if (!is_blocked(node) && in_one_sweep(node)) {
    pack_nearest(graph, node);
    return;
  }
  const ResizeSchedule *schedule = schedule_of(node);
  int axes[MAX_RANK] = {2, node->inputs[0]->rank - 1},
      n = is_blocked(node) ? node->inputs[0]->rank - 2 : schedule->n_axes;
  for (int k = 0; k < n; k++) {
    int axis = is_blocked(node) ? axes[k] : schedule->axes[k];
    make_taps(graph, node, axis, axis);
    pack_two(graph, node, axis);
  }
}

/* ---- blocked ---- */

static void lower_blocked(Program *program, Node *node) {
  Graph *graph = program->graph;
  Blocked x = blocked_of(graph, node->inputs[0]), y = blocked_of(graph, node->outputs[0]);
  const ResizeTaps *taps = schedule_of(node)->taps;
  int rank = node->inputs[0]->rank;
  bool flat = rank == 3;
  KernelSpec *spec = kernel_spec(program, "resize_blocked");
  kernel_knob(spec, "TAPS_H", flat ? 1 : taps[2].n);
  kernel_knob(spec, "TAPS_W", taps[rank - 1].n);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", node->inputs[0], READ);
  operand_value(call, "y", node->outputs[0], WRITE);
  if (flat) {
    operand_integer_array(call, "row_start", 1, (const int64_t[]){0});
    operand_integer_array(call, "row_weight", 1, (const int64_t[]){1});
  } else {
    operand_value(call, "row_start", node->packed[0], READ);
    operand_value(call, "row_weight", node->packed[1], READ);
  }
  operand_value(call, "column_start", node->packed[node->n_packed - 2], READ);
  operand_value(call, "column_weight", node->packed[node->n_packed - 1], READ);
  operand_dim(call, "n", node->inputs[0]->shape[0]);
  operand_integer(call, "blocks", x.blocks);
  operand_extent(call, "x_image", x.image);
  operand_extent(call, "y_image", y.image);
  operand_extent(call, "in_h", x.height);
  operand_extent(call, "in_w", x.width);
  operand_extent(call, "out_h", y.height);
  operand_extent(call, "out_w", y.width);
  double in = (double)value_max_count(node->inputs[0]), out = (double)value_max_count(node->outputs[0]);
  call_cost(call, 2 * out * taps[rank - 1].n * (flat ? 1 : taps[2].n), 4 * (in + out));
}

/* ---- nearest ---- */

/* How often each element is repeated, in order; 0 if they differ. */
static int64_t factor_of(const ResizeTaps *taps, int64_t in, int64_t out) {
  int64_t factor = out / in;
  if (out % in || factor > MAX_FACTOR) return 0;
  for (int64_t o = 0; o < out; o++)
    if (taps->start[o] != o / factor) return 0;
  return factor;
}

/* The value outside the input, as the bits of an element. */
static void call_outside(Program *program, Call *call, const Node *node) {
  Tensor *outside = tensor_new(program->arena, node->outputs[0]->dtype, 0, NULL);
  uint64_t bits = 0;
  tensor_set(outside, 0, node_float(node, ATTR_extrapolation_value));
  memcpy(&bits, outside->data, dtype_size(outside->dtype));
  operand_integer(call, "outside", (int64_t)bits);
}

static void lower_nearest(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0], *y = node->outputs[0];
  int first, last;
  table_axes(node, &first, &last);
  const Dim *inner = value_count_dim(graph, x, last + 1, x->rank);
  bool single = dim_upper(inner) == 1;
  int64_t factor = factor_of(&schedule_of(node)->taps[last], dim_value(x->shape[last]), dim_value(y->shape[last]));
  KernelSpec *spec = kernel_spec(program, "resize_nearest");
  kernel_bits(spec, "T", x->dtype);
  kernel_knob(spec, "AXES", last - first + 1);
  kernel_knob(spec, "SINGLE", single);
  kernel_knob(spec, "FACTOR", single ? factor : 0);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", x, READ);
  operand_value(call, "y", y, WRITE);
  operand_value(call, "table", node->packed[0], READ);
  call_outside(program, call, node);
  operand_dim(call, "outer", value_count_dim(graph, x, 0, first));
  operand_dim_array(call, "in", last - first + 1, x->shape + first);
  operand_dim_array(call, "out", last - first + 1, y->shape + first);
  operand_dim(call, "inner", inner);
  call_cost(call, 0, 2 * (double)value_max_bytes(y));
}

/* ---- interpolation, one axis at a time; intermediate tensors are in the scratch memory ---- */

/* The axes are 0..n-1 of the order resized: their extents. */
static void extents_after(const Node *node, int n, const Dim *extents[MAX_RANK]) {
  const ResizeSchedule *schedule = schedule_of(node);
  for (int axis = 0; axis < schedule->resize.rank; axis++) extents[axis] = node->inputs[0]->shape[axis];
  for (int k = 0; k < n; k++) extents[schedule->axes[k]] = node->outputs[0]->shape[schedule->axes[k]];
}

static const Dim *product(DimTable *dims, const Dim *const *extents, int first, int end) {
  const Dim *count = dim_const(dims, 1);
  for (int axis = first; axis < end; axis++) count = dim_mul(dims, count, extents[axis]);
  return count;
}

/* Bytes of the first n intermediate tensors, each of whole cache lines. */
static const Dim *bytes_between(Graph *graph, const Node *node, int n) {
  DimTable *dims = graph->dims;
  const Dim *bytes = dim_const(dims, 0), *line = dim_const(dims, 64), *extents[MAX_RANK];
  for (int k = 0; k < n; k++) {
    extents_after(node, k + 1, extents);
    const Dim *own = dim_mul(dims, product(dims, extents, 0, node->inputs[0]->rank), dim_const(dims, sizeof(float)));
    bytes = dim_add(dims, bytes, dim_mul(dims, dim_div(dims, dim_add(dims, own, dim_const(dims, 63)), line), line));
  }
  return bytes;
}

static void scratch(Graph *graph, Node *node) {
  int n = schedule_of(node)->n_axes;
  if (is_blocked(node) || in_one_sweep(node) || n < 2) return;
  graph_scratch(graph, node, "axes resized so far", bytes_between(graph, node, n - 1));
}

/* Tensor k: 0 is the input, then the intermediate ones, then the output. */
static void operand_between(Program *program, Call *call, const char *parameter, const Node *node, int k,
                            AccessMode mode) {
  if (k == 0 || k == schedule_of(node)->n_axes) {
    operand_value(call, parameter, k ? node->outputs[0] : node->inputs[0], mode);
    return;
  }
  const Dim *begin = bytes_between(program->graph, node, k - 1), *end = bytes_between(program->graph, node, k);
  operand_part(call, parameter, node->scratch, begin, dim_sub(program->graph->dims, end, begin), mode);
}

static void lower_axis(Program *program, const Node *node, int k) {
  Graph *graph = program->graph;
  const ResizeSchedule *schedule = schedule_of(node);
  const Dim *extents[MAX_RANK];
  int axis = schedule->axes[k], rank = schedule->resize.rank;
  extents_after(node, k, extents);
  const Dim *inner = product(graph->dims, extents, axis + 1, rank), *out = node->outputs[0]->shape[axis];
  const Dim *outer = product(graph->dims, extents, 0, axis);
  KernelSpec *spec = kernel_spec(program, "resize_axis");
  kernel_knob(spec, "TAPS", schedule->taps[axis].n);
  kernel_knob(spec, "LAST_AXIS", dim_upper(inner) == 1);
  kernel_knob(spec, "CROPS", node_word(node, ATTR_coordinate_transformation_mode) == COORDINATES_tf_crop_and_resize);
  Call *call = kernel_call(program, node, spec);
  operand_between(program, call, "x", node, k, READ);
  operand_between(program, call, "y", node, k + 1, WRITE);
  operand_value(call, "start", node->packed[2 * k], READ);
  operand_value(call, "weight", node->packed[2 * k + 1], READ);
  operand_float(call, "outside", node_float(node, ATTR_extrapolation_value));
  operand_dim(call, "outer", outer);
  operand_dim(call, "in", extents[axis]);
  operand_dim(call, "out", out);
  operand_dim(call, "inner", inner);
  double planes = (double)dim_optimum(outer) * (double)dim_optimum(inner);
  double read = planes * (double)dim_value(extents[axis]), written = planes * (double)dim_value(out);
  call_cost(call, 2 * written * schedule->taps[axis].n, 4 * (read + written));
}

static void lower_resize(Program *program, Node *node) {
  if (is_blocked(node))
    lower_blocked(program, node);
  else if (in_one_sweep(node))
    lower_nearest(program, node);
  else
    for (int k = 0; k < schedule_of(node)->n_axes; k++) lower_axis(program, node, k);
}

static void dump_knobs(Text *out, const Graph *graph, const Node *node) {
  (void)graph;
  const ResizeSchedule *s = schedule_of(node);
  if (!s) return;
  text_add(out, "  axes in order");
  for (int i = 0; i < s->n_axes; i++) text_add(out, " %d", s->axes[i]);
  text_add(out, "\n");
}

const KernelFamily family_resize = {
    .layouts = layouts,
    .schedule = schedule,
    .scratch = scratch,
    .pack = pack,
    .lower = lower_resize,
    .dump_knobs = dump_knobs,
};
