/* SPDX-License-Identifier: MIT */
/*
 * Direct convolution of quantised tensors, bytes blocked by channels, [N][C / block][H][W][block]:
 *   sum[n, k, oh, ow] = bias[k] + sum over c, r, s of (x[n, c, ih, iw] - zero) w[k, c, r, s],
 *   y = saturate(round(scale[k] * sum) + y_zero),
 * or with FLOATS, in f32: y = epilogue((x_scale * scale[k]) * sum + bias[k] + residual).
 *
 * A tile is OC_VECTORS vectors of output channels by up to COLUMNS columns of an output row. Its sums are i32 in
 * registers over all input channels: a step multiplies DOT channels of a tap, loads OC_VECTORS vectors of weights and
 * broadcasts DOT bytes of input a column. A row is cut into tiles of nearly equal size. For a 1x1 window without stride
 * the plane is one row.
 *
 * The sums begin at `start`, from which the zero point's product with all weights is taken off: with FLOATS in the run,
 * where `start` has the sums of weights. Taps outside the input are skipped. What `start` takes off for their weights
 * is given back where the zero point's products are not zero (POINT).
 *
 * The order of the tiles is that of conv_direct.c: (chunk of oc groups, image, chunk of tiles, oc group, tile), an oc
 * group being OC_VECTORS vectors; each worker takes one contiguous share.
 *
 * Lanes past the last channel are read from x, and multiply weights of zero. They have any value in y.
 */
#include "kernel.h"
#include "requantise.h"
#include "simd/int8.h"
#include "simd/simd.h"

#include "parts/conv_window.h"

/* Channels of a block of x: LANES, or all of them, rounded up to DOT, where they are fewer.
 * legal: 4 8 12 16 */
enum { IN_BLOCK = 4 };
/* Steps of the last block of x, if they are fewer; 0: it is full.
 * legal: 0..3 */
enum { STEP_TAIL = 0 };
/* Vectors of output channels of a tile.
 * legal: 1..8 */
enum { OC_VECTORS = 2 };
/* Vectors of the last oc group, if they are fewer; 0: it is full.
 * legal: 0..7 */
enum { OC_TAIL = 0 };
/* Maximum columns of a tile: OC_VECTORS * COLUMNS sums, OC_VECTORS weights and an input are in registers.
 * legal: 1..28 */
enum { COLUMNS = 6 };
/* Steps of a tap unrolled in the inner loop.
 * legal: 1..16 */
enum { UNROLL = 2 };
/* 1: an oc group reads only the input blocks of its own groups; 0: all.
 * legal: 0 1 */
enum { GROUPED = 0 };
/* x is of i8, else of u8.
 * legal: 0 1 */
enum { SIGNED_X = 0 };
/* y and the residual are of i8, else of u8.
 * legal: 0 1 */
enum { SIGNED_Y = 0 };
/* What is known of the weights: DOT_ANY or DOT_PAIRS of int8.h.
 * legal: 0 1 */
enum { FORM = 0 };
/* 0: products of the zero point are zero.
 * legal: 0 1 */
enum { POINT = 0 };
/* 1: y is bounded before it is rounded: what it rounds to may exceed i32.
 * legal: 0 1 */
enum { BOUNDS = 0 };
/* What becomes of y: nothing; or it is taken to another scale, by factors or divided (requantise.h).
 * legal: 0..2 */
enum { STEP = 0 };
/* 1: STEP, or with FLOATS the kernel, adds residual, of y's shape.
 * legal: 0 1 */
enum { RESIDUAL = 0 };
/* 1: y and the residual are of f32, and x's scale and zero point are known in the run only.
 * legal: 0 1 */
enum { FLOATS = 0 };
/* 1: y has a bias, of f32.
 * legal: 0 1 */
enum { BIAS = 0 };

/* 1: two columns are multiplied by two blocks at once (parts/conv_int8_tiles.h). IN_BLOCK is DOT.
 * legal: 0 1 */
enum { BY_TWO = 0 };

/* 1: OUT_W is known only at run time, as IN_W may be. Tiles have COLUMNS columns, and the last of a row the rest: what
 * it lacks is masked. legal: 0 1 */
