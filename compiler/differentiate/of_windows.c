/* SPDX-License-Identifier: MIT */
/*
 * Gradients of convolution and pooling. The input's is a convolution of the result's; with strides one for each place
 * modulo these, if these are at most MAX_PHASES. It is a transposed one where they are more, where an axis has a stride
 * and a dilation, or where a place would read nothing of the result. The weights' has a kernel of its own.
 */
#include "differentiate/rule.h"
#include "ir/op.h"
#include "shapes/shape.h"

static Window window_of(const Gradient *g) {
  Window window;
  if (!read_window(g->f->graph, g->node, &window)) bug("the window was good before");
  return window;
}

static bool pads_are_constant(const Window *w) {
  for (int i = 0; i < w->n_spatial; i++)
    if (!dim_is_const(w->pad_begin[i]) || !dim_is_const(w->pad_end[i])) return false;
  return true;
}

/* ---- the input's ---- */

/* d, moved back through windows of these weights [M, C/group, ...] to the shape of x. What no window reads is 0. */
static Value *through_windows(const Gradient *g, const Window *w, Value *d, Value *weights, int64_t group, Value *x) {
  const Formula *f = g->f;
  Graph *graph = f->graph;
  DimTable *dims = graph->dims;
  const Attribute attributes[] = {attribute_ints(graph->arena, ATTR_strides, w->n_spatial, w->stride),
                                  attribute_ints(graph->arena, ATTR_dilations, w->n_spatial, w->dilation),
                                  attribute_ints(graph->arena, ATTR_kernel_shape, w->n_spatial, w->kernel),
                                  attribute_int(ATTR_group, group)};
  Value *whole = build_op(f, OP_ConvTranspose, 2, (Value *const[]){d, weights}, 1, 4, attributes)->outputs[0];
  const Dim *zero = dim_const(dims, 0), *pads[2 * MAX_RANK], *ends[2 * MAX_RANK];
  bool beyond = false; /* do windows begin so far before x that their end must be there before their begin is cut? */
  for (int axis = 0; axis < x->rank; axis++) {
    const Dim *begin = axis < 2 ? zero : w->pad_begin[axis - 2];
    int end = x->rank + axis;
    pads[axis] = dim_sub(dims, zero, begin);
    pads[end] = ends[end] = dim_sub(dims, dim_add(dims, x->shape[axis], begin), whole->shape[axis]);
    ends[axis] = zero;
    beyond |= !dim_at_most(dims, begin, whole->shape[axis]);
  }
  if (beyond) whole = apply2(f, OP_Pad, whole, extents(f, 2 * x->rank, ends));
  for (int axis = 0; beyond && axis < x->rank; axis++) pads[x->rank + axis] = zero;
  return apply2(f, OP_Pad, whole, extents(f, 2 * x->rank, pads));
}

/* Weights [groups K, C, ...] as [groups C, K, ...], each window turned around. */
static Value *turned_weights(const Formula *f, Value *weights, int64_t groups) {
  DimTable *dims = f->graph->dims;
  int rank = weights->rank;
  const Dim *K = dim_const(dims, dim_value(weights->shape[0]) / groups), *C = weights->shape[1];
  const Dim *by_group[MAX_RANK + 1] = {dim_const(dims, groups), K, C};
  const Dim *joined[MAX_RANK] = {dim_mul(dims, by_group[0], C), K};
  int64_t perm[MAX_RANK + 1] = {0, 2, 1}, axes[MAX_RANK], steps[MAX_RANK];
  const Dim *starts[MAX_RANK], *ends[MAX_RANK];
  for (int axis = 2; axis < rank; axis++) {
    by_group[axis + 1] = joined[axis] = weights->shape[axis];
    perm[axis + 1] = axis + 1;
    axes[axis - 2] = axis;
    steps[axis - 2] = -1;
    starts[axis - 2] = dim_sub(dims, weights->shape[axis], dim_const(dims, 1));
    ends[axis - 2] = dim_sub(dims, dim_const(dims, -1), weights->shape[axis]);
  }
  Value *turned = in_shape(f, build_transpose(f, in_shape(f, weights, rank + 1, by_group), perm), rank, joined);
  int n = rank - 2;
  Value *const inputs[] = {turned, extents(f, n, starts), extents(f, n, ends), integers(f, n, axes),
                           integers(f, n, steps)};
  return build_op(f, OP_Slice, 5, inputs, 1, 0, NULL)->outputs[0];
}

