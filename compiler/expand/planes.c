/* SPDX-License-Identifier: MIT */
/* Grids, patches and crops of images. */
#include "expand/expansion.h"
#include "shapes/plane.h"
#include "shapes/shape.h"

/* ---- AffineGrid ---- */

/* Place i of n from -1 to 1, at which the outer pixels have their centers, or their outer edges; a single one is at 0.
 */
static double place_of(int64_t i, int64_t n, bool centers) {
  if (!centers) return (2 * (double)i + 1) / (double)n - 1;
  return n > 1 ? 2 * (double)i / (double)(n - 1) - 1 : 0;
}

/* [pixels, axes + 1]: x, y, (z,) 1 of each. */
static Value *all_places(const Formula *f, const AffineGrid *grid, int64_t pixels) {
  int n = grid->axes;
  float *places = ARENA_ARRAY(f->graph->arena, float, pixels *(n + 1));
  for (int64_t pixel = 0; pixel < pixels; pixel++) {
    int64_t rest = pixel;
    for (int axis = n - 1; axis >= 0; axis--) { /* the last axis is x */
      places[pixel * (n + 1) + n - 1 - axis] =
          (float)place_of(rest % grid->size[axis], grid->size[axis], grid->centers);
      rest /= grid->size[axis];
    }
    places[pixel * (n + 1) + n] = 1;
  }
  return floats(f, 2, (const int64_t[]){pixels, n + 1}, places);
}

void expand_affine_grid(const Formula *f, const Node *node, Value **results) {
  static const int64_t turned[] = {0, 2, 1};
  AffineGrid grid;
  if (!read_affine_grid(f->graph, node, &grid)) bug("%s: the size was known", node->op->name);
  int64_t pixels = 1;
  for (int axis = 0; axis < grid.axes; axis++) pixels *= grid.size[axis];
  Value *columns = build_transpose(f, node->inputs[0], turned);
  Value *places = apply2(f, OP_MatMul, all_places(f, &grid, pixels), columns);
  results[0] = reshaped(f, places, node->outputs[0]->rank, node->outputs[0]->shape);
}

/* ---- Col2Im: a transposed convolution, whose kernel k puts patch element k in its place ---- */

static Value *one_hot_kernels(const Formula *f, const Patches *patches) {
  int64_t size = 1, shape[2 + MAX_SPATIAL] = {0, 1}, channels = patches->channels;
  for (int k = 0; k < patches->n_spatial; k++) size *= shape[2 + k] = patches->kernel[k];
  shape[0] = channels * size;
  float *kernels = ARENA_ARRAY(f->graph->arena, float, channels *size *size);
  for (int64_t i = 0; i < channels * size; i++) kernels[i * size + i % size] = 1;
  return floats(f, 2 + patches->n_spatial, shape, kernels);
}

void expand_col2im(const Formula *f, const Node *node, Value **results) {
  Arena *arena = f->graph->arena;
  DimTable *dims = f->graph->dims;
  Value *x = node->inputs[0];
  Patches p;
  if (!read_patches(f->graph, node, &p)) bug("%s: its patches were known", node->op->name);
  const Dim *shape[2 + MAX_SPATIAL] = {x->shape[0], x->shape[1]};
  for (int k = 0; k < p.n_spatial; k++) shape[2 + k] = dim_const(dims, p.blocks[k]);
  const Attribute attributes[] = {attribute_int(ATTR_group, p.channels),
                                  attribute_ints(arena, ATTR_strides, p.n_spatial, p.stride),
                                  attribute_ints(arena, ATTR_dilations, p.n_spatial, p.dilation),
                                  attribute_ints(arena, ATTR_pads, 2 * p.n_spatial, p.pads),
                                  attribute_ints(arena, ATTR_output_padding, p.n_spatial, p.rest)};
  Value *inputs[] = {reshaped(f, x, 2 + p.n_spatial, shape), one_hot_kernels(f, &p)};
  results[0] = build_op(f, OP_ConvTranspose, 2, inputs, 1, 5, attributes)->outputs[0];
}

/* ---- CenterCropPad ---- */

void expand_center_crop(const Formula *f, const Node *node, Value **results) {
  Value *x = node->inputs[0];
  Range ranges[MAX_RANK];
  int64_t pads[2 * MAX_RANK] = {0};
  int rank = x->rank, n_cropped = 0, n_padded = 0;
  for (int axis = 0; axis < rank; axis++) {
    if (same_dim(x->shape[axis], node->outputs[0]->shape[axis])) continue;
    int64_t more = dim_value(node->outputs[0]->shape[axis]) - dim_value(x->shape[axis]), first = -more / 2;
    if (more < 0)
      ranges[n_cropped++] = (Range){axis, first, first + dim_value(node->outputs[0]->shape[axis])};
    else
      pads[axis] = more / 2, pads[rank + axis] = more - more / 2, n_padded++;
  }
  Value *y = n_cropped ? build_slice(f, x, n_cropped, ranges) : x;
  const Attribute attribute = attribute_ints(f->graph->arena, ATTR_pads, 2 * rank, pads);
  results[0] = n_padded ? build_op(f, OP_Pad, 1, &y, 1, 1, &attribute)->outputs[0] : y;
}