enum { ANY_WIDTH = 0 };

enum {
  /* Tiles of a row: the first WIDE_TILES have WIDE columns, the others one fewer. */
  ROW_TILES = (OUT_W + COLUMNS - 1) / COLUMNS,
  WIDE = (OUT_W + ROW_TILES - 1) / ROW_TILES,
  WIDE_TILES = OUT_W - ROW_TILES * (WIDE - 1),
  TILES = OUT_H * ROW_TILES,
  /* Does every tap of every output lie in the input's columns? */
  INSIDE = PAD_LEFT == 0 && (OUT_W - 1) * STRIDE_W + (WINDOW_W - 1) * DILATION_W < IN_W,
  OUT_PLANE = OUT_H * OUT_W * LANES,
  STEPS = IN_BLOCK / DOT,             /* of a block of x */
  TAP = IN_BLOCK * LANES,             /* weights of a tap for a block of x and a vector of output channels */
  WINDOW = WINDOW_H * WINDOW_W * TAP, /* of all taps */
  LINE = 64,                          /* bytes of a cache line */
  SIZE = FLOATS ? 4 : 1               /* bytes of an element of y */
};

/* hook: with FLOATS maps an element of the result; x and the result are one vector of channels. */
static inline vec epilogue(vec x) { return x; }

typedef struct Conv {
  const uint8_t *x, *residual;
  const int8_t *w;
  const int32_t *start;
  const float *scale, *bias;
  uint8_t *y;
  Finish finish;
  float x_scale;        /* with FLOATS */
  int32_t offset;       /* the product of a weight of 1 with the zero point, to be added */
  const int32_t *taps;  /* [tap][tap_channels]: the sums of weights over the input's channels */
  int64_t tap_channels; /* output channels, in whole vectors */
  int64_t n, x_image, residual_image, y_image;
  int64_t kernels, group_channels, group_kernels; /* of all; of a group of the convolution */
  int64_t in_blocks, span;                        /* blocks of x; maximum that an oc group has weights for */
  int64_t oc_groups, group_chunk, tile_chunk;     /* the order */
} Conv;

/* Tiles begin .. end of an oc group and image. */
typedef struct Run {
  int64_t image, oc_group, begin, end;
} Run;

/* Blocks of x. */
typedef struct Blocks {
  int64_t begin, end;
} Blocks;

/* A tile: the addresses of its data, and its taps inside the input. */
typedef struct Place {
  int vectors, columns;
  int64_t first_row, end_row; /* taps that lie in the input's rows */
  const uint8_t *x; /* input of the first column's first tap, even if that is in the padding, in the first block */
  const int8_t *w;
  const int8_t *ahead; /* a part of the next oc group's weights */
  int64_t ahead_lines; /* of it, for each block of x */
  const int32_t *start, *taps;
  const float *scale, *bias;
  const uint8_t *residual;
  uint8_t *y;                /* of the tile's first vector of output channels; residual is, too */
  uint32_t inside[WINDOW_W]; /* one bit for each column: its tap lies in the input */
  bool whole;                /* all do */
} Place;

/* ---- a tile ---- */

/* One tap of one block: `steps` steps for the columns in `inside`, or all. */
SIMD_FUNCTION void multiply(vint sums[OC_VECTORS][COLUMNS], const uint8_t *x, const int8_t *w, int64_t steps,
                            int vectors, int columns, bool all, uint32_t inside) {
#pragma clang loop unroll_count(UNROLL)
  for (int64_t k = 0; k < steps; k++) {
    vint weight[OC_VECTORS];
#pragma clang loop unroll(full)
    for (int j = 0; j < vectors; j++) weight[j] = vdot_load(w + (k * vectors + j) * LANES * DOT);
#pragma clang loop unroll(full)
    for (int m = 0; m < columns; m++) {
      if (!all && !(inside >> m & 1)) continue;
      vint in = vdot_broadcast(x + m * STRIDE_W * IN_BLOCK + k * DOT, SIGNED_X);
#pragma clang loop unroll(full)
      for (int j = 0; j < vectors; j++) sums[j][m] = vdot(sums[j][m], in, weight[j], FORM);
    }
  }
}

