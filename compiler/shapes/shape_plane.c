/* SPDX-License-Identifier: MIT */
/* Grids, patches and crops of images, whose sizes are known at compile time. */
#include "shapes/plane.h"

/* ---- AffineGrid ---- */

/* The extents of the image; the number of images, and that of their channels, may be known only at run time. */
bool read_affine_grid(Graph *graph, const Node *node, AffineGrid *grid) {
  DimList size;
  if (!operand_dims(graph, node, ATTR_NONE, 1, &size)) return false;
  if (size.n != 4 && size.n != 5)
    return shape_error(node, "the size (input 1) has %d numbers; expected [N, C, H, W] or [N, C, D, H, W]", size.n);
  *grid = (AffineGrid){.axes = size.n - 2, .centers = node_int(node, ATTR_align_corners) != 0};
  for (int axis = 0; axis < grid->axes; axis++) {
    const Dim *extent = size.items[2 + axis];
    if (!dim_is_const(extent))
      return shape_unsupported(node, "entry %d of input 1 is %s; it must be a constant", 2 + axis,
                               dim_text(graph, extent));
    grid->size[axis] = dim_value(extent);
    if (grid->size[axis] < 1 || grid->size[axis] > INT32_MAX)
      return shape_error(node, "an extent of the size (input 1) is %lld; it must be at least 1",
                         (long long)grid->size[axis]);
  }
  const Dim *wanted[] = {size.items[0], dim_const(graph->dims, grid->axes), dim_const(graph->dims, grid->axes + 1)};
  return check_shape(graph, node, 0, 3, wanted, "a matrix for each sample of the size");
}

bool shape_affine_grid(Graph *graph, Node *node) {
  AffineGrid grid;
  if (!read_affine_grid(graph, node, &grid)) return false;
  const Dim *shape[2 + MAX_SPATIAL] = {node->inputs[0]->shape[0]};
  for (int axis = 0; axis < grid.axes; axis++) shape[1 + axis] = dim_const(graph->dims, grid.size[axis]);
  shape[1 + grid.axes] = dim_const(graph->dims, grid.axes);
  return set_shape(graph, node, 0, 2 + grid.axes, shape);
}

/* ---- Col2Im ---- */

/* A list of `n` integers, each at least `least` and no extent's limit; `otherwise` where it is not given. */
static bool read_list(Graph *graph, const Node *node, AttributeName name, int n, int64_t least, int64_t otherwise,
                      int64_t *numbers) {
  IntList list;
  if (!operand_ints(graph, node, name, -1, &list)) return false;
  if (list.given && list.n != n)
    return shape_error(node, "`%s` has %d numbers; expected %d", attribute_name(name), list.n, n);
  for (int i = 0; i < n; i++) {
    numbers[i] = list.given ? list.items[i] : otherwise;
    if (numbers[i] < least || numbers[i] > INT32_MAX)
      return shape_error(node, "`%s` has a number %lld; expected at least %lld", attribute_name(name),
                         (long long)numbers[i], (long long)least);
  }
  return true;
}

static bool read_extents(Graph *graph, const Node *node, int input, int64_t *extents, int *n) {
  IntList list;
  if (!operand_ints(graph, node, ATTR_NONE, input, &list)) return false;
  if (list.n < 2 || list.n > MAX_SPATIAL)
    return shape_unsupported(node, "input %d has %d extents; 2 or %d are supported", input, list.n, MAX_SPATIAL);
  if (*n && list.n != *n) return shape_error(node, "input %d has %d extents; expected %d", input, list.n, *n);
  *n = list.n;
  for (int i = 0; i < list.n; i++) {
    extents[i] = list.items[i];
    if (extents[i] < 1 || extents[i] > INT32_MAX)
      return shape_error(node, "an extent of input %d is %lld; it must be at least 1", input, (long long)extents[i]);
  }
  return true;
}

