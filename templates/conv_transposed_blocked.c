/* SPDX-License-Identifier: MIT */
/*
 * Transposed convolution of blocked tensors: y[n, k, oh, ow] = epilogue(bias[k] + sum over c, r, s of
 * x[n, c, ih, iw] w[c, k, r, s], where ih STRIDE_H + r DILATION_H = oh + PAD_TOP, and likewise for columns).
 *
 * The columns of an output row are computed by phase, their position modulo STRIDE_W: columns of one phase use the same
 * points of the window and consecutive input columns, as in a convolution of stride 1. So nothing is multiplied by
 * inserted zeros, and every output is written once. Each row has a phase too.
 *
 * A tile is K_VECTORS vectors of output channels by COLUMNS pixels of one phase, with sums in registers. Edge tiles
 * have code of their own, which skips points outside the input.
 */
#include "kernel.h"
#include "simd/math.h"
#include "simd/simd.h"

/* legal: 1..268435456 */
enum { IN_H = 5 };
/* legal: 1..268435456 */
enum { IN_W = 5 };
/* legal: 1..268435456 */
enum { OUT_H = 10 };
/* legal: 1..268435456 */
enum { OUT_W = 10 };
/* R.
 * legal: 1..65536 */
enum { WINDOW_H = 4 };
/* S.
 * legal: 1..16 */
enum { WINDOW_W = 4 };
/* legal: 1..65536 */
enum { STRIDE_H = 2 };
/* legal: 1..4 */
enum { STRIDE_W = 2 };
/* legal: 1..65536 */
enum { DILATION_H = 1 };
/* legal: 1..65536 */
enum { DILATION_W = 1 };
/* Rows cropped before the output.
 * legal: 0..1048576 */
enum { PAD_TOP = 1 };
/* Columns cropped before the output.
 * legal: 0..1048576 */
enum { PAD_LEFT = 1 };
/* Vectors of output channels in a tile.
 * legal: 1..4 */
enum { K_VECTORS = 2 };
/* Pixels of a tile; with K_VECTORS sums each they should fit in registers.
 * legal: 1..28 */
enum { COLUMNS = 5 };
/* legal: 0 1 */
enum { BIAS = 1 };
/* 1: OUT_W is known only at run time, as IN_W may be.
 * legal: 0 1 */
enum { ANY_WIDTH = 0 };

/* A group is `channels` inputs and `vectors` vectors of outputs, which `blocks` tiles cover. */
typedef struct Transposed {
  const float *x, *w, *bias;
  float *y;
  int64_t groups, channels, kernels, vectors, blocks;
  int64_t x_image, y_image;
} Transposed;

/* One output row of one block of output channels. */
typedef struct Row {
  const float *x; /* the image */
  const float *w; /* [R][C][S][K_VECTORS][LANES] of the block */
  float *y;       /* the row in the first vector's plane */
  vec bias[K_VECTORS];
  int64_t channel, channels; /* the group's first, and how many */
  int64_t from;              /* oh + PAD_TOP */
  int64_t vectors;           /* to be written */
} Row;

/* hook: maps a pixel's channels; x and the result are one vector of them. */
static inline vec epilogue(vec x) { return x; }

/* Outputs of a phase; of these, first_inside..end_inside-1 have all their points in the input, and maybe others. */
SIMD_FUNCTION int64_t phase_pixels(int phase) { return (OUT_W - phase + STRIDE_W - 1) / STRIDE_W; }
SIMD_FUNCTION int64_t first_inside(int phase) {
  int64_t behind = (WINDOW_W - 1) * DILATION_W - phase - PAD_LEFT;
  return behind > 0 ? (behind + STRIDE_W - 1) / STRIDE_W : 0;
}
SIMD_FUNCTION int64_t end_inside(int phase) { return IN_W - (phase + PAD_LEFT) / STRIDE_W; }

