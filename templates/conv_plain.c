/* SPDX-License-Identifier: MIT */
/*
 * Direct convolution in NCDHW: y[n, k, od, oh, ow] = epilogue(bias[k] + sum over c, q, r, s of x[n, c, id, ih, iw]
 * w[k, c, q, r, s]). One of two axes has volumes of one plane.
 *
 * A tile is K_BLOCK channels by W_VECTORS vectors of one line of outputs; its sums are in registers, and each input
 * vector is multiplied by K_BLOCK weights. Tiles are shared out in the order (n, chunk of tiles, block of channels,
 * tile): a worker's cache keeps its block's weights, and a chunk's input for all blocks.
 *
 * The input is either dense and needs no padding (DIRECT), or comes from conv_pad: padded, and with its rows and
 * columns sorted by their position modulo STRIDE_H and STRIDE_W, so that the inputs of neighbouring outputs are
 * neighbours.
 *
 * A line is a row or, for short rows (FLAT), a plane: its rows have the input's distance, and the sums between them are
 * not used.
 */
#include "kernel.h"
#include "simd/math.h"
#include "simd/simd.h"

/* Q.
 * legal: 1..65536 */
enum { WINDOW_D = 1 };
/* R.
 * legal: 1..65536 */
enum { WINDOW_H = 3 };
/* S.
 * legal: 1..65536 */
enum { WINDOW_W = 3 };
/* legal: 1..65536 */
enum { STRIDE_D = 1 };
/* legal: 1..65536 */
enum { STRIDE_H = 1 };
/* legal: 1..65536 */
enum { STRIDE_W = 1 };
/* legal: 1..65536 */
enum { DILATION_D = 1 };
/* legal: 1..65536 */
enum { DILATION_H = 1 };
/* legal: 1..65536 */
enum { DILATION_W = 1 };
/* Output channels of a tile.
 * legal: 1..8 */
enum { K_BLOCK = 4 };
/* Channels of the last tile of a group, if fewer than K_BLOCK; else 0.
 * legal: 0..7 */
enum { K_TAIL = 1 };
/* Vectors of output columns in a tile; with K_BLOCK sums each they should fit in registers.
 * legal: 1..4 */
enum { W_VECTORS = 2 };
/* 1: the weights of a block of channels are contiguous, [C][Q][R][S][channel of the block]; 0: as in ONNX,
 * [K][C][Q][R][S]. legal: 0 1 */
enum { PACKED = 1 };
/* 1: x is the dense input, and nothing past the end of a row may be read; 0: x comes from conv_pad.
 * legal: 0 1 */
enum { DIRECT = 0 };
/* 1: a line is a plane; 0: a row.
 * legal: 0 1 */
enum { FLAT = 0 };
/* legal: 0 1 */
enum { BIAS = 1 };
/* 1: adds residual, of y's shape, before the epilogue.
 * legal: 0 1 */
enum { RESIDUAL = 0 };

/* A group is `channels` inputs and `kernels` outputs. Strides in elements. */
typedef struct Conv {
  const float *x, *w, *bias, *residual;
  float *y;
  int64_t groups, channels, kernels, blocks; /* blocks of K_BLOCK outputs in a group */
  int64_t x_channel, x_plane, x_row;         /* x_row: between the first rows of neighbouring outputs' windows */
  int64_t x_phase_h, x_phase_w;              /* between rows and columns of different phases */
  int64_t out_d, out_h, out_w;
  int64_t length, tiles, all, chunk; /* columns of a line; tiles of a line, of a volume, of a chunk */
} Conv;

/* hook: maps an element of the result; x and the result are one vector of columns. */
static inline vec epilogue(vec x) { return x; }

/* n columns are there to be read; `whole`: known to be at least a vector. */
SIMD_FUNCTION vec load_columns(const float *p, int64_t n, bool whole) {
  if (whole || n >= LANES) return vload(p);
  return n > 0 ? vload_n(p, (int)n) : vzero();
}

SIMD_FUNCTION void store_columns(float *p, vec v, int64_t n) {
  if (n >= LANES)
    vstore(p, v);
  else if (n > 0)
    vstore_n(p, v, (int)n);
}

