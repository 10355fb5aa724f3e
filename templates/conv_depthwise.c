/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution of blocked tensors: y[n, c, oh, ow] = epilogue(bias[c] + residual + sum over r, s of
 * x[n, c, ih, iw] w[c, r, s]), LANES channels at a time.
 *
 * A tile is COLUMNS pixels of one output row; their sums are in registers. Each pixel of an input row is loaded once
 * and multiplied by all its weights, so that multiply-adds are the limit, not loads. Of a wide window the weights are
 * read again for each pixel, as operands of multiply-adds. Edge tiles have code of their own,
 * in which the columns in the padding are constant. Rows in the padding are skipped.
 *
 * Workers divide the rows into bands (bands.h), or the channel blocks. At the border of two bands each plane has rows
 * that both workers read; of small planes these are many.
 */
#include "bands.h"
#include "kernel.h"
#include "simd/math.h"
#include "simd/simd.h"

#include "parts/depthwise_window.h"

/* legal: 0 1 */
enum { BIAS = 1 };
/* 1: adds residual, of y's shape, before the epilogue.
 * legal: 0 1 */
enum { RESIDUAL = 0 };
/* 1: OUT_W is known only at run time, as IN_W may be.
 * legal: 0 1 */
enum { ANY_WIDTH = 0 };

/* 1: workers divide the channel blocks, not the rows.
 * legal: 0 1 */
enum { BY_BLOCKS = 0 };

/* Columns by which loads of inputs run ahead of the multiply-adds; 0: as clang orders them. For aarch64 it would load
 * all of a tile first, and spill. legal: 0..16 */
enum { LOADS_AHEAD = 0 };

/* 1: the weights of a row of the window are more than there are registers for: each is read where it is multiplied.
 * legal: 0 1 */
enum { READS_WEIGHTS = 0 };

#include "parts/row_tiles.h"

/* One output row of one channel block. */
typedef struct Row {
  const float *x; /* the block's plane */
  const float *w; /* [R][S][LANES] of the block */
  const float *residual;
  float *y;
  vec bias;
  int64_t from;       /* input row of the window's first row */
  int64_t begin, end; /* rows of the window that lie in the input */
} Row;

/* hook: maps a pixel's channels; x and the result are one vector of them. */
static inline vec epilogue(vec x) { return x; }

/* in, after the last multiply-add of a column, if there is one. */
SIMD_FUNCTION const float *after_column(const float *in, const vec *sums, int column, int columns) {
  return column >= 0 && column < columns ? vafter(in, sums[column]) : in;
}

/* add_row() without weights in registers. */
SIMD_FUNCTION void add_row_reading(vec sums[COLUMNS], const float *in, const float *w, int64_t first, int columns,
                                   bool inside) {
#pragma clang loop unroll(full)
  for (int j = 0; j < TILE_REACH; j++) {
    if (!inside && (first + j < 0 || first + j >= IN_W)) continue;
    vec v = vload(in + j * LANES);
    const float *weights = vapart(w); /* or clang would keep what it reads, and spill it */
#pragma clang loop unroll(full)
    for (int s = 0; s < WINDOW_W; s++) {
      int ahead = j - s * DILATION_W;
      if (ahead < 0 || ahead % STRIDE_W || ahead / STRIDE_W >= columns) continue;
      sums[ahead / STRIDE_W] = vfma(sums[ahead / STRIDE_W], v, vload(weights + s * LANES));
    }
  }
}

/* One row of the window over `columns` pixels. in: input column `first`, where the first pixel's window begins. */
SIMD_FUNCTION void add_row(vec sums[COLUMNS], const float *in, const float *w, int64_t first, int columns,
                           bool inside) {
  if (READS_WEIGHTS) {
    add_row_reading(sums, in, w, first, columns, inside);
    return;
  }
  vec weight[WINDOW_W];
#pragma clang loop unroll(full)
  for (int s = 0; s < WINDOW_W; s++) weight[s] = vload(w + s * LANES);
#pragma clang loop unroll(full)
  for (int j = 0; j < TILE_REACH; j++) {
    if (!inside && (first + j < 0 || first + j >= IN_W)) continue;
    if (LOADS_AHEAD > 0 && j % STRIDE_W == 0) in = after_column(in, sums, j / STRIDE_W - LOADS_AHEAD, columns);
    vec v = vload(in + j * LANES);
#pragma clang loop unroll(full)
    for (int s = 0; s < WINDOW_W; s++) {
      int ahead = j - s * DILATION_W;
      if (ahead < 0 || ahead % STRIDE_W || ahead / STRIDE_W >= columns) continue;
      sums[ahead / STRIDE_W] = vfma(sums[ahead / STRIDE_W], v, weight[s]);
    }
  }
}

