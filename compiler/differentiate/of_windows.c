/* SPDX-License-Identifier: MIT */
/*
 * Gradients of convolution and pooling. The input's is a transposed convolution of the result's. The weights' is, for
 * each tap of the window, a matrix product over all places of the window: of the result's gradient, [places, M], and of
 * the input at that tap, [places, C].
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
  const Dim *pads[2 * MAX_RANK];
  for (int axis = 0; axis < x->rank; axis++) {
    const Dim *before = axis < 2 ? dim_const(dims, 0) : dim_sub(dims, dim_const(dims, 0), w->pad_begin[axis - 2]);
    pads[axis] = before;
    pads[x->rank + axis] = dim_sub(dims, dim_sub(dims, x->shape[axis], before), whole->shape[axis]);
  }
  return apply2(f, OP_Pad, whole, extents(f, 2 * x->rank, pads));
}

/* ---- the weights' ---- */

/* [N, C, ...] with the channels last. */
static Value *channels_last(const Formula *f, Value *x) {
  int64_t perm[MAX_RANK] = {0};
  for (int axis = 2; axis < x->rank; axis++) perm[axis - 1] = axis;
  perm[x->rank - 1] = 1;
  return build_transpose(f, x, perm);
}

/* x [N, ..., C] with the zeros around that windows read. */
static Value *with_pads(const Formula *f, const Window *w, Value *x) {
  DimTable *dims = f->graph->dims;
  const Dim *pads[2 * MAX_RANK];
  bool any = false;
  for (int k = 0; k < 2 * x->rank; k++) pads[k] = dim_const(dims, 0);
  for (int i = 0; i < w->n_spatial; i++) {
    pads[1 + i] = w->pad_begin[i];
    pads[x->rank + 1 + i] = w->pad_end[i];
    any |= !dim_equals(w->pad_begin[i], 0) || !dim_equals(w->pad_end[i], 0);
  }
  return any ? apply2(f, OP_Pad, x, extents(f, 2 * x->rank, pads)) : x;
}

/* What tap number `tap` of each window reads: [N, ..., C], of the windows' places. */
static Value *at_tap(const Formula *f, const Window *w, Value *x, int64_t tap) {
  DimTable *dims = f->graph->dims;
  const Dim *starts[MAX_SPATIAL], *ends[MAX_SPATIAL];
  int64_t axes[MAX_SPATIAL];
  for (int i = w->n_spatial - 1; i >= 0; i--) {
    const Dim *first = dim_const(dims, tap % w->kernel[i] * w->dilation[i]);
    const Dim *last = dim_mul(dims, dim_sub(dims, w->out[i], dim_const(dims, 1)), dim_const(dims, w->stride[i]));
    tap /= w->kernel[i];
    starts[i] = first;
    ends[i] = dim_add(dims, dim_add(dims, first, last), dim_const(dims, 1));
    axes[i] = 1 + i;
  }
  int n = w->n_spatial;
  Value *const inputs[] = {x, extents(f, n, starts), extents(f, n, ends), integers(f, n, axes),
                           integers(f, n, w->stride)};
  return build_op(f, OP_Slice, 5, inputs, 1, 0, NULL)->outputs[0];
}

/* [N, ..., C] as [groups, places, C/groups]. */
static Value *by_group(const Formula *f, Value *x, int64_t groups) {
  DimTable *dims = f->graph->dims;
  const Dim *channels = x->shape[x->rank - 1], *group = dim_const(dims, groups);
  const Dim *shape[] = {value_count_dim(f->graph, x, 0, x->rank - 1), group, dim_div_exact(dims, channels, group)};
  return build_transpose(f, in_shape(f, x, 3, shape), (const int64_t[]){1, 0, 2});
}

/* Of one tap: [M, C/groups]. */
static Value *tap_gradient(const Formula *f, Value *d, Value *x, int64_t groups) {
  const Attribute last = attribute_int(ATTR_axis, x->rank - 1);
  const Attribute turn = attribute_int(ATTR_transA, 1);
  const Dim *shape[] = {d->shape[d->rank - 1], NULL};
  if (groups > 1) {
    Value *product = apply2(f, OP_MatMul, matrices_turned(f, by_group(f, d, groups)), by_group(f, x, groups));
    shape[1] = product->shape[2];
    return in_shape(f, product, 2, shape);
  }
  Value *const matrices[] = {build_op(f, OP_Flatten, 1, &d, 1, 1, &last)->outputs[0],
                             build_op(f, OP_Flatten, 1, &x, 1, 1, &last)->outputs[0]};
  return build_op(f, OP_Gemm, 2, matrices, 1, 1, &turn)->outputs[0];
}

static Value *weights_gradient(const Gradient *g, const Window *w) {
  const Formula *f = g->f;
  Value *weights = g->node->inputs[1], *d = channels_last(f, gradient_in(g));
  Value *x = with_pads(f, w, channels_last(f, g->node->inputs[0]));
  int64_t taps = 1, groups = node_int(g->node, ATTR_group);
  for (int i = 0; i < w->n_spatial; i++) taps *= w->kernel[i];
  Value **each = ARENA_ARRAY(f->graph->arena, Value *, taps);
  for (int64_t tap = 0; tap < taps; tap++)
    each[tap] = with_axis(f, tap_gradient(f, d, at_tap(f, w, x, tap), groups), 2);
  return shaped_as(f, build_concat(f, (int)taps, each, 2), weights);
}

const char *of_conv(const Gradient *g) {
  const Formula *f = g->f;
  const Node *node = g->node;
  Window w = window_of(g);
  Value *d = gradient_in(g);
  if (!pads_are_constant(&w)) return "pads that only the run knows";
  if (g->wanted[0]) g->dx[0] = through_windows(g, &w, d, node->inputs[1], node_int(node, ATTR_group), node->inputs[0]);
  if (g->wanted[1]) g->dx[1] = weights_gradient(g, &w);
  if (node->n_inputs > 2 && g->wanted[2]) {
    int64_t axes[MAX_RANK] = {0};
    for (int axis = 2; axis < d->rank; axis++) axes[axis - 1] = axis;
    g->dx[2] = summed_away(f, d, d->rank - 1, axes);
  }
  return NULL;
}

/* ---- pooling ---- */

/* [N, C, ...] as [N C, all others]. */
static Value *as_planes(const Formula *f, Value *x) {
  const Attribute axis = attribute_int(ATTR_axis, 2);
  return build_op(f, OP_Flatten, 1, &x, 1, 1, &axis)->outputs[0];
}

/* Each element of the gradient goes to the place that the pooling found, inside its plane. */
const char *of_max_pool(const Gradient *g) {
  const Formula *f = g->f;
  Graph *graph = f->graph;
  Node *node = g->node;
  Value *x = node->inputs[0];
  if (node_int(node, ATTR_storage_order)) return "a `storage_order` other than 0";
  if (x->dtype != RNNCC_F32) return "elements other than f32";
  Value *plane = extents(f, 1, (const Dim *[]){value_count_dim(graph, x, 2, x->rank)});
  Value *places = apply2(f, OP_Mod, as_planes(f, all_outputs(g, 2)[1]), plane);
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