SIMD_FUNCTION void multiply(vec sums[K_BLOCK][W_VECTORS], const float *x, const float *w, int64_t w_stride, int rows,
                            int64_t columns, bool whole) {
  vec in[W_VECTORS];
#pragma clang loop unroll(full)
  for (int v = 0; v < W_VECTORS; v++) in[v] = load_columns(x + v * LANES, columns - v * LANES, whole);
#pragma clang loop unroll(full)
  for (int k = 0; k < rows; k++) {
    vec weight = vbroadcast_load(w + k * w_stride);
#pragma clang loop unroll(full)
    for (int v = 0; v < W_VECTORS; v++) sums[k][v] = vfma(sums[k][v], in[v], weight);
  }
}

/* The outputs of columns first..first + n - 1 of a flat line, from the line to the rows of their plane, or back. */
static void copy_rows(const Conv *c, const float *from, float *to, int64_t first, int64_t n, bool back) {
  int64_t row = first / c->x_row, column = first % c->x_row;
  for (int64_t i = 0; i < n; i += c->x_row - column, column = 0, row++) {
    int64_t in_plane = row * c->out_w + column, count = min_i64(c->out_w - column, n - i);
    for (int64_t done = 0; done < count; done += LANES) {
      int part = (int)min_i64(LANES, count - done);
      vstore_n(to + done + (back ? i : in_plane), vload_n(from + done + (back ? in_plane : i), part), part);
    }
  }
}

/* Like finish() below, for the line's column `first`. Stores all sums at once, so that the compiler need not spill
 * them.
 */
SIMD_FUNCTION void finish_flat(const Conv *c, vec sums[K_BLOCK][W_VECTORS], int64_t at, int64_t first, int rows,
                               int64_t columns) {
  enum { TILE = W_VECTORS * LANES };
  float lines[K_BLOCK * TILE], residual[TILE] = {0};
#pragma clang loop unroll(full)
  for (int k = 0; k < rows; k++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < W_VECTORS; v++) vstore(lines + k * TILE + v * LANES, sums[k][v]);
  }
  int64_t volume = c->out_d * c->out_h * c->out_w, n = min_i64(columns, TILE);
  for (int k = 0; k < rows; k++) {
    float *line = lines + k * TILE;
    if (RESIDUAL) copy_rows(c, c->residual + at + k * volume, residual, first, n, true);
    for (int v = 0; v < TILE; v += LANES) {
      vec sum = vload(line + v);
      if (RESIDUAL) sum = vadd(sum, vload(residual + v));
      vstore(line + v, epilogue(sum));
    }
    copy_rows(c, line, c->y + at + k * volume, first, n, false);
  }
}

/* at: of the first output of the first channel in y. */
SIMD_FUNCTION void finish(const Conv *c, vec sums[K_BLOCK][W_VECTORS], int64_t at, int rows, int64_t columns) {
  int64_t volume = c->out_d * c->out_h * c->out_w;
#pragma clang loop unroll(full)
  for (int k = 0; k < rows; k++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < W_VECTORS; v++) {
      int64_t here = at + k * volume + v * LANES;
      vec sum = sums[k][v];
      if (RESIDUAL) sum = vadd(sum, load_columns(c->residual + here, columns - v * LANES, false));
      store_columns(c->y + here, epilogue(sum), columns - v * LANES);
    }
  }
}

/* Column `first` of a line of a block of channels: `w` are its weights, k is its first channel among all, and the
 * line's first element in y is `at`. x: where the window of the line's first output begins. */
typedef struct Place {
  const float *x, *w;
  int64_t k, at, first;
} Place;

