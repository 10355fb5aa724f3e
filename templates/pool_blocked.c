/* SPDX-License-Identifier: MIT */
/*
 * Maximum or mean over windows of tensors in blocks of VECTORS vectors, a vector of channels at a time. NaN in a window
 * makes the result NaN.
 *
 * A tile is COLUMNS pixels of one output row. The rows of the window are combined first, into one vector for each
 * input column of the tile, then the columns of each pixel's window, so an input pixel is loaded once, and the work
 * that windows share is done once. Edge tiles have code of their own, in which the columns in the padding are constant.
 * Rows in the padding are skipped.
 */
#include "bands.h"
#include "kernel.h"
#include "knobs.h"
#include "simd/simd.h"
#include "windows.h"

/* Of a block.
 * legal: 1 2 */
enum { VECTORS = 1 };
/* legal: 1..268435456 */
enum { IN_H = 8 };
/* legal: 1..268435456 */
enum { IN_W = 8 };
/* legal: 1..268435456 */
enum { OUT_H = 4 };
/* legal: 1..268435456 */
enum { OUT_W = 4 };
/* legal: 1..65536 */
enum { WINDOW_H = 2 };
/* legal: 1..32 */
enum { WINDOW_W = 2 };
/* legal: 1..65536 */
enum { STRIDE_H = 2 };
/* legal: 1..65536 */
enum { STRIDE_W = 2 };
/* legal: 1..65536 */
enum { DILATION_H = 1 };
/* legal: 1..65536 */
enum { DILATION_W = 1 };
/* Rows of padding before the input.
 * legal: 0..65536 */
enum { PAD_TOP = 0 };
/* Columns of padding before the input.
 * legal: 0..65536 */
enum { PAD_LEFT = 0 };
/* Rows of padding after the input.
 * legal: 0..65536 */
enum { PAD_BOTTOM = 0 };
/* Columns of padding after the input.
 * legal: 0..65536 */
enum { PAD_RIGHT = 0 };
/* Pixels of a tile.
 * legal: 1..16 */
enum { COLUMNS = 4 };
/* POOL_MAX, POOL_MEAN or POOL_MEAN_WITH_PADDING.
 * legal: 0 1 2 */
enum { KIND = POOL_MAX };

/* 1: OUT_W is known only at run time, as IN_W may be.
 * legal: 0 1 */
enum { ANY_WIDTH = 0 };

/* Floats of a pixel of a block. */
enum { PIXEL = VECTORS * LANES };

#include "parts/row_tiles.h"

/* One output row of one vector of channels. */
typedef struct Row {
  const float *x; /* input row 0 */
  float *y;
  int64_t from;       /* input row of the window's first */
  int64_t begin, end; /* rows of the window that lie in the input */
  int64_t counted;    /* rows that a mean is over */
} Row;

SIMD_FUNCTION vec combine(vec a, vec b) { return KIND == POOL_MAX ? vmax(a, b) : vadd(a, b); }

SIMD_FUNCTION bool in_input(int64_t column, bool inside) { return inside || (column >= 0 && column < IN_W); }

/* Does a pixel's window have a point in the tile's input column j? */
SIMD_FUNCTION bool is_used(int j, int columns) {
  for (int s = 0; s < WINDOW_W; s++) {
    int ahead = j - s * DILATION_W;
    if (ahead >= 0 && ahead % STRIDE_W == 0 && ahead / STRIDE_W < columns) return true;
  }
  return false;
}

/* Row r of the window in each input column from `first` on, alone or combined with the rows before. */
SIMD_FUNCTION void add_row(const Row *row, int64_t r, vec down[TILE_REACH], int64_t first, int columns, bool inside,
                           bool alone) {
  const float *in = row->x + ((row->from + r * DILATION_H) * IN_W + first) * PIXEL;
#pragma clang loop unroll(full)
  for (int j = 0; j < TILE_REACH; j++) {
    if (!in_input(first + j, inside) || !is_used(j, columns)) continue;
    vec v = vload(in + j * PIXEL);
    down[j] = alone ? v : combine(down[j], v);
  }
}

