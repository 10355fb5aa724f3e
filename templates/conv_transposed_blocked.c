/* SPDX-License-Identifier: MIT */
/*
 * Transposed convolution of tensors blocked by channels: y[n, k, oh, ow] = epilogue(bias[k] + sum over c, r, s of
 * x[n, c, ih, iw] w[c, k, r, s], where ih UP_H + r dilation = oh + PAD_TOP, and likewise for columns).
 *
 * Outputs of one row modulo UP_H and one column modulo UP_W are a phase. All of them use the same points of the window,
 * the phase's taps, and neighbours among them read neighbouring inputs: so a phase is a convolution without stride,
 * which is computed as in conv_direct.c, in the same tiles (Shi et al., Is the deconvolution layer the same as a
 * convolutional layer?, 2016). Each phase has its weights together. Nothing is multiplied by inserted zeros, and every
 * output is written once.
 *
 * Along an axis, let g be the greatest common divisor of stride and dilation. Outputs that g does not divide, counted
 * before cropping, have no taps. Output o has the points o / g * INVERSE modulo PERIOD of the window, PERIOD being
 * UP / g: the first is less than PERIOD, and each next one PERIOD further. From one to the next the input goes back by
 * DILATION, which is dilation / g. Weights are in the input's order, the last point first.
 *
 * All phases are planes of PHASE_H x PHASE_W pixels, or of one row or column fewer. A tile of the order is at one place
 * of each: (chunk of oc groups, image, chunk of tiles, oc group, tile), an oc group being OC_VECTORS vectors of output
 * channels. So all tiles are as much work, whatever taps each phase has. Each worker takes one contiguous share; in it,
 * the phases take turns after so many tiles that input and output stay in cache.
 *
 * Lanes past the last channel have any value in y. They are not read from x, but for these lanes with DEPTHWISE.
 */
#include "kernel.h"
#include "simd/math.h"
#include "simd/simd.h"

/* R.
 * legal: 1..65536 */
enum { WINDOW_H = 4 };
/* S.
 * legal: 1..65536 */
enum { WINDOW_W = 4 };
/* Rows of the output from an input row to the next: the stride.
 * legal: 1..65536 */
enum { UP_H = 2 };
/* legal: 1..65536 */
enum { UP_W = 2 };
/* Rows of the window from a tap of a phase to the next.
 * legal: 1..65536 */
enum { PERIOD_H = 2 };
/* legal: 1..65536 */
enum { PERIOD_W = 2 };
/* Rows of the input between them.
 * legal: 1..65536 */
enum { DILATION_H = 1 };
/* legal: 1..65536 */
enum { DILATION_W = 1 };
/* DILATION_H * INVERSE_H is 1 modulo PERIOD_H.
 * legal: 0..65535 */
enum { INVERSE_H = 1 };
/* legal: 0..65535 */
enum { INVERSE_W = 1 };
/* legal: 1..268435456 */
enum { IN_H = 5 };
/* legal: 1..268435456 */
enum { IN_W = 5 };
/* legal: 1..268435456 */
enum { OUT_H = 10 };
/* legal: 1..268435456 */
enum { OUT_W = 10 };
/* Rows cropped before the output.
 * legal: 0..1048576 */
enum { PAD_TOP = 1 };
/* Columns cropped before the output.
 * legal: 0..1048576 */
enum { PAD_LEFT = 1 };
/* Channels of a block of x: LANES, 2 * LANES, or all of them where they are fewer.
 * legal: 1..32 */
enum { IN_BLOCK = 16 };
/* Channels of the last block of x, if they are fewer; 0: it is full.
 * legal: 0..31 */
enum { CHANNEL_TAIL = 0 };
/* Vectors of a block of y.
 * legal: 1 2 */
enum { OUT_VECTORS = 1 };
/* Vectors of output channels of a tile.
 * legal: 1..8 */
enum { OC_VECTORS = 2 };
/* Vectors of the last oc group, if they are fewer; 0: it is full.
 * legal: 0..7 */