/* How many blocks an axis has. */
static bool count_blocks(const Node *node, Patches *p, int k) {
  int64_t reach = (p->kernel[k] - 1) * p->dilation[k] + 1;
  int64_t room = p->image[k] + p->pads[k] + p->pads[p->n_spatial + k] - reach;
  if (room < 0)
    return shape_error(node, "a block takes %lld pixels of axis %d; the padded image has %lld", (long long)reach, k,
                       (long long)(room + reach));
  p->blocks[k] = room / p->stride[k] + 1;
  p->rest[k] = room % p->stride[k];
  return true;
}

bool read_patches(Graph *graph, const Node *node, Patches *p) {
  *p = (Patches){0};
  if (!check_rank(graph, node, 0, 3, 3)) return false;
  if (!read_extents(graph, node, 1, p->image, &p->n_spatial)) return false;
  if (!read_extents(graph, node, 2, p->kernel, &p->n_spatial)) return false;
  if (!read_list(graph, node, ATTR_strides, p->n_spatial, 1, 1, p->stride)) return false;
  if (!read_list(graph, node, ATTR_dilations, p->n_spatial, 1, 1, p->dilation)) return false;
  if (!read_list(graph, node, ATTR_pads, 2 * p->n_spatial, 0, 0, p->pads)) return false;
  int64_t size = 1, blocks = 1;
  for (int k = 0; k < p->n_spatial; k++) {
    if (!count_blocks(node, p, k)) return false;
    if (__builtin_mul_overflow(size, p->kernel[k], &size) || __builtin_mul_overflow(blocks, p->blocks[k], &blocks))
      return shape_error(node, "the blocks have more elements than memory can hold");
  }
  const Value *x = node->inputs[0];
  if (!dim_is_const(x->shape[1]) || dim_value(x->shape[1]) % size || !dim_value(x->shape[1]))
    return shape_error(node, "axis 1 of %s must be a multiple of a block's %lld elements", shape_text(graph, x),
                       (long long)size);
  p->channels = dim_value(x->shape[1]) / size;
  const Dim *wanted[] = {x->shape[0], x->shape[1], dim_const(graph->dims, blocks)};
  return check_shape(graph, node, 0, 3, wanted, "as many blocks as the image has");
}

bool shape_col2im(Graph *graph, Node *node) {
  Patches patches;
  if (!read_patches(graph, node, &patches)) return false;
  const Dim *shape[2 + MAX_SPATIAL] = {node->inputs[0]->shape[0], dim_const(graph->dims, patches.channels)};
  for (int k = 0; k < patches.n_spatial; k++) shape[2 + k] = dim_const(graph->dims, patches.image[k]);
  return set_shape(graph, node, 0, 2 + patches.n_spatial, shape);
}

/* ---- CenterCropPad ---- */

bool shape_center_crop(Graph *graph, Node *node) {
  const Value *x = node->inputs[0];
  IntList wanted, axes;
  bool marked[MAX_RANK];
  const Dim *shape[MAX_RANK];
  if (!operand_ints(graph, node, ATTR_NONE, 1, &wanted) || !operand_ints(graph, node, ATTR_axes, -1, &axes))
    return false;
  int n = axes.given ? axes.n : x->rank;
  if (axes.given && !operand_axes(node, &axes, x->rank, marked)) return false;
  if (wanted.n != n) return shape_error(node, "the shape (input 1) has %d extents; expected %d", wanted.n, n);
  for (int axis = 0; axis < x->rank; axis++) shape[axis] = x->shape[axis];
  for (int i = 0; i < n; i++) {
    int axis = axes.given ? (int)(axes.items[i] < 0 ? axes.items[i] + x->rank : axes.items[i]) : i;
    if (wanted.items[i] < 0)
      return shape_error(node, "an extent is %lld; it must be at least 0", (long long)wanted.items[i]);
    if (!dim_is_const(x->shape[axis]))
      return shape_unsupported(node, "axis %d of %s must be known at compile time", axis, shape_text(graph, x));
    shape[axis] = dim_const(graph->dims, wanted.items[i]);
  }
  return set_shape(graph, node, 0, x->rank, shape);
}
