/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution of quantised tensors, bytes blocked by channels: y[n, c, oh, ow] = saturate(round(scale[c] *
 * (bias[c] + sum over r, s of (x[n, c, ih, iw] - zero) w[c, r, s])) + y_zero), LANES channels at a time.
 *
 * The numbers are whole, and their sums less than 2^24, so that f32 holds them: a multiply-add of floats has no second
 * instruction, as one of integers would. Tiles are those of conv_depthwise.c. What is in the padding is skipped.
 */
#include "bands.h"
#include "kernel.h"
#include "requantise.h"
#include "simd/int8.h"
#include "simd/simd.h"

#include "parts/depthwise_window.h"

/* x is of i8, else of u8.
 * legal: 0 1 */
enum { SIGNED_X = 0 };
/* y and the residual are of i8, else of u8.
 * legal: 0 1 */
enum { SIGNED_Y = 0 };
/* 1: y is bounded before it is rounded: what it rounds to may exceed i32.
 * legal: 0 1 */
enum { BOUNDS = 0 };
/* What becomes of y: nothing; or it is taken to another scale, by factors or divided (requantise.h).
 * legal: 0..2 */
enum { STEP = 0 };
/* 1: STEP adds residual, of y's shape.
 * legal: 0 1 */
enum { RESIDUAL = 0 };
/* 1: x's zero point is 0.
 * legal: 0 1 */
enum { SKIPS = 0 };
/* 1: OUT_W is known only at run time, as IN_W may be.
 * legal: 0 1 */
enum { ANY_WIDTH = 0 };

#include "parts/row_tiles.h"

/* One output row of one channel block. */
typedef struct Row {
  const uint8_t *x; /* the block's plane */
  const float *w;   /* [R][S][LANES] of the block */
  const uint8_t *residual;
  uint8_t *y;
  vec bias, scale;
  float x_zero;
  Finish finish;
  int64_t from;       /* input row of the window's first row */
  int64_t begin, end; /* rows of the window that lie in the input */
} Row;

SIMD_FUNCTION vec load_x(const uint8_t *p, vec zero) {
  vec x = vint_to_float(SIGNED_X ? vint_load_s8(p) : vint_load_u8(p));
  return SKIPS ? x : vsub(x, zero);
}

/* One row of the window over `columns` pixels. in: input column `first`, where the first pixel's window begins. */
SIMD_FUNCTION void add_row(vec sums[COLUMNS], const uint8_t *in, const float *w, vec zero, int64_t first, int columns,
                           bool inside) {
  vec weight[WINDOW_W];
#pragma clang loop unroll(full)
  for (int s = 0; s < WINDOW_W; s++) weight[s] = vload(w + s * LANES);
#pragma clang loop unroll(full)
  for (int j = 0; j < TILE_REACH; j++) {
    if (!inside && (first + j < 0 || first + j >= IN_W)) continue;
    vec v = load_x(in + j * LANES, zero);
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
  vec sums[COLUMNS], zero = vset(row->x_zero);
  const Finish f = row->finish; /* bytes that are stored may be anything in memory */
  const vec scale = row->scale;
  int64_t first = column * STRIDE_W - PAD_LEFT;
#pragma clang loop unroll(full)
  for (int i = 0; i < columns; i++) sums[i] = row->bias;
  for (int64_t r = row->begin; r < row->end; r++) {
    const uint8_t *in = row->x + ((row->from + r * DILATION_H) * IN_W + first) * LANES;
    add_row(sums, in, row->w + r * WINDOW_W * LANES, zero, first, columns, inside);
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < columns; i++) sums[i] = vmul(sums[i], scale);
#pragma clang loop unroll(full)
  for (int i = 0; i < columns; i++) {
    const bool by_four = !(ANY_WIDTH && !inside) && i / 4 * 4 + 4 <= columns;
    int64_t at = (column + i) * LANES;
    if ((by_four && i % 4) || (ANY_WIDTH && !inside && column + i >= OUT_W)) continue;
    requantise(&sums[i], by_four ? 4 : 1, RESIDUAL ? row->residual + at : NULL, row->y + at, STEP, BOUNDS, SIGNED_Y,
               &f);
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
  const uint8_t *x, *residual;
  const float *w;
  uint8_t *y;
  vec bias, scale;
  float x_zero;
  Finish finish;
} Plane;

static void one_row(const Plane *plane, int64_t line) {
  int64_t at = line * OUT_W * LANES, from = line * STRIDE_H - PAD_TOP;
  Row row = {.x = plane->x,
             .w = plane->w,
             .residual = RESIDUAL ? plane->residual + at : NULL,
             .y = plane->y + at,
             .bias = plane->bias,
             .scale = plane->scale,
             .x_zero = plane->x_zero,
             .finish = plane->finish,
             .from = from,
             .begin = from < 0 ? ceil_div(-from, DILATION_H) : 0,
             .end = from < IN_H ? min_i64(WINDOW_H, ceil_div(IN_H - from, DILATION_H)) : 0};
  if (ANY_WIDTH)
    tiles_of_any_row(&row);
  else
    tiles_of_row(&row);
}

/* x: [n][blocks][IN_H][IN_W][LANES]; w: [blocks][R][S][LANES]; start, the bias, and scale: whole blocks; y and
 * residual: [n][blocks][OUT_H][OUT_W][LANES]. finish: the fields of Finish, in order. */
static void conv_depthwise_int8(const Team *team, const uint8_t *x, const float *w, const float *start,
                                const float *scale, const uint8_t *residual, uint8_t *y, const float *finish, int64_t n,
                                int64_t channels, int64_t x_image, int64_t residual_image, int64_t y_image,
                                int64_t x_zero) {
  int64_t blocks = ceil_div(channels, LANES);
  Bands bands = bands_of(team, n, OUT_H, blocks);
  for (int64_t image = 0; image < n; image++) {
    for (int64_t block = 0; block < blocks; block++) {
      Plane plane = {.x = x + image * x_image + block * IN_H * IN_W * LANES,
                     .w = w + block * WINDOW_H * WINDOW_W * LANES,
                     .residual = RESIDUAL ? residual + image * residual_image + block * OUT_H * OUT_W * LANES : NULL,
                     .y = y + image * y_image + block * OUT_H * OUT_W * LANES,
                     .bias = vload(start + block * LANES),
                     .scale = vload(scale + block * LANES),
                     .x_zero = (float)x_zero,
                     .finish = finish_of(finish)};
      int64_t end = band_end(&bands, image, block);
      for (int64_t line = band_begin(&bands, image, block); line < end; line++) one_row(&plane, line);
    }
  }
}
