/* SPDX-License-Identifier: MIT */
/* Ops that read an image at positions given at run time: GridSample, RoiAlign. */
#include "shapes/shape.h"

/* X [N, C, ...], grid [N, points along each axis ..., spatial axes]. */
bool shape_grid_sample(Graph *graph, Node *node) {
  const Value *x = node->inputs[0], *grid = node->inputs[1];
  const Dim *shape[MAX_RANK];
  if (!check_rank(graph, node, 0, 4, 5) || !check_rank(graph, node, 1, x->rank, x->rank)) return false;
  int last = grid->rank - 1;
  if (!same_dim(grid->shape[0], x->shape[0]) || !same_dim(grid->shape[last], dim_const(graph->dims, x->rank - 2)))
    return shape_error(node, "the grid is %s; it must have the images of %s, and %d coordinates a point",
                       shape_text(graph, grid), shape_text(graph, x), x->rank - 2);
  if (dim_upper(value_count_dim(graph, x, 2, x->rank)) > INT32_MAX)
    return shape_unsupported(node, "%s has more than %d elements a channel", shape_text(graph, x), INT32_MAX);
  for (int axis = 0; axis < 2; axis++) shape[axis] = x->shape[axis];
  for (int axis = 2; axis < x->rank; axis++) shape[axis] = grid->shape[axis - 1];
  return set_shape(graph, node, 0, x->rank, shape);
}

/* X [N, C, H, W], regions [R, 4], the image of each [R]. */
bool shape_roi_align(Graph *graph, Node *node) {
  if (!check_rank(graph, node, 0, 4, 4) || !check_rank(graph, node, 1, 2, 2)) return false;
  const Value *x = node->inputs[0], *regions = node->inputs[1];
  int64_t height = node_int(node, ATTR_output_height), width = node_int(node, ATTR_output_width);
  int64_t samples = node_int(node, ATTR_sampling_ratio);
  const Dim *region[] = {regions->shape[0], dim_const(graph->dims, 4)};
  if (!check_shape(graph, node, 1, 2, region, "the regions, [regions, 4]")) return false;
  if (!check_shape(graph, node, 2, 1, region, "the regions' images, [regions]")) return false;
  if (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX)
    return shape_error(node, "an output of %lld x %lld; both must be at least 1", (long long)height, (long long)width);
  if (samples < 0 || samples > 65536)
    return shape_error(node, "`sampling_ratio` is %lld; it must be in 0..65536", (long long)samples);
  const Dim *shape[] = {regions->shape[0], x->shape[1], dim_const(graph->dims, height), dim_const(graph->dims, width)};
  return set_shape(graph, node, 0, 4, shape);
}