/* The taps of a row of the window one by one: some columns' may lie outside the input. */
SIMD_FUNCTION void taps_of_row(vint sums[OC_VECTORS][COLUMNS], const Place *p, const uint8_t *x, const int8_t *w,
                               int64_t steps, int vectors, int columns) {
  const uint32_t all = (1u << columns) - 1;
  for (int64_t s = 0; s < WINDOW_W; s++) {
    const uint8_t *in = x + s * DILATION_W * IN_BLOCK;
    const int8_t *weights = w + s * vectors * TAP;
    uint32_t inside = INSIDE && !ANY_WIDTH ? all : p->inside[s];
    if (inside == all)
      multiply(sums, in, weights, steps, vectors, columns, true, all);
    else if (inside)
      multiply(sums, in, weights, steps, vectors, columns, false, inside);
  }
}

/* All taps of one block. Those of a row of the window that lie in the input, whose channels are all multiplied, follow
 * each other, as their weights do. */
SIMD_FUNCTION void block(vint sums[OC_VECTORS][COLUMNS], const Place *p, const uint8_t *x, const int8_t *w,
                         int64_t steps, int vectors, int columns) {
  const bool joined = DILATION_W == 1 && steps == STEPS;
  for (int64_t r = p->first_row; r < p->end_row; r++) {
    const uint8_t *in = x + r * DILATION_H * IN_W * IN_BLOCK;
    const int8_t *weights = w + r * WINDOW_W * vectors * TAP;
    if (joined && p->whole && !(ANY_WIDTH && p->columns < columns))
      multiply(sums, in, weights, WINDOW_W * STEPS, vectors, columns, true, 0);
    else
      taps_of_row(sums, p, in, weights, steps, vectors, columns);
  }
}

#include "parts/conv_int8_tiles.h"

/* The columns of tap s in row r of the window that lie in the input. */
SIMD_FUNCTION uint32_t inside_of(const Place *p, int64_t r, int64_t s, uint32_t all) {
  if (r < p->first_row || r >= p->end_row) return 0;
  return INSIDE && !ANY_WIDTH ? all : p->inside[s];
}

/* With POINT: gives back what the sums' beginning takes off for the weights of taps outside the input. */
SIMD_FUNCTION void give_back(vint sums[OC_VECTORS][COLUMNS], const Conv *c, const Place *p, int vectors, int columns) {
  const uint32_t all = (1u << columns) - 1;
  const int32_t *tap = p->taps;
  for (int64_t r = 0; r < WINDOW_H; r++) {
    for (int64_t s = 0; s < WINDOW_W; s++, tap += c->tap_channels) {
      uint32_t inside = inside_of(p, r, s, all);
      for (int j = 0; j < vectors && inside != all; j++) {
        vint taken = vint_mul(vint_load(tap + j * LANES), vint_set(c->offset));
#pragma clang loop unroll(full)
        for (int m = 0; m < columns; m++)
          if (!(inside >> m & 1)) sums[j][m] = vint_sub(sums[j][m], taken);
      }
    }
  }
}

SIMD_FUNCTION void begin_sums(vint sums[OC_VECTORS][COLUMNS], const Conv *c, const Place *p, int vectors, int columns) {
#pragma clang loop unroll(full)
  for (int j = 0; j < vectors; j++) {
    vint start = vint_load(p->start + j * LANES);
    if (FLOATS) start = vint_mul(start, vint_set(c->offset));
#pragma clang loop unroll(full)
    for (int m = 0; m < columns; m++) {
      sums[j][m] = start;
      bool is_prefetched = RESIDUAL && m * LANES * SIZE % LINE == 0 && !(ANY_WIDTH && m >= p->columns);
      if (is_prefetched) vprefetch(p->residual + ((int64_t)j * OUT_PLANE + m * LANES) * SIZE);
    }
  }
  if (POINT && !(p->whole && p->first_row == 0 && p->end_row == WINDOW_H)) give_back(sums, c, p, vectors, columns);
}