SIMD_FUNCTION void tile(const Conv *c, const Place *place, int rows, bool whole) {
  const float *x = place->x + place->first, *w = place->w;
  int64_t columns = c->length - place->first;
  int64_t points = c->channels * WINDOW_D * WINDOW_H * WINDOW_W;
  vec sums[K_BLOCK][W_VECTORS];
#pragma clang loop unroll(full)
  for (int j = 0; j < rows; j++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < W_VECTORS; v++) sums[j][v] = BIAS ? vbroadcast_load(c->bias + place->k + j) : vzero();
  }
  for (int64_t channel = 0; channel < c->channels; channel++) {
    for (int64_t qr = 0; qr < WINDOW_D * WINDOW_H; qr++) {
      int64_t q = qr / WINDOW_H, r = qr % WINDOW_H;
      int64_t in_plane = r * DILATION_H % STRIDE_H * c->x_phase_h + r * DILATION_H / STRIDE_H * c->x_row;
      const float *row = x + channel * c->x_channel + q * DILATION_D * c->x_plane + in_plane;
      for (int64_t s = 0; s < WINDOW_W; s++) {
        int64_t column = s * DILATION_W % STRIDE_W * c->x_phase_w + s * DILATION_W / STRIDE_W;
        multiply(sums, row + column, w, PACKED ? 1 : points, rows, columns, whole);
        w += PACKED ? rows : 1;
      }
    }
  }
  if (FLAT)
    finish_flat(c, sums, place->at, place->first, rows, columns);
  else
    finish(c, sums, place->at + place->first, rows, columns);
}

SIMD_FUNCTION void tile_of_rows(const Conv *c, const Place *place, int rows) {
  if (!DIRECT || c->length - place->first >= W_VECTORS * LANES)
    tile(c, place, rows, true);
  else
    tile(c, place, rows, false);
}

static void tile_at(const Conv *c, int64_t item) {
  int64_t image = item / (c->blocks * c->all); /* n * groups + group */
  item %= c->blocks * c->all;
  int64_t before = item / (c->blocks * c->chunk) * c->chunk, here = min_i64(c->chunk, c->all - before);
  item %= c->blocks * c->chunk;
  int64_t block = item / here, tile_of_all = before + item % here, line = tile_of_all / c->tiles;
  int64_t plane = FLAT ? line : line / c->out_h, row = FLAT ? 0 : line % c->out_h;
  int64_t first = block * K_BLOCK, k = image % c->groups * c->kernels + first;
  Place place = {.x = c->x + image * c->channels * c->x_channel + plane * STRIDE_D * c->x_plane + row * c->x_row,
                 .w = c->w + k * c->channels * WINDOW_D * WINDOW_H * WINDOW_W,
                 .k = k,
                 .at = (((image * c->kernels + first) * c->out_d + plane) * c->out_h + row) * c->out_w,
                 .first = tile_of_all % c->tiles * W_VECTORS * LANES};
  if (K_TAIL > 0 && c->kernels - first < K_BLOCK)
    tile_of_rows(c, &place, K_TAIL);
  else
    tile_of_rows(c, &place, K_BLOCK);
}

/* x: n * groups * channels volumes, x_channel apart, their planes x_plane. y and residual:
 * [n, groups * kernels, out_d, out_h, out_w]. chunk: tiles; 0: all. */
static void conv_plain(const Team *team, const float *x, const float *w, const float *bias, const float *residual,
                       float *y, int64_t n, int64_t groups, int64_t channels, int64_t kernels, int64_t x_channel,
                       int64_t x_plane, int64_t x_row, int64_t x_phase_h, int64_t x_phase_w, int64_t out_d,
                       int64_t out_h, int64_t out_w, int64_t chunk) {
  int64_t length = FLAT ? (out_h - 1) * x_row + out_w : out_w, tiles = ceil_div(length, W_VECTORS * LANES);
  int64_t all = out_d * (FLAT ? 1 : out_h) * tiles;
  Conv conv = {.x = x,
               .w = w,
               .bias = bias,
               .residual = residual,
               .y = y,
               .groups = groups,
               .channels = channels,
               .kernels = kernels,
               .blocks = ceil_div(kernels, K_BLOCK),
               .x_channel = x_channel,
               .x_plane = x_plane,
               .x_row = x_row,
               .x_phase_h = x_phase_h,
               .x_phase_w = x_phase_w,
               .out_d = out_d,
               .out_h = out_h,
               .out_w = out_w,
               .length = length,
               .tiles = tiles,
               .all = all,
               .chunk = chunk ? min_i64(chunk, all) : all};
  int64_t item, end;
  team_share(team, n * groups * conv.blocks * all, &item, &end);
  for (; item < end; item++) tile_at(&conv, item);
}
