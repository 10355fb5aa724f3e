/* SPDX-License-Identifier: MIT */
/*
 * Prepares a convolution's input: zero padding, and the columns of each row sorted by their place modulo STRIDE_W, so
 * that conv_plain reads its inputs as whole vectors. Padded column i of phase p is column i * STRIDE_W + p - left of x.
 */
#include "kernel.h"

/* legal: 1..65536 */
enum { STRIDE_W = 1 };

/* One phase of one row: `count` columns, from column `first` of x on, in steps of STRIDE_W. */
static void phase_of_row(const float *x, float *out, int64_t first, int64_t count, int64_t width) {
  int64_t begin = min_i64(first < 0 ? ceil_div(-first, STRIDE_W) : 0, count);
  int64_t end = first < width ? min_i64(ceil_div(width - first, STRIDE_W), count) : begin;
  end = max_i64(begin, end);
  for (int64_t i = 0; i < begin; i++) out[i] = 0;
  for (int64_t i = begin; i < end; i++) out[i] = x[first + i * STRIDE_W];
  for (int64_t i = end; i < count; i++) out[i] = 0;
}

/* x: [volumes, depth, height, width]. out: [volumes, planes, rows, STRIDE_W, columns], where plane p and row r are
 * plane p - front and row r - top of x. */
static void conv_pad(const Team *team, const float *x, float *out, int64_t volumes, int64_t depth, int64_t height,
                     int64_t width, int64_t planes, int64_t rows, int64_t columns, int64_t front, int64_t top,
                     int64_t left) {
  int64_t item, end;
  team_share(team, volumes * planes * rows, &item, &end);
  for (; item < end; item++) {
    int64_t row = item % rows - top, plane = item / rows % planes - front, volume = item / rows / planes;
    bool inside = row >= 0 && row < height && plane >= 0 && plane < depth;
    const float *from = inside ? x + ((volume * depth + plane) * height + row) * width : x;
    for (int64_t phase = 0; phase < STRIDE_W; phase++)
      phase_of_row(from, out + (item * STRIDE_W + phase) * columns, phase - left, columns, inside ? width : 0);
  }
}