SIMD_FUNCTION void end_in_floats(vint sums[OC_VECTORS][COLUMNS], const Conv *c, const Place *p, int vectors,
                                 int columns) {
#pragma clang loop unroll(full)
  for (int j = 0; j < vectors; j++) {
    vec scale = vmul(vset(c->x_scale), vload(p->scale + j * LANES));
#pragma clang loop unroll(full)
    for (int m = 0; m < columns; m++) {
      if (ANY_WIDTH && m >= p->columns) continue;
      int64_t at = ((int64_t)j * OUT_PLANE + m * LANES) * SIZE;
      vec y = vmul(vint_to_float(sums[j][m]), scale);
      if (BIAS) y = vadd(y, vload(p->bias + j * LANES));
      if (RESIDUAL) y = vadd(y, vload((const float *)(p->residual + at)));
      vstore((float *)(p->y + at), epilogue(y));
    }
  }
}

SIMD_FUNCTION void end_sums(vint sums[OC_VECTORS][COLUMNS], const Conv *c, const Place *p, int vectors, int columns) {
  const Finish f = c->finish; /* bytes that are stored may be anything in memory */
#pragma clang loop unroll(full)
  for (int j = 0; j < vectors; j++) {
    vec scale = vload(p->scale + j * LANES), scaled[COLUMNS];
#pragma clang loop unroll(full)
    for (int m = 0; m < columns; m++) scaled[m] = vmul(vint_to_float(sums[j][m]), scale);
#pragma clang loop unroll(full)
    for (int m = 0; m < columns; m++) {
      const bool by_four = !ANY_WIDTH && m / 4 * 4 + 4 <= columns;
      int64_t at = (int64_t)j * OUT_PLANE + m * LANES;
      if ((by_four && m % 4) || (ANY_WIDTH && m >= p->columns)) continue;
      requantise(&scaled[m], by_four ? 4 : 1, RESIDUAL ? p->residual + at : NULL, p->y + at, STEP, BOUNDS, SIGNED_Y,
                 &f);
    }
  }
}

SIMD_FUNCTION void tile(const Conv *c, const Place *p, Blocks blocks, int vectors, int columns) {
  const int64_t full = STEP_TAIL > 0 ? min_i64(blocks.end, c->in_blocks - 1) : blocks.end;
  const uint8_t *x = p->x;
  const int8_t *w = p->w, *ahead = p->ahead;
  vint sums[OC_VECTORS][COLUMNS];
  begin_sums(sums, c, p, vectors, columns);
  if (BY_TWO)
    blocks_by_two(sums, p, x, w, ahead, full - blocks.begin, vectors, columns);
  else
    for (int64_t b = blocks.begin; b < full; b++, x += IN_H * IN_W * IN_BLOCK, w += vectors * WINDOW) {
      for (int64_t i = 0; i < p->ahead_lines; i++, ahead += LINE) prefetch_later(ahead);
      block(sums, p, x, w, STEPS, vectors, columns);
    }
  if (STEP_TAIL > 0 && full < blocks.end) block(sums, p, x, w, STEP_TAIL, vectors, columns);
  if (FLOATS)
    end_in_floats(sums, c, p, vectors, columns);
  else
    end_sums(sums, c, p, vectors, columns);
}

/* The last tile of a row may have fewer columns; of half as many at most, fewer are in registers. */
SIMD_FUNCTION void tile_of_any_width(const Conv *c, const Place *p, Blocks blocks, int vectors) {
  if (COLUMNS == 1 || p->columns > COLUMNS / 2)
    tile(c, p, blocks, vectors, COLUMNS);
  else
    tile(c, p, blocks, vectors, COLUMNS / 2);
}

SIMD_FUNCTION void tile_of(const Conv *c, const Place *p, Blocks blocks, int vectors) {
  if (ANY_WIDTH)
    tile_of_any_width(c, p, blocks, vectors);
  else if (WIDE_TILES == ROW_TILES || p->columns == WIDE)
    tile(c, p, blocks, vectors, WIDE);
  else
    tile(c, p, blocks, vectors, WIDE - 1);
}