/* Along one axis, of x's places that are equal modulo the stride: the taps of the window that reach them, and the pads
 * by which a convolution of d by these alone finds them. */
typedef struct Phase {
  int64_t first, taps; /* first, first + stride, ... */
  const Dim *before, *after;
} Phase;

/* Places of a phase, the last one perhaps beyond x. */
static const Dim *places_of_phase(DimTable *dims, const Window *w, const Value *x, int axis) {
  return dim_ceil_div(dims, x->shape[2 + axis], dim_const(dims, w->stride[axis]));
}

static Phase phase_of(DimTable *dims, const Window *w, const Value *x, int axis, int64_t phase) {
  int64_t stride = w->stride[axis], at = phase + dim_value(w->pad_begin[axis]), first = at % stride;
  int64_t taps = first < w->kernel[axis] ? (w->kernel[axis] - first + stride - 1) / stride : 0;
  int64_t reach = w->dilation[axis] * (taps - 1), shift = at / stride;
  const Dim *more = dim_sub(dims, places_of_phase(dims, w, x, axis), w->out[axis]);
  const Dim *after = stride == 1 ? dim_sub(dims, dim_const(dims, reach), w->pad_end[axis])
                                 : dim_add(dims, more, dim_const(dims, shift));
  return (Phase){.first = first, .taps = taps, .before = dim_const(dims, reach - shift), .after = after};
}

/* The taps of all axes' phases. */
static Value *weights_of_phases(const Formula *f, const Window *w, Value *weights, const Phase *phases) {
  DimTable *dims = f->graph->dims;
  const Dim *starts[MAX_SPATIAL], *ends[MAX_SPATIAL];
  int64_t axes[MAX_SPATIAL];
  int n = w->n_spatial;
  for (int i = 0; i < n; i++) {
    axes[i] = 2 + i;
    starts[i] = dim_const(dims, phases[i].first);
    ends[i] = dim_const(dims, w->kernel[i]);
  }
  if (!is_strided(w)) return weights;
  Value *const inputs[] = {weights, extents(f, n, starts), extents(f, n, ends), integers(f, n, axes),
                           integers(f, n, w->stride)};
  return build_op(f, OP_Slice, 5, inputs, 1, 0, NULL)->outputs[0];
}

static bool is_pad(const Dim *dim) { return dim_is_const(dim) && dim_value(dim) >= 0; }

/* d with these spatial pads; those that a convolution can make itself are left to it, in `pads`. */
static Value *with_pads(const Formula *f, int n, Value *d, const Dim *const *before, const Dim *const *after,
                        int64_t *pads) {
  const Dim *zero = dim_const(f->graph->dims, 0), *around[2 * MAX_RANK];
  bool any = false;
  for (int k = 0; k < 2 * d->rank; k++) around[k] = zero;
  for (int i = 0; i < n; i++) {
    pads[i] = is_pad(before[i]) ? dim_value(before[i]) : 0;
    pads[n + i] = is_pad(after[i]) ? dim_value(after[i]) : 0;
    if (!is_pad(before[i])) around[2 + i] = before[i];
    if (!is_pad(after[i])) around[d->rank + 2 + i] = after[i];
    any |= !is_pad(before[i]) || !is_pad(after[i]);
  }
  return any ? apply2(f, OP_Pad, d, extents(f, 2 * d->rank, around)) : d;
}

