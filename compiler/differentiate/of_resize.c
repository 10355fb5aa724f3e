/* SPDX-License-Identifier: MIT */
/*
 * The gradient of Resize. Along each axis the result is a product of the input with a matrix of weights, in which only
 * a few places of a row are not 0; so the input's gradient is one with that matrix turned over, axis after axis.
 */
#include "differentiate/rule.h"
#include "ir/op.h"
#include "reference/resize_taps.h"

/* Elements of an axis's matrix, which is a constant of the module. */
enum { MOST_WEIGHTS = 1 << 22 };

/* [in, out]: how much of each place of the input is in each of the result; nothing in those that lie outside. */
static Value *weights_of(const Gradient *g, const ResizeAxis *axis) {
  Arena *arena = g->f->graph->arena;
  ResizeTaps taps = resize_taps(arena, g->node, axis);
  int64_t shape[] = {axis->in, axis->out};
  float *weights = ARENA_ARRAY(arena, float, axis->in * axis->out);
  for (int64_t o = 0; o < axis->out; o++)
    for (int k = 0; taps.start[o] >= 0 && k < taps.n; k++)
      weights[(taps.start[o] + k) * axis->out + o] = taps.weight[o * taps.n + k];
  return floats(g->f, 2, shape, weights);
}

/* d with `axis` as long as the input's. */
static Value *along(const Gradient *g, Value *d, int axis, const ResizeAxis *resized) {
  const Formula *f = g->f;
  Graph *graph = f->graph;
  const Dim *in = dim_const(graph->dims, resized->in), *shape[MAX_RANK];
  const Dim *rows[] = {value_count_dim(graph, d, 0, axis), d->shape[axis],
                       value_count_dim(graph, d, axis + 1, d->rank)};
  for (int k = 0; k < d->rank; k++) shape[k] = k == axis ? in : d->shape[k];
  Value *weights = weights_of(g, resized);
  Value *product = axis == d->rank - 1 ? matrix_product(f, in_shape(f, d, 2, rows), false, weights, true, 1)
                                       : apply2(f, OP_MatMul, weights, in_shape(f, d, 3, rows));
  return in_shape(f, product, d->rank, shape);
}

const char *of_resize(const Gradient *g) {
  Resize resize;
  if (!read_resize(g->f->graph, g->node, &resize)) bug("the Resize was good before");
  Value *d = gradient_in(g);
  for (int axis = 0; axis < resize.rank; axis++) {
    const ResizeAxis *resized = &resize.axis[axis];
    if (!resize.resized[axis]) continue;
    if (resize.at_run_time[axis]) return "extents that only the run knows";
    if (resized->in > MOST_WEIGHTS / resized->out) return "an axis whose extents' product is above 2^22";
    d = along(g, d, axis, resized);
  }
  g->dx[0] = d;
  return NULL;
}
