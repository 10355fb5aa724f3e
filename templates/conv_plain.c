/* SPDX-License-Identifier: MIT */
/*
 * Direct convolution in NCDHW: y[n, k, od, oh, ow] = epilogue(bias[k] + sum over c, q, r, s of x[n, c, id, ih, iw]
 * w[k, c, q, r, s]). One of two axes has volumes of one plane.
 *
 * A tile is K_BLOCK channels by W_VECTORS vectors of one output row; its sums live in registers, and each input vector
 * that is loaded meets K_BLOCK weights. Tiles are shared out in the order (n, block of channels, plane, row, column),
 * so that a worker keeps its block's weights in cache.
 *
 * The input is either dense and needs no padding (DIRECT), or comes from conv_pad: padded, and with the columns of each
 * row sorted by their place modulo STRIDE_W, so that the inputs of neighbouring outputs are neighbours.
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
/* Channels of the last tile of a group: what K_BLOCK leaves over; 0: nothing.
 * legal: 0..7 */
enum { K_TAIL = 1 };
/* Vectors of output columns in a tile; with K_BLOCK sums each they should fit in registers.
 * legal: 1..4 */
enum { W_VECTORS = 2 };
/* 1: the weights of a block of channels stand together, [C][Q][R][S][channel of the block]; 0: as in ONNX,
 * [K][C][Q][R][S]. legal: 0 1 */
enum { PACKED = 1 };
/* 1: x is the dense input, and nothing past the end of a row may be read; 0: x comes from conv_pad.
 * legal: 0 1 */
enum { DIRECT = 0 };
/* legal: 0 1 */
enum { BIAS = 1 };
/* 1: residual, of y's shape, is added before the epilogue.
 * legal: 0 1 */
enum { RESIDUAL = 0 };

/* A group is `channels` inputs and `kernels` outputs. Strides in elements. */
typedef struct Conv {
  const float *x, *w, *bias, *residual;
  float *y;
  int64_t groups, channels, kernels, blocks;  /* blocks of K_BLOCK outputs in a group */
  int64_t x_channel, x_plane, x_row, x_phase; /* x_phase: between columns of different place modulo STRIDE_W */
  int64_t out_d, out_h, out_w, tiles;         /* tiles in a row */
} Conv;

/* hook: what becomes of an element of the result; x and the result are one vector of columns. */
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

/* One tile. x: where its first output's window begins; w: the block's weights; k: its first channel among all;
 * at: its first element in y. */
SIMD_FUNCTION void tile(const Conv *c, const float *x, const float *w, int64_t k, int64_t at, int rows, int64_t columns,
                        bool whole) {
  int64_t points = c->channels * WINDOW_D * WINDOW_H * WINDOW_W;
  vec sums[K_BLOCK][W_VECTORS];
#pragma clang loop unroll(full)
  for (int j = 0; j < rows; j++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < W_VECTORS; v++) sums[j][v] = BIAS ? vbroadcast_load(c->bias + k + j) : vzero();
  }
  for (int64_t channel = 0; channel < c->channels; channel++) {
    for (int64_t qr = 0; qr < WINDOW_D * WINDOW_H; qr++) {
      int64_t q = qr / WINDOW_H, r = qr % WINDOW_H;
      const float *row = x + channel * c->x_channel + q * DILATION_D * c->x_plane + r * DILATION_H * c->x_row;
      for (int64_t s = 0; s < WINDOW_W; s++) {
        int64_t column = s * DILATION_W % STRIDE_W * c->x_phase + s * DILATION_W / STRIDE_W;
        multiply(sums, row + column, w, PACKED ? 1 : points, rows, columns, whole);
        w += PACKED ? rows : 1;
      }
    }
  }
  finish(c, sums, at, rows, columns);
}

SIMD_FUNCTION void tile_of_rows(const Conv *c, const float *x, const float *w, int64_t k, int64_t at, int rows,
                                int64_t columns) {
  if (!DIRECT || columns >= W_VECTORS * LANES)
    tile(c, x, w, k, at, rows, columns, true);
  else
    tile(c, x, w, k, at, rows, columns, false);
}

/* Tile `item` of the order (n, group, block, plane, row, column). */
static void tile_at(const Conv *c, int64_t item) {
  int64_t column = item % c->tiles * W_VECTORS * LANES;
  item /= c->tiles;
  int64_t row = item % c->out_h, plane = item / c->out_h % c->out_d, block = item / c->out_h / c->out_d % c->blocks;
  int64_t image = item / c->out_h / c->out_d / c->blocks, group = image % c->groups; /* n * groups + group */
  int64_t first = block * K_BLOCK, k = group * c->kernels + first;
  const float *x =
      c->x + image * c->channels * c->x_channel + plane * STRIDE_D * c->x_plane + row * STRIDE_H * c->x_row + column;
  const float *w = c->w + k * c->channels * WINDOW_D * WINDOW_H * WINDOW_W;
  int64_t at = (((image * c->kernels + first) * c->out_d + plane) * c->out_h + row) * c->out_w + column;
  if (K_TAIL > 0 && c->kernels - first < K_BLOCK)
    tile_of_rows(c, x, w, k, at, K_TAIL, c->out_w - column);
  else
    tile_of_rows(c, x, w, k, at, K_BLOCK, c->out_w - column);
}

/* x: n * groups * channels volumes, x_channel apart, their planes x_plane, rows x_row apart. y and residual:
 * [n, groups * kernels, out_d, out_h, out_w]. */
static void conv_plain(const Team *team, const float *x, const float *w, const float *bias, const float *residual,
                       float *y, int64_t n, int64_t groups, int64_t channels, int64_t kernels, int64_t x_channel,
                       int64_t x_plane, int64_t x_row, int64_t x_phase, int64_t out_d, int64_t out_h, int64_t out_w) {
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
               .x_phase = x_phase,
               .out_d = out_d,
               .out_h = out_h,
               .out_w = out_w,
               .tiles = ceil_div(out_w, W_VECTORS * LANES)};
  int64_t item, end;
  team_share(team, n * groups * conv.blocks * out_d * out_h * conv.tiles, &item, &end);
  for (; item < end; item++) tile_at(&conv, item);
}
