/* SPDX-License-Identifier: MIT */
/*
 * Gradients of convolution and pooling. The input's is a convolution of the result's, or with strides a transposed one.
 * The weights' has a kernel of its own.
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

/* Sets the pads of the convolution that goes back. False: with strides it is none, or a pad is negative. */
static bool find_pads_back(const Window *w, int64_t *pads) {
  if (is_strided(w)) return false;
  for (int i = 0; i < w->n_spatial; i++) {
    int64_t reach = w->dilation[i] * (w->kernel[i] - 1);
    pads[i] = reach - dim_value(w->pad_begin[i]);
    pads[w->n_spatial + i] = reach - dim_value(w->pad_end[i]);
    if (pads[i] < 0 || pads[w->n_spatial + i] < 0) return false;
  }
  return true;
}

/* Without strides it is a convolution of d, by the weights turned around. */
static Value *input_gradient(const Gradient *g, const Window *w, Value *d) {
  const Formula *f = g->f;
  Arena *arena = f->graph->arena;
  int64_t group = node_int(g->node, ATTR_group), pads[2 * MAX_SPATIAL];
  Value *x = g->node->inputs[0], *weights = g->node->inputs[1];
  if (!find_pads_back(w, pads)) return through_windows(g, w, d, weights, group, x);
  const Attribute attributes[] = {attribute_ints(arena, ATTR_dilations, w->n_spatial, w->dilation),
                                  attribute_ints(arena, ATTR_pads, 2 * w->n_spatial, pads),
                                  attribute_int(ATTR_group, group)};
  return build_op(f, OP_Conv, 2, (Value *const[]){d, turned_weights(f, weights, group)}, 1, 3, attributes)->outputs[0];
}

/* ---- the weights' ---- */

static Value *weights_gradient(const Gradient *g, Value *d) {
  Node *node = g->node;
  Value *const inputs[] = {node->inputs[0], node->inputs[1], d};
  return build_op(g->f, OP_ConvWeightGradient, 3, inputs, 1, node->n_attributes, node->attributes)->outputs[0];
}

const char *of_conv(const Gradient *g) {
  const Formula *f = g->f;
  const Node *node = g->node;
  Window w = window_of(g);
  Value *d = gradient_in(g);
  if (!pads_are_constant(&w)) return "pads that only the run knows";
  if (g->wanted[0]) g->dx[0] = input_gradient(g, &w, d);
  if (g->wanted[1]) g->dx[1] = weights_gradient(g, d);
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