/* Adds one input channel. x: the channel in input column `pixel`; w: its weights. */
SIMD_FUNCTION void add_channel(vec sums[K_VECTORS][COLUMNS], const float *x, const float *w, int phase, int64_t pixel,
                               int columns, bool inside) {
#pragma clang loop unroll(full)
  for (int s = 0; s < WINDOW_W; s++) {
    int ahead = phase + PAD_LEFT - s * DILATION_W; /* STRIDE_W times as many columns as the input is ahead */
    if (ahead % STRIDE_W) continue;
    vec weight[K_VECTORS];
#pragma clang loop unroll(full)
    for (int v = 0; v < K_VECTORS; v++) weight[v] = vload(w + (s * K_VECTORS + v) * LANES);
#pragma clang loop unroll(full)
    for (int i = 0; i < columns; i++) {
      int64_t column = pixel + i + ahead / STRIDE_W;
      if (!inside && (column < 0 || column >= IN_W)) continue;
      vec in = vbroadcast_load(x + (i + ahead / STRIDE_W) * LANES);
#pragma clang loop unroll(full)
      for (int v = 0; v < K_VECTORS; v++) sums[v][i] = vfma(sums[v][i], in, weight[v]);
    }
  }
}

/* All channels of input row `line`, by row r of the window. */
SIMD_FUNCTION void add_row(const Row *row, vec sums[K_VECTORS][COLUMNS], int64_t line, int64_t r, int phase,
                           int64_t pixel, int columns, bool inside) {
  const float *w = row->w + r * row->channels * WINDOW_W * K_VECTORS * LANES;
  int64_t c = row->channel, end = c + row->channels;
  while (c < end) {
    const float *x = row->x + ((c / LANES * IN_H + line) * IN_W + pixel) * LANES;
    int64_t stop = min_i64(end, (c / LANES + 1) * LANES);
    for (; c < stop; c++, w += WINDOW_W * K_VECTORS * LANES)
      add_channel(sums, x + c % LANES, w, phase, pixel, columns, inside);
  }
}

/* The first `pixels` of a tile, or all. */
SIMD_FUNCTION void store_some(float *y, const vec sums[COLUMNS], int64_t pixels) {
#pragma clang loop unroll(full)
  for (int i = 0; i < COLUMNS; i++)
    if (i < pixels) vstore(y + i * STRIDE_W * LANES, epilogue(sums[i]));
}

/* Pixels pixel..pixel+columns-1 of a phase. `inside`: no point falls outside the input. */
SIMD_FUNCTION void tile(const Row *row, int phase, int64_t pixel, int columns, bool inside) {
  vec sums[K_VECTORS][COLUMNS];
#pragma clang loop unroll(full)
  for (int v = 0; v < K_VECTORS; v++) {
#pragma clang loop unroll(full)
    for (int i = 0; i < columns; i++) sums[v][i] = row->bias[v];
  }
  for (int64_t r = 0; r < WINDOW_H; r++) {
    int64_t scaled = row->from - r * DILATION_H;
    if (scaled < 0 || scaled % STRIDE_H || scaled / STRIDE_H >= IN_H) continue;
    add_row(row, sums, scaled / STRIDE_H, r, phase, pixel, columns, inside);
  }
#pragma clang loop unroll(full)
  for (int v = 0; v < K_VECTORS; v++) {
    if (v >= row->vectors) break;
    float *y = row->y + ((int64_t)v * OUT_H * OUT_W + phase + pixel * STRIDE_W) * LANES;
    if (ANY_WIDTH && !inside) {
      store_some(y, sums[v], phase_pixels(phase) - pixel);
      continue;
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < columns; i++) vstore(y + i * STRIDE_W * LANES, epilogue(sums[v][i]));
  }
}

/* Tiles left..right-1 are inside; others have code for any edge. */
SIMD_FUNCTION void tiles_of_any_phase(const Row *row, int phase, int64_t left, int64_t right) {
  for (int64_t t = 0; t * COLUMNS < phase_pixels(phase); t++) {
    if (left <= t && t < right)
      tile(row, phase, t * COLUMNS, COLUMNS, true);
    else
      tile(row, phase, t * COLUMNS, COLUMNS, false);
  }
}

