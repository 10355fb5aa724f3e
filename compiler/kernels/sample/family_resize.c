/* SPDX-License-Identifier: MIT */
/*
 * Resize by tables, constant or, where only the run knows an extent, written first by a kernel of their own: nearest
 * elements in one sweep, interpolation one axis at a time, on blocked tensors both axes at once.
 */
#include <string.h>

#include "ir/family.h"
#include "ir/tensor.h"
#include "knobs.h"
#include "layout/blocked.h"
#include "program/build.h"
#include "reference/resize_taps.h"
#include "support/diagnostics.h"
#include "support/numbers.h"

/* As in templates/resize_blocked.c and resize_nearest.c. */
enum { MAX_BLOCKED_TAPS = 64, MAX_FACTOR = 16 };
enum { CACHE_LINE = 64 };

typedef struct ResizeSchedule {
  Schedule base;
  Resize resize;
  ResizeTaps taps[MAX_RANK];   /* of axes with constant tables */
  int n_axes, axes[MAX_RANK];  /* the resized ones, in the order of interpolation */
  int n_tables, of[MAX_RANK];  /* the axes that have tables, in their order in memory */
  bool written[MAX_RANK];      /* by axis: the run writes its tables, into the scratch memory; else they are packed */
  int packed[MAX_RANK];        /* by axis: where its index table is among the node's packed constants */
  int64_t n_taps[MAX_RANK];    /* by axis */
  const Dim *start[MAX_RANK];  /* by axis: bytes of the scratch memory before its index table, */
  const Dim *weight[MAX_RANK]; /* and before its weights */
  const Dim *table_bytes;      /* in the scratch memory, of all axes */
} ResizeSchedule;

static const ResizeSchedule *schedule_of(const Node *node) { return (const ResizeSchedule *)node->schedule; }

static Resize resize_of(Graph *graph, const Node *node) {
  Resize resize;
  if (!read_resize(graph, node, &resize)) bug("n%d: a Resize that has no shape", node->id);
  return resize;
}

static bool is_nearest(const Node *node) { return node_word(node, ATTR_mode) == RESIZE_nearest; }

static bool has_run_time_table(const Node *node, const Resize *resize, int axis) {
  return resize->resized[axis] ? resize->at_run_time[axis] : !dim_is_const(node->inputs[0]->shape[axis]);
}

/* Of a constant table. */
static ResizeTaps taps_of(Graph *graph, const Node *node, const Resize *resize, int axis) {
  if (resize->resized[axis]) return resize_taps(graph->arena, node, &resize->axis[axis]);
  return resize_identity(graph->arena, dim_value(node->inputs[0]->shape[axis]));
}

static int64_t tap_count(const Node *node, const Resize *resize, int axis) {
  if (!resize->resized[axis]) return 1;
  int64_t n = resize_tap_count(node, &resize->axis[axis]);
  return resize->at_run_time[axis] ? n : min_int(n, resize->axis[axis].in);
}

/* May the input have fewer elements along the axis than there are taps? */
static bool may_be_few(const Node *node, int axis) {
  const ResizeSchedule *schedule = schedule_of(node);
  return schedule->written[axis] && dim_lower(node->inputs[0]->shape[axis]) < schedule->n_taps[axis];
}

/* ---- choice ---- */

static bool shrinks(const Node *node, const Resize *resize, int axis) {
  return dim_optimum(resize->out[axis]) < dim_optimum(node->inputs[0]->shape[axis]);
}

/* Axes that shrink first, the outermost before the others, because fewer rows remain; then those that grow, the
 * innermost first. */
static void order_axes(const Node *node, const Resize *resize, ResizeSchedule *schedule) {
  for (int axis = 0; axis < resize->rank; axis++)
    if (resize->resized[axis] && shrinks(node, resize, axis)) schedule->axes[schedule->n_axes++] = axis;
  for (int axis = resize->rank - 1; axis >= 0; axis--)
    if (resize->resized[axis] && !shrinks(node, resize, axis)) schedule->axes[schedule->n_axes++] = axis;
}

/* The first and the last resized axis; the last axis if there is none. */
static void table_axes(const Resize *resize, int *first, int *last) {
  *first = *last = resize->rank - 1;
  for (int axis = resize->rank - 1; axis >= 0; axis--)
    if (resize->resized[axis]) *first = axis;
  for (int axis = 0; axis < resize->rank; axis++)
    if (resize->resized[axis]) *last = axis;
}