/* Not inlined: inside the loop over tiles, clang would spill sums to keep the loop's variables. */
static __attribute__((noinline)) void any_tile(const Conv *c, const Place *p, Blocks blocks) {
  if (OC_TAIL > 0 && p->vectors == OC_TAIL)
    tile_of(c, p, blocks, OC_TAIL);
  else
    tile_of(c, p, blocks, OC_VECTORS);
}

/* ---- addresses of a tile ---- */

/* The first column of a row's tile; OUT_W for the one past the last. */
static int64_t first_column(int64_t row_tile) {
  if (ANY_WIDTH) return min_i64(row_tile * COLUMNS, OUT_W);
  return row_tile * WIDE - max_i64(0, row_tile - WIDE_TILES);
}

/* The columns of a tile whose tap s lies in the input. left: the input column of its first column's first tap. */
static uint32_t columns_inside(int64_t left, int64_t s, int64_t columns) {
  int64_t before = -left - s * DILATION_W, past = before + IN_W; /* columns m with before <= m * STRIDE_W < past */
  int64_t first = before > 0 ? min_i64(ceil_div(before, STRIDE_W), columns) : 0;
  int64_t end = past > 0 ? min_i64(ceil_div(past, STRIDE_W), columns) : 0;
  return first < end ? (1u << end) - (1u << first) : 0;
}

/* Weights of an oc group before the last. */
static int64_t group_weights(const Conv *c) { return c->span * OC_VECTORS * WINDOW; }

/* Each tile of a run prefetches a part of the next oc group's weights. */
static void look_ahead(const Conv *c, const Run *run, int64_t t, Place *p) {
  int64_t tiles = run->end - run->begin;
  p->ahead_lines = ceil_div(ceil_div(OC_VECTORS * WINDOW, LINE), tiles);
  p->ahead = c->w + (run->oc_group + 1) * group_weights(c) + (t - run->begin) * c->span * p->ahead_lines * LINE;
}

/* Tile t of a run. */
static Place place_of(const Conv *c, const Run *run, int64_t t, Blocks blocks) {
  int64_t row = t / ROW_TILES, column = first_column(t % ROW_TILES);
  int64_t top = row * STRIDE_H - PAD_TOP, left = column * STRIDE_W - PAD_LEFT;
  int64_t vector = run->oc_group * OC_VECTORS;
  int64_t out = vector * OUT_PLANE + (row * OUT_W + column) * LANES;
  Place p = {.vectors = OC_TAIL > 0 && run->oc_group == c->oc_groups - 1 ? OC_TAIL : OC_VECTORS,
             .columns = (int)(first_column(t % ROW_TILES + 1) - column),
             .first_row = top < 0 ? min_i64(WINDOW_H, ceil_div(-top, DILATION_H)) : 0,
             .end_row = top < IN_H ? min_i64(WINDOW_H, ceil_div(IN_H - top, DILATION_H)) : 0,
             .w = c->w + run->oc_group * group_weights(c),
             .start = c->start + vector * LANES,
             .taps = POINT ? c->taps + vector * LANES : NULL,
             .scale = c->scale + vector * LANES,
             .bias = BIAS ? c->bias + vector * LANES : NULL,
             .y = c->y + (run->image * c->y_image + out) * SIZE};
  p.x = c->x + run->image * c->x_image + (top * IN_W + left + blocks.begin * IN_H * IN_W) * IN_BLOCK;
  p.residual = RESIDUAL ? c->residual + (run->image * c->residual_image + out) * SIZE : NULL;
  p.whole = left >= 0 && left + (p.columns - 1) * STRIDE_W + (WINDOW_W - 1) * DILATION_W < IN_W;
  for (int64_t s = 0; (ANY_WIDTH || !INSIDE) && s < WINDOW_W; s++) p.inside[s] = columns_inside(left, s, p.columns);
  look_ahead(c, run, t, &p);
  return p;
}

/* ---- the order ---- */

/* The blocks of x that an oc group reads: those of every group of the convolution that it has a part of. */
static Blocks blocks_of(const Conv *c, int64_t oc_group) {
  if (!GROUPED) return (Blocks){.begin = 0, .end = c->in_blocks};
  int64_t first = oc_group * OC_VECTORS * LANES, last = min_i64(first + OC_VECTORS * LANES, c->kernels) - 1;
  return (Blocks){.begin = first / c->group_kernels * c->group_channels / IN_BLOCK,
                  .end = ceil_div((last / c->group_kernels + 1) * c->group_channels, IN_BLOCK)};
}