/* `inside`: no window of the tile has padding. */
SIMD_FUNCTION void tile(const Row *row, int64_t column, int columns, bool inside) {
  vec sums[COLUMNS];
  int64_t first = column * STRIDE_W - PAD_LEFT;
#pragma clang loop unroll(full)
  for (int i = 0; i < columns; i++) sums[i] = row->bias;
  for (int64_t r = row->begin; r < row->end; r++) {
    const float *in = row->x + ((row->from + r * DILATION_H) * IN_W + first) * LANES;
    add_row(sums, in, row->w + r * WINDOW_W * LANES, first, columns, inside);
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < columns; i++) {
    if (ANY_WIDTH && !inside && column + i >= OUT_W) continue;
    vec sum = sums[i];
    if (RESIDUAL) sum = vadd(sum, vload(row->residual + (column + i) * LANES));
    vstore(row->y + (column + i) * LANES, epilogue(sum));
  }
}

static void tiles_of_row(const Row *row) {
#pragma clang loop unroll(full)
  for (int64_t t = 0; t < LEFT_TILES; t++) tile(row, t * COLUMNS, COLUMNS, false);
  for (int64_t t = LEFT_TILES; t < INSIDE_END; t++) tile(row, t * COLUMNS, COLUMNS, true);
#pragma clang loop unroll(full)
  for (int64_t t = INSIDE_END; t < TILES; t++) tile(row, t * COLUMNS, COLUMNS, false);
  if (TAIL) tile(row, TILES * COLUMNS, TAIL, false);
}

/* Not inlined: it is rarely needed. Only columns of the row are stored. */
static __attribute__((noinline)) void edge_tile(const Row *row, int64_t column) { tile(row, column, COLUMNS, false); }

static void tiles_of_any_row(const Row *row) {
  for (int64_t t = 0; t < LEFT_TILES; t++) edge_tile(row, t * COLUMNS);
  for (int64_t t = LEFT_TILES; t < INSIDE_END; t++) tile(row, t * COLUMNS, COLUMNS, true);
  for (int64_t t = INSIDE_END; t < TILES; t++) edge_tile(row, t * COLUMNS);
  if (TAIL) edge_tile(row, TILES * COLUMNS);
}

/* One channel block of an image. */
typedef struct Plane {
  const float *x, *w, *residual;
  float *y;
  vec bias;
} Plane;

static void one_row(const Plane *plane, int64_t line) {
  int64_t at = line * OUT_W * LANES, from = line * STRIDE_H - PAD_TOP;
  Row row = {.x = plane->x,
             .w = plane->w,
             .residual = RESIDUAL ? plane->residual + at : NULL,
             .y = plane->y + at,
             .bias = plane->bias,
             .from = from,
             .begin = from < 0 ? ceil_div(-from, DILATION_H) : 0,
             .end = from < IN_H ? min_i64(WINDOW_H, ceil_div(IN_H - from, DILATION_H)) : 0};
  if (ANY_WIDTH)
    tiles_of_any_row(&row);
  else
    tiles_of_row(&row);
}

/* x: [n][blocks][IN_H][IN_W][LANES]; w: [blocks][R][S][LANES]; bias: [channels]; y and residual:
 * [n][blocks][OUT_H][OUT_W][LANES]. */
static void conv_depthwise(const Team *team, const float *x, const float *w, const float *bias, const float *residual,
                           float *y, int64_t n, int64_t channels, int64_t x_image, int64_t residual_image,
                           int64_t y_image) {
  int64_t blocks = ceil_div(channels, LANES);
  Bands bands = bands_of(team, n, OUT_H, blocks);
  for (int64_t image = 0; image < n; image++) {
    for (int64_t block = 0; block < blocks; block++) {
      Plane plane = {.x = x + image * x_image + block * IN_H * IN_W * LANES,
                     .w = w + block * WINDOW_H * WINDOW_W * LANES,
                     .residual = RESIDUAL ? residual + image * residual_image + block * OUT_H * OUT_W * LANES : NULL,
                     .y = y + image * y_image + block * OUT_H * OUT_W * LANES,
                     .bias =
                         BIAS ? vload_n(bias + block * LANES, (int)min_i64(LANES, channels - block * LANES)) : vzero()};
      if (BY_BLOCKS) bands = bands_of_block(team, n, OUT_H, blocks, image, block);
      int64_t end = band_end(&bands, image, block);
      for (int64_t line = band_begin(&bands, image, block); line < end; line++) one_row(&plane, line);
    }
  }
}