enum { OC_TAIL = 0 };
/* Maximum columns of a tile: OC_VECTORS * COLUMNS sums, OC_VECTORS weights and an input are in registers.
 * legal: 1..28 */
enum { COLUMNS = 5 };
/* Input channels of a tap unrolled in the inner loop.
 * legal: 1..16 */
enum { UNROLL = 2 };
/* 1: for a target whose multiply-adds take a lane of a vector as an operand.
 * legal: 0 1 */
enum { BY_LANES = 0 };
/* 1: an oc group reads only the input blocks of its own groups; 0: all.
 * legal: 0 1 */
enum { GROUPED = 0 };
/* 1: each channel is a group, of one output: IN_BLOCK is LANES, OC_VECTORS is 1, and weights are [R][S][LANES].
 * legal: 0 1 */
enum { DEPTHWISE = 0 };
/* legal: 0 1 */
enum { BIAS = 1 };
/* 1: OUT_W is known only at run time, as IN_W may be. Tiles have COLUMNS columns, and the last of a row the rest: what
 * it lacks is masked.
 * legal: 0 1 */
enum { ANY_WIDTH = 0 };

enum {
  STRIDE_W = 1, /* of a phase's convolution */
  PHASE_H = (OUT_H + UP_H - 1) / UP_H,
  PHASE_W = (OUT_W + UP_W - 1) / UP_W,
  /* Tiles of a phase's row: the first of them have WIDE columns, the others one fewer. */
  ROW_TILES = (PHASE_W + COLUMNS - 1) / COLUMNS,
  WIDE = (PHASE_W + ROW_TILES - 1) / ROW_TILES,
  TILES = PHASE_H * ROW_TILES,
  /* Have all tiles of all phases WIDE columns? */
  EVEN = PHASE_W == ROW_TILES * WIDE && OUT_W % UP_W == 0,
  TAPS_W = (WINDOW_W + PERIOD_W - 1) / PERIOD_W, /* the most of a phase */
  /* Does each output have one tap at most, in the input's columns? */
  INSIDE = WINDOW_W <= UP_W && PERIOD_W == UP_W && DILATION_W == 1 && PAD_LEFT + OUT_W <= IN_W * UP_W,
  OUT_BLOCK = OUT_VECTORS * LANES,
  OUT_PLANE = OUT_H * OUT_W * OUT_BLOCK,
  TAP = DEPTHWISE ? LANES : IN_BLOCK * LANES /* weights of a tap for a block of x and a vector of output channels */
};

typedef struct Conv {
  const float *x, *w, *bias;
  float *y;
  int64_t n, x_image, y_image;
  int64_t kernels, group_channels, group_kernels; /* of all; of a group of the convolution */
  int64_t in_blocks, span;                        /* blocks of x; maximum that an oc group has weights for */
  int64_t oc_groups, group_chunk, tile_chunk;     /* the order */
  int64_t turn;                                   /* tiles until the next phase's turn */
} Conv;

/* Tiles begin .. end of an oc group and image. */
typedef struct Run {
  int64_t image, oc_group, begin, end;
  int64_t chunk; /* the first tile of the chunk that they belong to */
} Run;

/* Blocks of x. */
typedef struct Blocks {
  int64_t begin, end;
} Blocks;

/* A phase's taps along an axis. */
typedef struct Taps {
  int64_t count;
  int64_t before; /* points of the window whose weights are before its own */
  int64_t input;  /* of the first tap of the phase's first output, even if that is in the padding */
} Taps;

typedef struct Phase {
  int64_t row, column; /* of the first output */
  Taps h, w;
} Phase;

/* A tile: the addresses of its data, and its taps inside the input. */
typedef struct Place {
  int vectors, columns;
  int64_t first_row, end_row, taps_w; /* taps that lie in the input's rows; of a row */
  const float *x;                     /* input of the first column's first tap, in the first block */
  const float *w;                     /* of the first block */
  int64_t in_plane, window;           /* to the next block of x; to its weights, of one vector */
  const float *bias;
  float *y;                /* of the block that has the tile's first vector of output channels */
  int64_t odd;             /* position of the tile's first vector in its block */
  uint32_t inside[TAPS_W]; /* one bit for each column: its tap lies in the input */
} Place;