SIMD_FUNCTION vec combine_columns(const vec down[TILE_REACH], int pixel, int64_t first, bool inside) {
  vec result = vset(KIND == POOL_MAX ? -__builtin_inff() : 0);
  bool empty = true;
#pragma clang loop unroll(full)
  for (int s = 0; s < WINDOW_W; s++) {
    int j = pixel * STRIDE_W + s * DILATION_W;
    if (!in_input(first + j, inside)) continue;
    result = empty ? down[j] : combine(result, down[j]);
    empty = false;
  }
  return result;
}

/* Columns that the mean of a pixel is over. */
SIMD_FUNCTION int64_t counted_columns(int pixel, int64_t first, bool inside) {
  int64_t count = 0, end = KIND == POOL_MEAN_WITH_PADDING ? IN_W + PAD_RIGHT : IN_W;
  if (inside) return WINDOW_W;
#pragma clang loop unroll(full)
  for (int s = 0; s < WINDOW_W; s++) {
    int64_t column = first + pixel * STRIDE_W + s * DILATION_W;
    count += column < end && (KIND == POOL_MEAN_WITH_PADDING || column >= 0);
  }
  return count;
}

/* With dilations a window may have no point at all: its mean is 0. */
SIMD_FUNCTION int64_t counted(const Row *row, int64_t columns) { return max_i64(1, row->counted * columns); }

/* `inside`: no window of the tile reaches into the padding. */
SIMD_FUNCTION void tile(const Row *row, int64_t column, int columns, bool inside) {
  vec down[TILE_REACH];
  int64_t first = column * STRIDE_W - PAD_LEFT;
#pragma clang loop unroll(full)
  for (int j = 0; j < TILE_REACH; j++) down[j] = vset(KIND == POOL_MAX ? -__builtin_inff() : 0);
  if (row->begin < row->end) add_row(row, row->begin, down, first, columns, inside, true);
  for (int64_t r = row->begin + 1; r < row->end; r++) add_row(row, r, down, first, columns, inside, false);
#pragma clang loop unroll(full)
  for (int i = 0; i < columns; i++) {
    if (ANY_WIDTH && !inside && column + i >= OUT_W) continue;
    vec result = combine_columns(down, i, first, inside);
    if (KIND != POOL_MAX) result = vdiv(result, vset((float)counted(row, counted_columns(i, first, inside))));
    vstore(row->y + (column + i) * PIXEL, result);
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

/* Rows of the window from input row `from` on that begin before `limit`. */
static inline int64_t rows_before(int64_t from, int64_t limit) {
  return points_before(from, WINDOW_H, DILATION_H, limit);
}

/* x and y: of one vector of channels of an image. */
static void one_row(const float *x, float *y, int64_t line) {
  int64_t from = line * STRIDE_H - PAD_TOP, in_end = rows_before(from, IN_H);
  Row row = {.x = x, .y = y + line * OUT_W * PIXEL, .from = from, .begin = rows_before(from, 0), .end = in_end};
  row.counted = KIND == POOL_MEAN_WITH_PADDING ? rows_before(from, IN_H + PAD_BOTTOM) : in_end - row.begin;
  if (ANY_WIDTH)
    tiles_of_any_row(&row);
  else
    tiles_of_row(&row);
}

/* The offset of a vector of channels in an image whose planes have `pixels` pixels. */
static int64_t vector_at(int64_t vector, int64_t pixels) {
  return vector / VECTORS * pixels * PIXEL + vector % VECTORS * LANES;
}

/* x: [n][blocks][IN_H][IN_W][PIXEL]; y: [n][blocks][OUT_H][OUT_W][PIXEL]. */
static void pool_blocked(const Team *team, const float *x, float *y, int64_t n, int64_t blocks, int64_t x_image,
                         int64_t y_image) {
  int64_t vectors = blocks * VECTORS;
  Bands bands = bands_of(team, n, OUT_H, vectors);
  for (int64_t image = 0; image < n; image++) {
    for (int64_t vector = 0; vector < vectors; vector++) {
      const float *plane = x + image * x_image + vector_at(vector, (int64_t)IN_H * IN_W);
      float *to = y + image * y_image + vector_at(vector, (int64_t)OUT_H * OUT_W);
      int64_t end = band_end(&bands, image, vector);
      for (int64_t line = band_begin(&bands, image, vector); line < end; line++) one_row(plane, to, line);
    }
  }
}