static void run_tiles(const Conv *c, const Run *run) {
  Blocks blocks = blocks_of(c, run->oc_group);
  for (int64_t t = run->begin; t < run->end; t++) {
    Place p = place_of(c, run, t, blocks);
    any_tile(c, &p, blocks);
  }
}

/* The run that begins at item `item` of the order, and ends with its chunk of tiles or at item `end`. */
static Run run_at(const Conv *c, int64_t item, int64_t end) {
  int64_t in_groups = c->group_chunk * c->n * TILES, first_group = item / in_groups * c->group_chunk;
  int64_t groups = min_i64(c->group_chunk, c->oc_groups - first_group), rest = item % in_groups;
  Run run = {.image = rest / (groups * TILES)};
  rest %= groups * TILES;
  int64_t chunk = rest / (groups * c->tile_chunk) * c->tile_chunk;
  rest -= chunk * groups;
  int64_t tiles = min_i64(c->tile_chunk, TILES - chunk);
  run.oc_group = first_group + rest / tiles;
  run.begin = chunk + rest % tiles;
  run.end = min_i64(chunk + tiles, run.begin + end - item);
  return run;
}

/* With FLOATS: what the run knows of x. */
static void take_x(Conv *c, float scale, uint8_t zero) {
  c->x_scale = scale;
  c->offset = -vdot_zero(SIGNED_X ? (int8_t)zero : zero, SIGNED_X);
}

/* x: [n][C / IN_BLOCK][IN_H][IN_W][IN_BLOCK], y and residual: [n][K / LANES][OUT_H][OUT_W][LANES], images x_image,
 * y_image and residual_image elements apart. w: [oc group][span][R][S][IN_BLOCK / DOT][vector of the
 * group][LANES][DOT], zero where an input and an output channel are of different groups. start, scale: whole blocks.
 * x_zero: as a number of x. taps: [R * S][whole blocks], with POINT. finish: the fields of Finish, in order. With
 * FLOATS bias is as scale, or NULL; x_scale and x_point, its zero point, are of one element, which NULL says to be 0.
 * group_chunk: oc groups of a chunk; tile_chunk: tiles. */
static void conv_direct_int8(const Team *team, const uint8_t *x, const int8_t *w, const int32_t *start,
                             const int32_t *taps, const float *scale, const float *bias, const float *x_scale,
                             const uint8_t *x_point, const uint8_t *residual, uint8_t *y, const float *finish,
                             int64_t n, int64_t x_image, int64_t residual_image, int64_t y_image, int64_t x_zero,
                             int64_t channels, int64_t kernels, int64_t group_channels, int64_t group_kernels,
                             int64_t span, int64_t group_chunk, int64_t tile_chunk) {
  Conv c = {.x = x,
            .w = w,
            .start = start,
            .offset = -vdot_zero((int)x_zero, SIGNED_X),
            .taps = taps,
            .tap_channels = ceil_div(kernels, LANES) * LANES,
            .scale = scale,
            .bias = bias,
            .residual = residual,
            .y = y,
            .n = n,
            .x_image = x_image,
            .residual_image = residual_image,
            .y_image = y_image,
            .kernels = kernels,
            .group_channels = group_channels,
            .group_kernels = group_kernels,
            .in_blocks = ceil_div(channels, IN_BLOCK),
            .span = span,
            .oc_groups = ceil_div(kernels, OC_VECTORS * LANES)};
  c.group_chunk = min_i64(group_chunk, c.oc_groups);
  c.tile_chunk = min_i64(tile_chunk, TILES);
  if (!FLOATS) c.finish = finish_of(finish);
  if (FLOATS) take_x(&c, *x_scale, x_point ? *x_point : 0);
  int64_t item, end;
  team_share(team, n * c.oc_groups * TILES, &item, &end);
  while (item < end) {
    Run run = run_at(&c, item, end);
    run_tiles(&c, &run);
    item += run.end - run.begin;
  }
}