/* hook: maps an element of the result; x and the result are one vector of channels. */
static inline vec epilogue(vec x) { return x; }

/* ---- a tile ---- */

#include "parts/conv_products.h"

/* DEPTHWISE: one tap of a vector of channels, for the columns in `inside`, or all. */
SIMD_FUNCTION void multiply_channels(vec sums[OC_VECTORS][COLUMNS], const float *x, const float *w, int columns,
                                     bool all, uint32_t inside) {
  vec weight = vload(w);
#pragma clang loop unroll(full)
  for (int m = 0; m < columns; m++)
    if (all || inside >> m & 1) sums[0][m] = vfma(sums[0][m], vload(x + m * IN_BLOCK), weight);
}

/* One tap of one block. */
SIMD_FUNCTION void tap(vec sums[OC_VECTORS][COLUMNS], const float *x, const float *w, int64_t depth, int vectors,
                       int columns, uint32_t inside) {
  const uint32_t all = (1u << columns) - 1;
  const bool whole = INSIDE && !ANY_WIDTH;
  if (DEPTHWISE && (whole || inside == all))
    multiply_channels(sums, x, w, columns, true, all);
  else if (DEPTHWISE)
    multiply_channels(sums, x, w, columns, false, inside);
  else if (whole && BY_LANES)
    multiply_by_lanes(sums, x, w, depth, vectors, columns);
  else if (whole)
    multiply(sums, x, w, depth, vectors, columns, true, all);
  else
    multiply_any(sums, x, w, depth, vectors, columns, inside);
}

/* All taps of one block. */
SIMD_FUNCTION void block(vec sums[OC_VECTORS][COLUMNS], const Place *p, const float *x, const float *w, int64_t depth,
                         int vectors, int columns) {
  for (int64_t r = p->first_row; r < p->end_row; r++) {
    for (int64_t s = 0; s < p->taps_w; s++) {
      const float *in = x + (r * DILATION_H * IN_W + s * DILATION_W) * IN_BLOCK;
      tap(sums, in, w + (r * p->taps_w + s) * vectors * TAP, depth, vectors, columns, p->inside[s]);
    }
  }
}

/* Offset of the tile's j-th vector in y. */
SIMD_FUNCTION int64_t out_vector(const Place *p, int j) {
  int64_t vector = OC_VECTORS % OUT_VECTORS ? p->odd + j : j;
  return vector / OUT_VECTORS * OUT_PLANE + vector % OUT_VECTORS * LANES;
}

SIMD_FUNCTION void begin_sums(vec sums[OC_VECTORS][COLUMNS], const Place *p, int vectors, int columns) {
#pragma clang loop unroll(full)
  for (int j = 0; j < vectors; j++) {
    vec bias = BIAS ? vload(p->bias + j * LANES) : vzero();
#pragma clang loop unroll(full)
    for (int m = 0; m < columns; m++) sums[j][m] = bias;
  }
}

SIMD_FUNCTION void end_sums(vec sums[OC_VECTORS][COLUMNS], const Place *p, int vectors, int columns) {
#pragma clang loop unroll(full)
  for (int j = 0; j < vectors; j++) {
#pragma clang loop unroll(full)
    for (int m = 0; m < columns; m++) {
      if (ANY_WIDTH && m >= p->columns) continue;
      vstore(p->y + out_vector(p, j) + m * UP_W * OUT_BLOCK, epilogue(sums[j][m]));
    }
  }
}