/* The gradient at the places of a phase of each axis, by a convolution of d by its taps turned around. */
static Value *at_phases(const Gradient *g, const Window *w, Value *d, const int64_t *which) {
  const Formula *f = g->f;
  Value *x = g->node->inputs[0], *weights = g->node->inputs[1];
  Phase phases[MAX_SPATIAL];
  const Dim *shape[MAX_RANK] = {x->shape[0], x->shape[1]}, *before[MAX_SPATIAL], *after[MAX_SPATIAL];
  int64_t group = node_int(g->node, ATTR_group), pads[2 * MAX_SPATIAL];
  bool none = false;
  for (int i = 0; i < w->n_spatial; i++) {
    phases[i] = phase_of(f->graph->dims, w, x, i, which[i]);
    before[i] = phases[i].before;
    after[i] = phases[i].after;
    shape[2 + i] = places_of_phase(f->graph->dims, w, x, i);
    none |= !phases[i].taps;
  }
  if (none) return spread_to_shape(f, number(f, x, 0), x->rank, shape);
  Value *turned = turned_weights(f, weights_of_phases(f, w, weights, phases), group);
  d = with_pads(f, w->n_spatial, d, before, after, pads);
  const Attribute attributes[] = {attribute_ints(f->graph->arena, ATTR_dilations, w->n_spatial, w->dilation),
                                  attribute_ints(f->graph->arena, ATTR_pads, 2 * w->n_spatial, pads),
                                  attribute_int(ATTR_group, group)};
  return build_op(f, OP_Conv, 2, (Value *const[]){d, turned}, 1, 3, attributes)->outputs[0];
}

/* All phases of the axes from `axis` on, in turns along each; those of the axes before are in `which`. */
static Value *all_phases(const Gradient *g, const Window *w, Value *d, int axis, int64_t *which) {
  const Formula *f = g->f;
  if (axis == w->n_spatial) return at_phases(g, w, d, which);
  int64_t stride = w->stride[axis];
  Value **parts = ARENA_ARRAY(f->graph->arena, Value *, stride);
  for (which[axis] = 0; which[axis] < stride; which[axis]++) parts[which[axis]] = all_phases(g, w, d, axis + 1, which);
  if (stride == 1) return parts[0];
  const Dim *shape[MAX_RANK];
  int rank = parts[0]->rank;
  for (int k = 0; k < rank; k++) shape[k] = parts[0]->shape[k];
  shape[2 + axis] = dim_mul(f->graph->dims, shape[2 + axis], dim_const(f->graph->dims, stride));
  for (int64_t p = 0; p < stride; p++) parts[p] = with_axis(f, parts[p], 3 + axis);
  return in_shape(f, build_concat(f, (int)stride, parts, 3 + axis), rank, shape);
}

/* Cut to x's extents. */
static Value *cut_to(const Formula *f, Value *d, const Value *x) {
  const Dim *pads[2 * MAX_RANK];
  if (has_shape(d, x->rank, x->shape)) return d;
  for (int axis = 0; axis < x->rank; axis++) {
    pads[axis] = dim_const(f->graph->dims, 0);
    pads[x->rank + axis] = dim_sub(f->graph->dims, x->shape[axis], d->shape[axis]);
  }
  return apply2(f, OP_Pad, d, extents(f, 2 * x->rank, pads));
}

/* Where pads reach far, a phase may begin behind all of d: its places read nothing, and a convolution of no extent is
 * none. Does no phase of the axis? */
static bool phases_leave_some(DimTable *dims, const Window *w, const Value *x, int axis) {
  for (int64_t p = 0; p < w->stride[axis]; p++) {
    Phase phase = phase_of(dims, w, x, axis, p);
    const Dim *least = dim_sub(dims, dim_const(dims, 1), phase.before);
    if (phase.taps && !dim_at_most(dims, least, w->out[axis])) return false;
  }
  return true;
}

/* A convolution for each phase: of larger strides there would be too many. */
enum { MAX_PHASES = 16 };

static bool has_phases(DimTable *dims, const Window *w, const Value *x) {
  int64_t phases = 1;
  for (int i = 0; i < w->n_spatial; i++) {
    if (w->stride[i] > 1 && w->dilation[i] > 1) return false;
    phases = w->stride[i] > MAX_PHASES ? MAX_PHASES + 1 : phases * w->stride[i];
  }
  if (phases > MAX_PHASES) return false;
  for (int i = 0; i < w->n_spatial; i++)
    if (!phases_leave_some(dims, w, x, i)) return false;
  return true;
}

