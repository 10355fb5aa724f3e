/* SPDX-License-Identifier: MIT */
/*
 * The weights' gradient of a convolution in NCDHW: dw[k, c, q, r, s] = sum over n, od, oh, ow of d[n, k, od, oh, ow]
 * x[n, c, id, ih, iw].
 *
 * A tile is K_VECTORS vectors of output channels by CHANNELS input channels by TAPS columns of the window; its sums are
 * in registers while it goes over a block of at most BLOCK places of one image. Each element of x there is multiplied
 * by K_VECTORS vectors. A block's part of d is transposed once for all tiles of its output channels, so that these are
 * lanes. Workers share the tiles, and each sums over all images in their order: the partition changes no bit.
 *
 * The input is as templates/conv_plain.c reads it: dense and without padding, or as conv_pad has it.
 */
#include "kernel.h"
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
/* Vectors of output channels in a tile.
 * legal: 1..4 */
enum { K_VECTORS = 2 };
/* Input channels of a tile.
 * legal: 1..16 */
enum { CHANNELS = 2 };
/* Input channels of a group's last tile, if fewer; else 0.
 * legal: 0..15 */
enum { CHANNEL_TAIL = 1 };
/* Columns of the window in a tile, at most WINDOW_W. K_VECTORS CHANNELS TAPS sums should fit in registers.
 * legal: 1..16 */
enum { TAPS = 3 };

/* Places of a block: its part of d is in a core's L1 cache, and on the stack. */
enum { BLOCK = 64, TAP_TAIL = WINDOW_W % TAPS, TAP_TILES = (WINDOW_W + TAPS - 1) / TAPS };
/* Sums of a tile, in vectors. */
enum { SUMS = CHANNELS * TAPS * K_VECTORS };

/* A group is `channels` inputs and `kernels` outputs. Strides in elements. */
typedef struct Gradient {
  const float *x, *d;
  float *dw, *sums;
  int64_t groups, channels, kernels;
  int64_t k_tiles, c_tiles, tiles; /* tiles: of one k tile */
  int64_t x_channel, x_plane, x_row, x_phase_h, x_phase_w;
  int64_t out_h, out_w, volume;
} Gradient;

/* Some places of one image. */
typedef struct Places {
  int64_t image, first, count;
  int64_t in_x[BLOCK];                /* where their windows begin, in a channel */
  float d[BLOCK * K_VECTORS * LANES]; /* of one k tile: [place][vector][lane] */
} Places;

/* One tile: which k tile, of all groups, and where in its window and channels it begins. */
typedef struct Tile {
  int64_t group, kernel; /* the first in the group */
  int64_t channel, q, r, s;
  int channels, taps;
} Tile;

static Tile tile_at(const Gradient *g, int64_t item) {
  int64_t k_tile = item / g->tiles, rest = item % g->tiles, window = rest / g->c_tiles;
  Tile t = {.group = k_tile / g->k_tiles,
            .kernel = k_tile % g->k_tiles * K_VECTORS * LANES,
            .channel = rest % g->c_tiles * CHANNELS,
            .q = window / TAP_TILES / WINDOW_H,
            .r = window / TAP_TILES % WINDOW_H,
            .s = window % TAP_TILES * TAPS};
  t.channels = CHANNEL_TAIL > 0 && g->channels - t.channel < CHANNELS ? CHANNEL_TAIL : CHANNELS;
  t.taps = TAP_TAIL > 0 && WINDOW_W - t.s < TAPS ? TAP_TAIL : TAPS;
  return t;
}

/* ---- a block ---- */

static void find_places(const Gradient *g, Places *p) {
  int64_t row = p->first / g->out_w, column = p->first % g->out_w;
  for (int64_t i = 0; i < p->count; i++) {
    int64_t plane = row / g->out_h;
    p->in_x[i] = plane * STRIDE_D * g->x_plane + row % g->out_h * g->x_row + column;
    if (++column < g->out_w) continue;
    column = 0;
    row++;
  }
}