static bool in_one_sweep(const Node *node) { return is_nearest(node) || schedule_of(node)->n_axes == 0; }

/* In one sweep all axes between the first and the last resized one have tables, in one piece; on blocked tensors the
 * spatial axes; else those that are resized. */
static void list_tables(const Node *node, ResizeSchedule *schedule) {
  int first = 2, last = schedule->resize.rank - 1;
  bool sweeps = !is_blocked(node) && in_one_sweep(node), any_written = false;
  if (sweeps) table_axes(&schedule->resize, &first, &last);
  schedule->n_tables = is_blocked(node) || sweeps ? last - first + 1 : schedule->n_axes;
  for (int k = 0; k < schedule->n_tables; k++) {
    int axis = schedule->of[k] = is_blocked(node) || sweeps ? first + k : schedule->axes[k];
    schedule->n_taps[axis] = tap_count(node, &schedule->resize, axis);
    schedule->written[axis] = has_run_time_table(node, &schedule->resize, axis);
    any_written |= schedule->written[axis];
  }
  for (int k = 0; sweeps && k < schedule->n_tables; k++) schedule->written[schedule->of[k]] = any_written;
}

/* Tables that are read in one piece follow each other; others have room for the largest extent. */
static void place_tables(Graph *graph, const Node *node, ResizeSchedule *schedule) {
  DimTable *dims = graph->dims;
  bool sweeps = !is_blocked(node) && in_one_sweep(node);
  const Dim *at = dim_const(dims, 0);
  for (int k = 0; k < schedule->n_tables; k++) {
    int axis = schedule->of[k];
    const Dim *out = schedule->resize.out[axis];
    if (!schedule->written[axis]) continue;
    int64_t most = round_up(dim_upper(out) * (int64_t)sizeof(float), CACHE_LINE);
    schedule->start[axis] = at;
    schedule->weight[axis] = at =
        dim_add(dims, at, sweeps ? dim_mul(dims, out, dim_const(dims, sizeof(int32_t))) : dim_const(dims, most));
    if (!is_nearest(node) && schedule->resize.resized[axis])
      at = dim_add(dims, at, dim_const(dims, most * schedule->n_taps[axis]));
  }
  schedule->table_bytes = dim_const(dims, round_up(dim_upper(at), CACHE_LINE));
}

static void schedule(Graph *graph, Node *node) {
  ResizeSchedule *schedule = ARENA_NEW(graph->arena, ResizeSchedule);
  schedule->resize = resize_of(graph, node);
  order_axes(node, &schedule->resize, schedule);
  schedule->base.text =
      arena_format(graph->arena, "resize_%s%s", node_string(node, ATTR_mode), is_blocked(node) ? "_blocked" : "");
  node->schedule = &schedule->base;
  list_tables(node, schedule);
  place_tables(graph, node, schedule);
}