static Value *input_gradient(const Gradient *g, const Window *w, Value *d) {
  Value *x = g->node->inputs[0];
  int64_t which[MAX_SPATIAL];
  if (has_phases(g->f->graph->dims, w, x)) return cut_to(g->f, all_phases(g, w, d, 0, which), x);
  return through_windows(g, w, d, g->node->inputs[1], node_int(g->node, ATTR_group), x);
}

/* ---- the weights' ---- */

static Value *weights_gradient(const Gradient *g, Value *d) {
  Node *node = g->node;
  Value *const inputs[] = {node->inputs[0], node->inputs[1], d};
  return build_op(g->f, OP_ConvWeightGradient, 3, inputs, 1, node->n_attributes, node->attributes)->outputs[0];
}

/* The bias's: what comes to each channel. */
static Value *bias_gradient(const Formula *f, Value *d) {
  int64_t axes[MAX_RANK] = {0};
  for (int axis = 2; axis < d->rank; axis++) axes[axis - 1] = axis;
  return summed_away(f, d, d->rank - 1, axes);
}

const char *of_conv(const Gradient *g) {
  Window w = window_of(g);
  Value *d = gradient_in(g);
  if (!pads_are_constant(&w)) return "pads that only the run knows";
  if (g->wanted[0]) g->dx[0] = input_gradient(g, &w, d);
  if (g->wanted[1]) g->dx[1] = weights_gradient(g, d);
  if (g->node->n_inputs > 2 && g->wanted[2]) g->dx[2] = bias_gradient(g->f, d);
  return NULL;
}

/* ---- transposed: x is the result of a convolution of y by the same weights, so the roles of x and d change ---- */

const char *of_conv_transpose(const Gradient *g) {
  const Formula *f = g->f;
  DimTable *dims = f->graph->dims;
  Window w = window_of(g);
  Value *x = g->node->inputs[0], *weights = g->node->inputs[1];
  const Dim *after[MAX_SPATIAL];
  int64_t pads[2 * MAX_SPATIAL];
  for (int i = 0; i < w.n_spatial; i++) { /* such that the last window begins at the last place of x */
    const Dim *begin = dim_mul(dims, dim_sub(dims, x->shape[2 + i], dim_const(dims, 1)), dim_const(dims, w.stride[i]));
    const Dim *end = dim_add(dims, begin, dim_const(dims, w.dilation[i] * (w.kernel[i] - 1) + 1));
    after[i] = dim_sub(dims, dim_sub(dims, end, w.out[i]), w.pad_begin[i]);
  }
  Value *d = with_pads(f, w.n_spatial, gradient_in(g), w.pad_begin, after, pads);
  const Attribute attributes[] = {attribute_ints(f->graph->arena, ATTR_strides, w.n_spatial, w.stride),
                                  attribute_ints(f->graph->arena, ATTR_dilations, w.n_spatial, w.dilation),
                                  attribute_ints(f->graph->arena, ATTR_pads, 2 * w.n_spatial, pads),
                                  attribute_int(ATTR_group, node_int(g->node, ATTR_group))};
  if (g->wanted[0]) g->dx[0] = build_op(f, OP_Conv, 2, (Value *const[]){d, weights}, 1, 4, attributes)->outputs[0];
  Value *const inputs[] = {d, weights, x};
  if (g->wanted[1]) g->dx[1] = build_op(f, OP_ConvWeightGradient, 3, inputs, 1, 4, attributes)->outputs[0];
  if (g->node->n_inputs > 2 && g->wanted[2]) g->dx[2] = bias_gradient(f, gradient_in(g));
  return NULL;
}

/* ---- pooling ---- */

/* [N, C, ...] as [N C, all others]. */
static Value *as_planes(const Formula *f, Value *x) {
  const Attribute axis = attribute_int(ATTR_axis, 2);
  return build_op(f, OP_Flatten, 1, &x, 1, 1, &axis)->outputs[0];
}