/* LANES places of LANES output channels; channels past the last are 0. */
static void transpose_part(const Gradient *g, const float *d, int64_t kernels, float *to, int places) {
  vec rows[LANES];
#pragma clang loop unroll(full)
  for (int k = 0; k < LANES; k++) rows[k] = k < kernels ? vload_n(d + k * g->volume, places) : vzero();
  vtranspose(rows);
#pragma clang loop unroll(full)
  for (int i = 0; i < LANES; i++)
    if (i < places) vstore(to + i * K_VECTORS * LANES, rows[i]);
}

/* The block's part of d, of a k tile. */
static void take_gradients(const Gradient *g, Places *p, const Tile *t) {
  for (int64_t v = 0; v < K_VECTORS; v++) {
    int64_t k = t->kernel + v * LANES;
    const float *d = g->d + ((p->image * g->groups + t->group) * g->kernels + k) * g->volume + p->first;
    for (int64_t i = 0; i < p->count; i += LANES)
      transpose_part(g, d + i, g->kernels - k, p->d + (i * K_VECTORS + v) * LANES, (int)min_i64(LANES, p->count - i));
  }
}

/* ---- a tile ---- */

/* From column 0 to column s of a window. */
static inline int64_t column_of(const Gradient *g, int64_t s) {
  if (STRIDE_W == 1) return s * DILATION_W;
  return s * DILATION_W % STRIDE_W * g->x_phase_w + s * DILATION_W / STRIDE_W;
}

/* x: the tile's first channel and tap of a window that begins at 0. */
SIMD_FUNCTION void multiply(const Gradient *g, vec sums[CHANNELS][TAPS][K_VECTORS], const Places *p, const float *x,
                            int64_t first_tap, int channels, int taps) {
  int64_t columns[TAPS], x_channel = g->x_channel;
#pragma clang loop unroll(full)
  for (int s = 0; s < taps; s++) columns[s] = column_of(g, first_tap + s) - column_of(g, first_tap);
  const float *d = p->d;
  for (int64_t i = 0; i < p->count; i++, d += K_VECTORS * LANES) {
    const float *at = x + p->in_x[i];
    vec gradient[K_VECTORS];
#pragma clang loop unroll(full)
    for (int v = 0; v < K_VECTORS; v++) gradient[v] = vload(d + v * LANES);
#pragma clang loop unroll(full)
    for (int s = 0; s < taps; s++) {
      const float *column = at + (STRIDE_W == 1 ? s * DILATION_W : columns[s]);
#pragma clang loop unroll(full)
      for (int c = 0; c < channels; c++) {
        vec in = vbroadcast_load(column + c * x_channel);
#pragma clang loop unroll(full)
        for (int v = 0; v < K_VECTORS; v++) sums[c][s][v] = vfma(sums[c][s][v], in, gradient[v]);
      }
    }
  }
}

/* Adds the block's part to the tile's sums in memory; `first`: they begin. */
SIMD_FUNCTION void add_block(const Gradient *g, const Places *p, const float *x, int64_t first_tap, float *memory,
                             bool first, int channels, int taps) {
  vec sums[CHANNELS][TAPS][K_VECTORS];
#pragma clang loop unroll(full)
  for (int c = 0; c < channels; c++) {
#pragma clang loop unroll(full)
    for (int s = 0; s < taps; s++) {
#pragma clang loop unroll(full)
      for (int v = 0; v < K_VECTORS; v++)
        sums[c][s][v] = first ? vzero() : vload(memory + ((c * TAPS + s) * K_VECTORS + v) * LANES);
    }
  }
  multiply(g, sums, p, x, first_tap, channels, taps);
#pragma clang loop unroll(full)
  for (int c = 0; c < channels; c++) {
#pragma clang loop unroll(full)
    for (int s = 0; s < taps; s++) {
#pragma clang loop unroll(full)
      for (int v = 0; v < K_VECTORS; v++) vstore(memory + ((c * TAPS + s) * K_VECTORS + v) * LANES, sums[c][s][v]);
    }
  }
}

