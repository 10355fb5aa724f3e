/* SPDX-License-Identifier: MIT */
#include "kernels/move/pixel_blocks.h"

/* Axes: n, k, h, u, w, v. */
StridedBox pixel_box(Graph *graph, const PixelBlocks *blocks, bool from_deep) {
  DimTable *dims = graph->dims;
  const Value *deep = blocks->deep, *wide = blocks->wide;
  const Dim *d[MAX_RANK], *w[MAX_RANK], *one = dim_const(dims, 1);
  const Dim *u = dim_const(dims, blocks->rows), *v = dim_const(dims, blocks->columns);
  dense_strides(graph, deep, d);
  dense_strides(graph, wide, w);
  int x = deep->rank - 1;
  bool plane = x == 3;
  const Dim *height = plane ? deep->shape[2] : one, *deep_row = plane ? d[2] : one, *wide_row = plane ? w[2] : one;
  const Dim *channel = dim_mul(dims, d[1], blocks->pixel_first ? one : dim_mul(dims, u, v));
  const Dim *pixel = dim_mul(dims, d[1], blocks->pixel_first ? wide->shape[1] : one);
  const Dim *extent[] = {wide->shape[0], wide->shape[1], height, u, deep->shape[x], v};
  const Dim *deep_stride[] = {d[0], channel, deep_row, dim_mul(dims, pixel, v), d[x], pixel};
  const Dim *wide_stride[] = {w[0], w[1], dim_mul(dims, wide_row, u), wide_row, dim_mul(dims, w[x], v), w[x]};
  return strided_box(graph, 6, extent, from_deep ? deep_stride : wide_stride, from_deep ? wide_stride : deep_stride);
}