/* How many places a plane of x has, [1]: Mod reads it from memory, so that the run makes what it alone knows. */
static Value *places_of_plane(const Formula *f, Value *x) {
  Value *places = build_extent(f, x, 2);
  for (int axis = 3; axis < x->rank; axis++) places = apply2(f, OP_Mul, places, build_extent(f, x, axis));
  return places;
}

/* Each element of the gradient goes to the place that the pooling found, inside its plane. */
const char *of_max_pool(const Gradient *g) {
  const Formula *f = g->f;
  Graph *graph = f->graph;
  Node *node = g->node;
  Value *x = node->inputs[0];
  if (node_int(node, ATTR_storage_order)) return "a `storage_order` other than 0";
  if (x->dtype != RNNCC_F32) return "elements other than f32";
  Value *places = apply2(f, OP_Mod, as_planes(f, all_outputs(g, 2)[1]), places_of_plane(f, x));
  const Dim *shape[] = {value_count_dim(graph, x, 0, 2), value_count_dim(graph, x, 2, x->rank)};
  const Attribute attributes[] = {attribute_one_of(ATTR_reduction, SCATTER_add), attribute_int(ATTR_axis, 1)};
  Value *const inputs[] = {spread_to_shape(f, number(f, x, 0), 2, shape), places, as_planes(f, gradient_in(g))};
  g->dx[0] = shaped_as(f, build_op(f, OP_ScatterElements, 3, inputs, 1, 2, attributes)->outputs[0], x);
  return NULL;
}

/* Ones in this shape, made by the run where that is only then known. */
static Value *ones(const Formula *f, const Value *like, int rank, const Dim *const *shape) {
  return spread_to_shape(f, number(f, like, 1), rank, shape);
}

/* How many elements of x each window counts: [1, 1, ...]. */
static Value *window_counts(const Gradient *g, const Window *w) {
  const Formula *f = g->f;
  Graph *graph = f->graph;
  const Value *x = g->node->inputs[0];
  const Dim *one = dim_const(graph->dims, 1), *plane[MAX_RANK] = {one, one}, *window[MAX_RANK] = {one, one};
  int64_t pads[2 * MAX_SPATIAL];
  for (int i = 0; i < w->n_spatial; i++) {
    plane[2 + i] = x->shape[2 + i];
    window[2 + i] = dim_const(graph->dims, w->kernel[i]);
    pads[i] = dim_value(w->pad_begin[i]);
    pads[w->n_spatial + i] = dim_value(w->pad_end[i]);
  }
  const Attribute attributes[] = {attribute_ints(graph->arena, ATTR_strides, w->n_spatial, w->stride),
                                  attribute_ints(graph->arena, ATTR_dilations, w->n_spatial, w->dilation),
                                  attribute_ints(graph->arena, ATTR_pads, 2 * w->n_spatial, pads)};
  Value *const inputs[] = {ones(f, x, x->rank, plane), ones(f, x, x->rank, window)};
  return build_op(f, OP_Conv, 2, inputs, 1, 3, attributes)->outputs[0];
}

const char *of_average_pool(const Gradient *g) {
  const Formula *f = g->f;
  const Node *node = g->node;
  Value *x = node->inputs[0];
  Window w = window_of(g);
  bool unpadded = is_unpadded(&w), all = node_int(node, ATTR_count_include_pad) != 0;
  if (!dim_is_const(x->shape[1])) return "channels that only the run knows";
  if (!pads_are_constant(&w)) return "pads that only the run knows";
  if (w.partial) return "windows that reach beyond the padded input";
  int64_t points = 1;
  const Dim *shape[MAX_RANK] = {x->shape[1], dim_const(f->graph->dims, 1)};
  for (int i = 0; i < w.n_spatial; i++) {
    points *= w.kernel[i];
    shape[2 + i] = dim_const(f->graph->dims, w.kernel[i]);
  }
  Value *count = unpadded || all ? number(f, x, (double)points) : window_counts(g, &w);
  Value *d = over(f, gradient_in(g), count);
  g->dx[0] = through_windows(g, &w, d, ones(f, x, x->rank, shape), dim_value(x->shape[1]), x);
  return NULL;
}
