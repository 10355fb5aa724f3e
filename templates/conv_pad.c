/* SPDX-License-Identifier: MIT */
/*
 * Prepares a convolution's input: zero padding, and rows and columns sorted by phase, their position modulo STRIDE_H
 * and STRIDE_W, so that conv_plain reads whole vectors. Row i and column j of phase (p, q) are row i * STRIDE_H + p -
 * top and column j * STRIDE_W + q - left of x. Phases from PHASES_H and PHASES_W on are read by no window, and left
 * out.
 */
#include "kernel.h"
#include "simd/simd.h"
#include "windows.h"

/* legal: 1..65536 */
enum { STRIDE_H = 1 };
/* legal: 1..65536 */
enum { STRIDE_W = 1 };
/* legal: 1..65536 */
enum { PHASES_H = 1 };
/* legal: 1..65536 */
enum { PHASES_W = 1 };

/* Columns 2 i of x for i from `begin` on, as far as pairs of whole vectors may be read; returns where that ends. */
static int64_t copy_even(const float *x, float *out, int64_t begin, int64_t end, int64_t readable) {
  int64_t i = begin;
  for (; i + LANES <= end && 2 * (i + LANES) <= readable; i += LANES) vstore(out + i, vload_even(x + 2 * i));
  return i;
}

/* One phase of one row: `count` columns, from column `first` of x on, in steps of STRIDE_W. */
static void phase_of_row(const float *x, float *out, int64_t first, int64_t count, int64_t width) {
  int64_t begin = points_before(first, count, STRIDE_W, 0), end = points_before(first, count, STRIDE_W, width);
  for (int64_t i = 0; i < begin; i++) out[i] = 0;
  int64_t i = STRIDE_W == 2 ? copy_even(x + first, out, begin, end, width - first) : begin;
  for (; i < end; i++) out[i] = x[first + i * STRIDE_W];
  for (i = end; i < count; i++) out[i] = 0;
}

/* x: [volumes, depth, height, width]. out: [volumes, planes, PHASES_H, PHASES_W, rows, columns], where plane p is plane
 * p - front of x. */
static void conv_pad(const Team *team, const float *x, float *out, int64_t volumes, int64_t depth, int64_t height,
                     int64_t width, int64_t planes, int64_t rows, int64_t columns, int64_t front, int64_t top,
                     int64_t left) {
  int64_t item, end;
  team_share(team, volumes * planes * PHASES_H * rows, &item, &end);
  for (; item < end; item++) {
    int64_t i = item % rows, phase_h = item / rows % PHASES_H, volume = item / rows / PHASES_H / planes;
    int64_t plane = item / rows / PHASES_H % planes - front, row = i * STRIDE_H + phase_h - top;
    bool inside = row >= 0 && row < height && plane >= 0 && plane < depth;
    const float *from = inside ? x + ((volume * depth + plane) * height + row) * width : x;
    float *to = out + (item / rows * PHASES_W * rows + i) * columns;
    for (int64_t phase = 0; phase < PHASES_W; phase++)
      phase_of_row(from, to + phase * rows * columns, phase - left, columns, inside ? width : 0);
  }
}
