/* SPDX-License-Identifier: MIT */
/*
 * Resize of a blocked tensor, NCHW[x]c: the output pixel (oh, ow) of a block of channels is the sum of TAPS_H by TAPS_W
 * neighbouring input pixels with weights row_weight[oh] and column_weight[ow]. One tap a pixel is a copy.
 */
#include "kernel.h"
#include "simd/simd.h"

/* legal: 1..64 */
enum { TAPS_H = 2 };
/* legal: 1..64 */
enum { TAPS_W = 2 };
/* 1: the input may have fewer rows or columns than taps; those beyond the last have the weight 0.
 * legal: 0 1 */
enum { FEW = 0 };

/* last: of the input. */
static inline int64_t tap(int64_t k, int64_t last) { return FEW && k > last ? last : k; }

/* start: [out]; weight: [TAPS][out]. */
typedef struct Axis {
  const int32_t *start;
  const float *weight;
  int64_t in, out;
} Axis;

/* The taps of one row, from input column `x` on. */
SIMD_FUNCTION vec along_row(const float *x, const float *weight, int64_t in, int64_t n) {
  if (TAPS_W == 1) return vload(x);
  vec sum = vmul(vload(x), vbroadcast_load(weight));
#pragma clang loop unroll_count(4)
  for (int64_t s = 1; s < TAPS_W; s++)
    sum = vfma(sum, vload(x + tap(s, in - 1) * LANES), vbroadcast_load(weight + s * n));
  return sum;
}

/* x: the row of the first tap. */
static void resize_row(const Axis *h, const Axis *w, const float *x, float *y, int64_t oh) {
  for (int64_t ow = 0; ow < w->out; ow++) {
    const float *from = x + w->start[ow] * LANES, *weight = w->weight + ow;
    vec sum = along_row(from, weight, w->in, w->out);
    if (TAPS_H > 1) sum = vmul(sum, vbroadcast_load(h->weight + oh));
    for (int64_t r = 1; r < TAPS_H; r++) {
      const float *row = from + tap(r, h->in - 1) * w->in * LANES;
      sum = vfma(sum, along_row(row, weight, w->in, w->out), vbroadcast_load(h->weight + r * h->out + oh));
    }
    vstore(y + ow * LANES, sum);
  }
}

/* x_image and y_image: floats from one image to the next. */
static void resize_blocked(const Team *team, const float *x, float *y, const int32_t *row_start,
                           const float *row_weight, const int32_t *column_start, const float *column_weight, int64_t n,
                           int64_t blocks, int64_t x_image, int64_t y_image, int64_t in_h, int64_t in_w, int64_t out_h,
                           int64_t out_w) {
  Axis h = {row_start, row_weight, in_h, out_h}, w = {column_start, column_weight, in_w, out_w};
  int64_t item, end;
  team_share(team, n * blocks * out_h, &item, &end);
  for (; item < end; item++) {
    int64_t oh = item % out_h, block = item / out_h % blocks, image = item / out_h / blocks;
    const float *from = x + image * x_image + (block * in_h + h.start[oh]) * in_w * LANES;
    resize_row(&h, &w, from, y + image * y_image + (block * out_h + oh) * out_w * LANES, oh);
  }
}