static LayoutSet layouts(Graph *graph, const Node *node) {
  Resize resize = resize_of(graph, node);
  if (resize.resized[0] || resize.resized[1]) return 0;
  if (node_word(node, ATTR_coordinate_transformation_mode) == COORDINATES_tf_crop_and_resize) return 0;
  for (int axis = 2; axis < resize.rank; axis++)
    if (tap_count(node, &resize, axis) > MAX_BLOCKED_TAPS) return 0;
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

static void pack_two(Graph *graph, Node *node, int axis) {
  ResizeSchedule *schedule = (ResizeSchedule *)node->schedule;
  const ResizeTaps *taps = &schedule->taps[axis];
  int64_t out = dim_value(node->outputs[0]->shape[axis]);
  schedule->packed[axis] = node->n_packed;
  graph_pack(graph, node, index_table(graph, out, taps->start));
  graph_pack(graph, node, weight_table(graph, taps, out));
}

static void pack_nearest(Graph *graph, Node *node) {
  const ResizeSchedule *schedule = schedule_of(node);
  int64_t count = 0, at = 0;
  for (int k = 0; k < schedule->n_tables; k++) count += dim_value(node->outputs[0]->shape[schedule->of[k]]);
  int32_t *table = ARENA_ARRAY(graph->arena, int32_t, count);
  for (int k = 0; k < schedule->n_tables; k++)
    for (int64_t o = 0; o < dim_value(node->outputs[0]->shape[schedule->of[k]]); o++)
      table[at++] = schedule->taps[schedule->of[k]].start[o];
  graph_pack(graph, node, index_table(graph, count, table));
}

static void pack(Graph *graph, Node *node) {
  ResizeSchedule *schedule = (ResizeSchedule *)node->schedule;
  bool sweeps = !is_blocked(node) && in_one_sweep(node);
  for (int k = 0; k < schedule->n_tables; k++) {
    int axis = schedule->of[k];
    if (schedule->written[axis]) continue;
    schedule->taps[axis] = taps_of(graph, node, &schedule->resize, axis);
    if (!sweeps) pack_two(graph, node, axis);
  }
  if (sweeps && !schedule->written[schedule->of[0]]) pack_nearest(graph, node);
}

/* ---- tables that the run writes ---- */

static const int modes[] = {
    [RESIZE_nearest] = SAMPLE_NEAREST, [RESIZE_linear] = SAMPLE_LINEAR, [RESIZE_cubic] = SAMPLE_CUBIC};
static const int places[] = {
    [COORDINATES_half_pixel] = PLACE_HALF_PIXEL,       [COORDINATES_half_pixel_symmetric] = PLACE_SYMMETRIC,
    [COORDINATES_pytorch_half_pixel] = PLACE_PYTORCH,  [COORDINATES_asymmetric] = PLACE_ASYMMETRIC,
    [COORDINATES_align_corners] = PLACE_CORNERS,       [COORDINATES_tf_crop_and_resize] = PLACE_CROP,
    [COORDINATES_tf_half_pixel_for_nn] = PLACE_MIDDLE,
};
static const int rounds[] = {[NEAREST_round_prefer_floor] = ROUND_PREFER_FLOOR,
                             [NEAREST_round_prefer_ceil] = ROUND_PREFER_CEIL,
                             [NEAREST_floor] = ROUND_DOWN,
                             [NEAREST_ceil] = ROUND_UP};

/* The part of the scratch memory that is the axis's index table or its weights. */
static void operand_written(Program *program, Call *call, const char *parameter, const Node *node, int axis,
                            bool weights, AccessMode mode) {
  const ResizeSchedule *schedule = schedule_of(node);
  DimTable *dims = program->graph->dims;
  const Dim *entries =
      dim_mul(dims, node->outputs[0]->shape[axis], dim_const(dims, weights ? schedule->n_taps[axis] : 1));
  operand_part(call, parameter, node->scratch, (weights ? schedule->weight : schedule->start)[axis],
               dim_mul(dims, entries, dim_const(dims, sizeof(float))), mode);
}

/* An axis that is not resized has the table of the nearest element at a scale of 1. */
static void lower_tables(Program *program, const Node *node, int axis) {
  const ResizeSchedule *schedule = schedule_of(node);
  bool resized = schedule->resize.resized[axis], nearest = is_nearest(node) || !resized;
  const ResizeAxis *own = &schedule->resize.axis[axis];
  const Dim *in = node->inputs[0]->shape[axis], *out = node->outputs[0]->shape[axis];
  KernelSpec *spec = kernel_spec(program, "resize_taps");
  kernel_knob(spec, "MODE", nearest ? SAMPLE_NEAREST : modes[node_word(node, ATTR_mode)]);
  kernel_knob(spec, "PLACE", resized ? places[node_word(node, ATTR_coordinate_transformation_mode)] : PLACE_ASYMMETRIC);
  kernel_knob(spec, "ROUND", rounds[node_word(node, ATTR_nearest_mode)]);
  kernel_knob(spec, "TAPS", schedule->n_taps[axis]);
  kernel_knob(spec, "EXCLUDES", node_int(node, ATTR_exclude_outside) != 0);
  Call *call = kernel_call(program, node, spec);
  operand_written(program, call, "start", node, axis, false, WRITE);
  operand_sharing(call, "start", SHARED_APART); /* tables are apart */
  if (nearest) {
    operand_null(call, "weight");
  } else {
    operand_written(program, call, "weight", node, axis, true, WRITE);
    operand_sharing(call, "weight", SHARED_APART);
  }
  operand_float(call, "scale", resized ? (double)own->scale : 1);
  operand_float(call, "length", resized ? (double)own->length : 0);
  operand_float(call, "begin", resized ? (double)own->roi[0] : 0);
  operand_float(call, "end", resized ? (double)own->roi[1] : 1);
  operand_float(call, "a", node_float(node, ATTR_cubic_coeff_a));
  operand_float(call, "narrow", resized ? resize_narrow(node, own) : 1);
  operand_dim(call, "in", in);
  operand_dim(call, "out", out);
  call_flops(call, 20 * (double)schedule->n_taps[axis], EXTENTS(out));
  call_bytes(call, 8 * (double)schedule->n_taps[axis], EXTENTS(out));
}

/* An axis's index table and weights, constant or written by the run. */
static void operand_tables(Program *program, Call *call, const char *start, const char *weight, const Node *node,
                           int axis) {
  const ResizeSchedule *schedule = schedule_of(node);
  if (!schedule->written[axis]) {
    operand_value(call, start, node->packed[schedule->packed[axis]], READ);
    operand_value(call, weight, node->packed[schedule->packed[axis] + 1], READ);
    return;
  }
  operand_written(program, call, start, node, axis, false, READ);
  if (schedule->n_taps[axis] > 1)
    operand_written(program, call, weight, node, axis, true, READ);
  else
    operand_null(call, weight);
}

/* ---- blocked ---- */

static void lower_blocked(Program *program, Node *node) {
  Graph *graph = program->graph;
  Blocked x = blocked_of(graph, node->inputs[0]), y = blocked_of(graph, node->outputs[0]);
  const int64_t *n_taps = schedule_of(node)->n_taps;
  int rank = node->inputs[0]->rank;
  bool flat = rank == 3;
  KernelSpec *spec = kernel_spec(program, "resize_blocked");
  kernel_knob(spec, "TAPS_H", flat ? 1 : n_taps[2]);
  kernel_knob(spec, "TAPS_W", n_taps[rank - 1]);
  kernel_knob(spec, "FEW", (!flat && may_be_few(node, 2)) || may_be_few(node, rank - 1));
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", node->inputs[0], READ);
  operand_value(call, "y", node->outputs[0], WRITE);
  if (flat) {
    operand_integer_array(call, "row_start", 1, (const int64_t[]){0});
    operand_integer_array(call, "row_weight", 1, (const int64_t[]){1});
  } else {
    operand_tables(program, call, "row_start", "row_weight", node, 2);
  }
  operand_tables(program, call, "column_start", "column_weight", node, rank - 1);
  operand_dim(call, "n", node->inputs[0]->shape[0]);
  operand_integer(call, "blocks", x.blocks);
  operand_extent(call, "x_image", x.image);
  operand_extent(call, "y_image", y.image);
  operand_extent(call, "in_h", x.height);
  operand_extent(call, "in_w", x.width);
  operand_extent(call, "out_h", y.height);
  operand_extent(call, "out_w", y.width);
  call_flops_of(call, 2 * (double)(n_taps[rank - 1] * (flat ? 1 : n_taps[2])), node->outputs[0]);
  call_bytes_of(call, 4, node->inputs[0]);
  call_bytes_of(call, 4, node->outputs[0]);
}

/* ---- nearest ---- */

/* How often each element is repeated, in order; 0 if they differ. With extents of the run, by a table of the largest:
 * but for align_corners and half_pixel_symmetric, an element's place does not depend on the extents. */
static int64_t factor_of(Graph *graph, const Node *node, int axis) {
  const ResizeSchedule *schedule = schedule_of(node);
  const Dim *x = node->inputs[0]->shape[axis], *y = node->outputs[0]->shape[axis];
  int64_t in = dim_upper(x), out = dim_upper(y), factor = out / in;
  ResizeTaps taps = schedule->taps[axis];
  if (out % in || factor > MAX_FACTOR) return 0;
  if (schedule->written[axis]) {
    int place = node_word(node, ATTR_coordinate_transformation_mode);
    bool anywhere = place == COORDINATES_align_corners || place == COORDINATES_half_pixel_symmetric ||
                    place == COORDINATES_tf_crop_and_resize;
    if (anywhere || !schedule->resize.resized[axis] || schedule->resize.axis[axis].scale != (float)factor) return 0;
    ResizeAxis largest = resize_axis(in, out, (float)factor);
    taps = resize_taps(graph->arena, node, &largest);
  }
  for (int64_t o = 0; o < out; o++)
    if (taps.start[o] != o / factor) return 0;
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
  table_axes(&schedule_of(node)->resize, &first, &last);
  const Dim *inner = value_count_dim(graph, x, last + 1, x->rank);
  bool single = dim_upper(inner) == 1;
  KernelSpec *spec = kernel_spec(program, "resize_nearest");
  kernel_bits(spec, "T", x->dtype);
  kernel_knob(spec, "AXES", last - first + 1);
  kernel_knob(spec, "SINGLE", single);
  kernel_knob(spec, "FACTOR", single ? factor_of(graph, node, last) : 0);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", x, READ);
  operand_value(call, "y", y, WRITE);
  if (schedule_of(node)->written[last])
    operand_part(call, "table", node->scratch, dim_const(graph->dims, 0), schedule_of(node)->table_bytes, READ);
  else
    operand_value(call, "table", node->packed[0], READ);
  call_outside(program, call, node);
  operand_dim(call, "outer", value_count_dim(graph, x, 0, first));
  operand_dim_array(call, "in", last - first + 1, x->shape + first);
  operand_dim_array(call, "out", last - first + 1, y->shape + first);
  operand_dim(call, "inner", inner);
  call_bytes_of(call, 2 * (double)dtype_size(y->dtype), y);
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

/* Bytes of the tables and of the first n intermediate tensors, each of whole cache lines. */
static const Dim *bytes_between(Graph *graph, const Node *node, int n) {
  DimTable *dims = graph->dims;
  const Dim *bytes = schedule_of(node)->table_bytes, *line = dim_const(dims, CACHE_LINE), *extents[MAX_RANK];
  for (int k = 0; k < n; k++) {
    extents_after(node, k + 1, extents);
    const Dim *own = dim_mul(dims, product(dims, extents, 0, node->inputs[0]->rank), dim_const(dims, sizeof(float)));
    bytes = dim_add(dims, bytes,
                    dim_mul(dims, dim_div(dims, dim_add(dims, own, dim_const(dims, CACHE_LINE - 1)), line), line));
  }
  return bytes;
}

static void scratch(Graph *graph, Node *node) {
  int n = schedule_of(node)->n_axes;
  bool between = !is_blocked(node) && !in_one_sweep(node) && n > 1;
  const Dim *bytes = bytes_between(graph, node, between ? n - 1 : 0);
  if (!dim_equals(bytes, 0)) graph_scratch(graph, node, "tables, and axes resized so far", bytes);
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
  kernel_knob(spec, "TAPS", schedule->n_taps[axis]);
  kernel_knob(spec, "FEW", may_be_few(node, axis));
  kernel_knob(spec, "LAST_AXIS", dim_upper(inner) == 1);
  kernel_knob(spec, "CROPS", node_word(node, ATTR_coordinate_transformation_mode) == COORDINATES_tf_crop_and_resize);
  Call *call = kernel_call(program, node, spec);
  operand_between(program, call, "x", node, k, READ);
  operand_between(program, call, "y", node, k + 1, WRITE);
  operand_tables(program, call, "start", "weight", node, axis);
  operand_float(call, "outside", node_float(node, ATTR_extrapolation_value));
  operand_dim(call, "outer", outer);
  operand_dim(call, "in", extents[axis]);
  operand_dim(call, "out", out);
  operand_dim(call, "inner", inner);
  call_flops(call, 2 * (double)schedule->n_taps[axis], EXTENTS(outer, out, inner));
  call_bytes(call, 4, EXTENTS(outer, extents[axis], inner));
  call_bytes(call, 4, EXTENTS(outer, out, inner));
}

static void lower_resize(Program *program, Node *node) {
  const ResizeSchedule *schedule = schedule_of(node);
  for (int k = 0; k < schedule->n_tables; k++)
    if (schedule->written[schedule->of[k]]) lower_tables(program, node, schedule->of[k]);
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
    .takes_constant_data = true,
    .runs_any_plane = true,
    .schedule = schedule,
    .scratch = scratch,
    .pack = pack,
    .lower = lower_resize,
    .dump_knobs = dump_knobs,
};