SIMD_FUNCTION void tile(const Conv *c, const Place *p, Blocks blocks, int vectors, int columns) {
  const int64_t full = CHANNEL_TAIL > 0 ? min_i64(blocks.end, c->in_blocks - 1) : blocks.end;
  const float *x = p->x, *w = p->w;
  vec sums[OC_VECTORS][COLUMNS];
  begin_sums(sums, p, vectors, columns);
  for (int64_t b = blocks.begin; b < full; b++, x += p->in_plane, w += vectors * p->window)
    block(sums, p, x, w, IN_BLOCK, vectors, columns);
  if (CHANNEL_TAIL > 0 && full < blocks.end) block(sums, p, x, w, CHANNEL_TAIL, vectors, columns);
  end_sums(sums, p, vectors, columns);
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
  else if (EVEN || p->columns == WIDE)
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

/* ---- phases ---- */

/* Of outputs `o`, o + up, ..., counted before cropping. */
static Taps taps_of(int64_t o, int64_t window, int64_t up, int64_t period, int64_t dilation, int64_t inverse) {
  int64_t common = up / period, first = o / common * inverse % period;
  if (o % common || first >= window) return (Taps){.count = 0};
  int64_t count = ceil_div(window - first, period);
  return (Taps){.count = count,
                .before = first * (window / period) + min_i64(first, window % period),
                .input = (o - first * dilation * common) / up - (count - 1) * dilation};
}

static Taps taps_of_row(int64_t row) { return taps_of(row + PAD_TOP, WINDOW_H, UP_H, PERIOD_H, DILATION_H, INVERSE_H); }

static Taps taps_of_column(int64_t column) {
  return taps_of(column + PAD_LEFT, WINDOW_W, UP_W, PERIOD_W, DILATION_W, INVERSE_W);
}

/* ---- addresses of a tile ---- */

/* The first column of a tile among a phase's; past the last tile, how many the phase has. */
static int64_t first_column(const Phase *phase, int64_t row_tile) {
  int64_t columns = (OUT_W - phase->column + UP_W - 1) / UP_W;
  if (ANY_WIDTH) return min_i64(row_tile * COLUMNS, columns);
  return row_tile * WIDE - max_i64(0, row_tile - (columns - ROW_TILES * (WIDE - 1)));
}

/* The columns of a tile whose tap s lies in the input. left: the input column of its first column's first tap. */
static uint32_t columns_inside(int64_t left, int64_t s, int64_t columns) {
  int64_t before = -left - s * DILATION_W, past = before + IN_W; /* columns m with before <= m < past */
  int64_t first = min_i64(max_i64(before, 0), columns), end = min_i64(max_i64(past, 0), columns);
  return first < end ? (1u << end) - (1u << first) : 0;
}

/* Weights of a point of the window for all output channels. */
static int64_t point_weights(const Conv *c) { return ceil_div(c->kernels, LANES) * c->span * TAP; }

static const float *weights_of(const Conv *c, const Phase *phase, int64_t oc_group) {
  int64_t before = phase->h.before * WINDOW_W + phase->h.count * phase->w.before;
  return c->w + before * point_weights(c) + oc_group * OC_VECTORS * c->span * phase->h.count * phase->w.count * TAP;
}

/* Tile t of a run in a phase, which may have no column there. */
static Place place_of(const Conv *c, const Run *run, const Phase *phase, int64_t t) {
  int64_t line = t / ROW_TILES, column = first_column(phase, t % ROW_TILES);
  int64_t top = phase->h.input + line, left = phase->w.input + column, vector = run->oc_group * OC_VECTORS;
  int64_t pixel = (phase->row + line * UP_H) * OUT_W + phase->column + column * UP_W;
  Place p = {.odd = vector % OUT_VECTORS,
             .vectors = OC_TAIL > 0 && run->oc_group == c->oc_groups - 1 ? OC_TAIL : OC_VECTORS,
             .columns = (int)(first_column(phase, t % ROW_TILES + 1) - column),
             .first_row = top < 0 ? min_i64(phase->h.count, ceil_div(-top, DILATION_H)) : 0,
             .end_row = top < IN_H ? min_i64(phase->h.count, ceil_div(IN_H - top, DILATION_H)) : 0,
             .taps_w = phase->w.count,
             .x = c->x + run->image * c->x_image + (top * IN_W + left) * IN_BLOCK,
             .w = weights_of(c, phase, run->oc_group),
             .in_plane = IN_H * IN_W * IN_BLOCK,
             .window = phase->h.count * phase->w.count * TAP,
             .y = c->y + run->image * c->y_image + vector / OUT_VECTORS * OUT_PLANE + pixel * OUT_BLOCK};
  for (int64_t s = 0; s < p.taps_w; s++) p.inside[s] = columns_inside(left, s, p.columns);
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

/* The oc group's, with zeros past the last channel. */
static void copy_bias(const Conv *c, int64_t oc_group, float *bias) {
  for (int64_t j = 0, k = oc_group * OC_VECTORS * LANES; j < OC_VECTORS; j++, k += LANES) {
    int lanes = (int)min_i64(LANES, max_i64(0, c->kernels - k));
    vstore(bias + j * LANES, lanes ? vload_n(c->bias + k, lanes) : vzero());
  }
}

/* Tiles begin .. end of a run in one phase. */
static void tiles_of_phase(const Conv *c, const Run *run, const Phase *phase, const float *bias, int64_t begin,
                           int64_t end) {
  Blocks blocks = blocks_of(c, run->oc_group);
  int64_t rows = (OUT_H - phase->row + UP_H - 1) / UP_H;
  end = min_i64(end, rows * ROW_TILES);
  for (int64_t t = begin; t < end; t++) {
    Place p = place_of(c, run, phase, t);
    p.x += blocks.begin * p.in_plane;
    p.bias = bias;
    if (p.columns > 0) any_tile(c, &p, blocks);
  }
}

static void run_tiles(const Conv *c, const Run *run) {
  float bias[OC_VECTORS * LANES];
  if (BIAS) copy_bias(c, run->oc_group, bias);
  for (int64_t begin = run->begin; begin < run->end; begin += c->turn) {
    int64_t end = min_i64(run->end, begin + c->turn);
    for (int64_t row = 0; row < min_i64(UP_H, OUT_H); row++) {
      for (int64_t column = 0; column < min_i64(UP_W, OUT_W); column++) {
        Phase phase = {.row = row, .column = column, .h = taps_of_row(row), .w = taps_of_column(column)};
        tiles_of_phase(c, run, &phase, bias, begin, end);
      }
    }
  }
}

#include "parts/conv_order.h"

/* x: [n][C / IN_BLOCK][IN_H][IN_W][IN_BLOCK], y: [n][K / LANES][OUT_H][OUT_W][LANES], images x_image and y_image floats
 * apart. w: of each phase's points of the window, by the first of them, [oc group][span][R][S][IN_BLOCK][vector of the
 * group][LANES], zero where an input and an output channel are of different groups. bias: [K].
 * group_chunk: oc groups of a chunk; tile_chunk: tiles; turn: tiles until the next phase's turn. */
static void conv_transposed_blocked(const Team *team, const float *x, const float *w, const float *bias, float *y,
                                    int64_t n, int64_t x_image, int64_t y_image, int64_t channels, int64_t kernels,
                                    int64_t group_channels, int64_t group_kernels, int64_t span, int64_t group_chunk,
                                    int64_t tile_chunk, int64_t turn) {
  Conv c = {.x = x,
            .w = w,
            .bias = bias,
            .y = y,
            .n = n,
            .x_image = x_image,
            .y_image = y_image,
            .kernels = kernels,
            .group_channels = group_channels,
            .group_kernels = group_kernels,
            .in_blocks = ceil_div(channels, IN_BLOCK),
            .span = span,
            .oc_groups = ceil_div(kernels, OC_VECTORS * LANES),
            .turn = turn};
  c.group_chunk = min_i64(group_chunk, c.oc_groups);
  c.tile_chunk = min_i64(tile_chunk, TILES);
  int64_t item, end;
  team_share(team, n * c.oc_groups * TILES, &item, &end);
  while (item < end) {
    Run run = run_at(&c, item, end);
    run_tiles(&c, &run);
    item += run.end - run.begin;
  }
}