/* `phase` is a constant once inlined. */
SIMD_FUNCTION void tiles_of_phase(const Row *row, int phase) {
  int64_t tiles = phase_pixels(phase) / COLUMNS, tail = phase_pixels(phase) % COLUMNS;
  int64_t left = (first_inside(phase) + COLUMNS - 1) / COLUMNS, room = end_inside(phase);
  int64_t right = room > 0 ? room / COLUMNS : 0; /* the first tile that may reach past the input */
  if (left > tiles) left = tiles;
  if (right > tiles) right = tiles;
  if (right < left) right = left;
  if (ANY_WIDTH) {
    tiles_of_any_phase(row, phase, left, right);
    return;
  }
#pragma clang loop unroll(full)
  for (int64_t t = 0; t < left; t++) tile(row, phase, t * COLUMNS, COLUMNS, false);
  for (int64_t t = left; t < right; t++) tile(row, phase, t * COLUMNS, COLUMNS, true);
#pragma clang loop unroll(full)
  for (int64_t t = right; t < tiles; t++) tile(row, phase, t * COLUMNS, COLUMNS, false);
  if (tail) tile(row, phase, tiles * COLUMNS, (int)tail, false);
}

/* Row `line` of block `block` of group `group` of image `image`. */
static void transposed_row(const Transposed *t, int64_t image, int64_t group, int64_t block, int64_t line) {
  int64_t vector = block * K_VECTORS, first = group * t->vectors + vector;
  Row row = {
      .x = t->x + image * t->x_image,
      .w = t->w + (group * t->blocks + block) * WINDOW_H * t->channels * WINDOW_W * K_VECTORS * LANES,
      .y = t->y + image * t->y_image + (first * OUT_H + line) * OUT_W * LANES,
      .channel = group * t->channels,
      .channels = t->channels,
      .from = line + PAD_TOP,
      .vectors = t->vectors - vector,
  };
#pragma clang loop unroll(full)
  for (int v = 0; v < K_VECTORS; v++) {
    int64_t k = (vector + v) * LANES; /* in the group */
    int lanes = (int)min_i64(LANES, max_i64(0, t->kernels - k));
    row.bias[v] = BIAS && lanes ? vload_n(t->bias + group * t->kernels + k, lanes) : vzero();
  }
  tiles_of_phase(&row, 0);
  if (STRIDE_W > 1) tiles_of_phase(&row, 1);
  if (STRIDE_W > 2) tiles_of_phase(&row, 2);
  if (STRIDE_W > 3) tiles_of_phase(&row, 3);
}

/* x: [n][blocks][IN_H][IN_W][LANES], groups * channels of them; w: [groups][blocks of K_VECTORS vectors][R][C][S]
 * [K_VECTORS][LANES], zero past the kernels; bias: [groups * kernels]; y: [n][blocks][OUT_H][OUT_W][LANES], groups *
 * kernels of them, whole vectors where there are several groups. Rows are shared out in the order (n, group, block of
 * channels, row), so that a worker keeps its block's weights in cache. */
static void conv_transposed_blocked(const Team *team, const float *x, const float *w, const float *bias, float *y,
                                    int64_t n, int64_t groups, int64_t channels, int64_t kernels, int64_t x_image,
                                    int64_t y_image) {
  Transposed t = {.x = x,
                  .w = w,
                  .bias = bias,
                  .y = y,
                  .groups = groups,
                  .channels = channels,
                  .kernels = kernels,
                  .vectors = ceil_div(kernels, LANES),
                  .x_image = x_image,
                  .y_image = y_image};
  t.blocks = ceil_div(t.vectors, K_VECTORS);
  int64_t item, end;
  team_share(team, n * groups * t.blocks * OUT_H, &item, &end);
  for (; item < end; item++) {
    int64_t line = item % OUT_H, block = item / OUT_H % t.blocks, rest = item / OUT_H / t.blocks;
    transposed_row(&t, rest / groups, rest % groups, block, line);
  }
}