static __attribute__((noinline)) void run_tile(const Gradient *g, const Places *p, const Tile *t, float *memory,
                                               bool first) {
  int64_t row = t->r * DILATION_H % STRIDE_H * g->x_phase_h + t->r * DILATION_H / STRIDE_H * g->x_row;
  const float *x = g->x + ((p->image * g->groups + t->group) * g->channels + t->channel) * g->x_channel +
                   t->q * DILATION_D * g->x_plane + row + column_of(g, t->s);
  bool few_channels = CHANNEL_TAIL > 0 && t->channels == CHANNEL_TAIL, few_taps = TAP_TAIL > 0 && t->taps == TAP_TAIL;
  if (few_channels && few_taps)
    add_block(g, p, x, t->s, memory, first, CHANNEL_TAIL, TAP_TAIL);
  else if (few_channels)
    add_block(g, p, x, t->s, memory, first, CHANNEL_TAIL, TAPS);
  else if (few_taps)
    add_block(g, p, x, t->s, memory, first, CHANNELS, TAP_TAIL);
  else
    add_block(g, p, x, t->s, memory, first, CHANNELS, TAPS);
}

/* Of the tiles begin..end-1. */
static void run_block(const Gradient *g, Places *p, int64_t begin, int64_t end, bool first) {
  find_places(g, p);
  for (int64_t item = begin; item < end; item++) {
    Tile t = tile_at(g, item);
    if (item == begin || item % g->tiles == 0) take_gradients(g, p, &t);
    run_tile(g, p, &t, g->sums + item * SUMS * LANES, first);
  }
}

/* ---- results ---- */

/* Of no block. */
static void clear_tiles(const Gradient *g, int64_t begin, int64_t end) {
  for (int64_t i = begin * SUMS; i < end * SUMS; i++) vstore(g->sums + i * LANES, vzero());
}

static void write_tile(const Gradient *g, const Tile *t, const float *sums) {
  int64_t kernels = min_i64(K_VECTORS * LANES, g->kernels - t->kernel);
  for (int64_t k = 0; k < kernels; k++)
    for (int c = 0; c < t->channels; c++) {
      int64_t line = (t->group * g->kernels + t->kernel + k) * g->channels + t->channel + c;
      float *to = g->dw + ((line * WINDOW_D + t->q) * WINDOW_H + t->r) * WINDOW_W + t->s;
      for (int s = 0; s < t->taps; s++) to[s] = sums[(c * TAPS + s) * K_VECTORS * LANES + k];
    }
}

/* x: n * groups * channels volumes, x_channel apart. d: [n, groups * kernels, out_d, out_h, out_w]; dw: [groups *
 * kernels, channels, Q, R, S]. sums: SUMS vectors for each tile. */
static void conv_weight_gradient(const Team *team, const float *x, const float *d, float *dw, float *sums, int64_t n,
                                 int64_t groups, int64_t channels, int64_t kernels, int64_t x_channel, int64_t x_plane,
                                 int64_t x_row, int64_t x_phase_h, int64_t x_phase_w, int64_t out_d, int64_t out_h,
                                 int64_t out_w) {
  Gradient g = {.x = x,
                .d = d,
                .dw = dw,
                .sums = sums,
                .groups = groups,
                .channels = channels,
                .kernels = kernels,
                .k_tiles = ceil_div(kernels, K_VECTORS * LANES),
                .c_tiles = ceil_div(channels, CHANNELS),
                .x_channel = x_channel,
                .x_plane = x_plane,
                .x_row = x_row,
                .x_phase_h = x_phase_h,
                .x_phase_w = x_phase_w,
                .out_h = out_h,
                .out_w = out_w,
                .volume = out_d * out_h * out_w};
  g.tiles = WINDOW_D * WINDOW_H * TAP_TILES * g.c_tiles;
  int64_t begin, end;
  team_share(team, groups * g.k_tiles * g.tiles, &begin, &end);
  if (begin == end) return;
  if (n == 0 || g.volume == 0) clear_tiles(&g, begin, end);
  Places p;
  for (p.image = 0; p.image < n; p.image++)
    for (p.first = 0; p.first < g.volume; p.first += BLOCK) {
      p.count = min_i64(BLOCK, g.volume - p.first);
      run_block(&g, &p, begin, end, p.image == 0 && p.first == 0);
    }
  for (int64_t item = begin; item < end; item++) {
    Tile t = tile_at(&g, item);
    write_tile(&g, &t, g.sums + item * SUMS * LANES);
  }
}
