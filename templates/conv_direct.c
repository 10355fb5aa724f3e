/* SPDX-License-Identifier: MIT */
/*
 * Direct convolution of tensors blocked by channels, [N][C / block][H][W][block]:
 *   y[n, k, oh, ow] = epilogue(bias[k] + sum over c, r, s of x[n, c, ih, iw] w[k, c, r, s] + residual[n, k, oh, ow]).
 *
 * A tile is OC_VECTORS vectors of output channels by up to COLUMNS columns of an output row. Its sums are in registers
 * over all input channels: each input channel of each tap loads OC_VECTORS weights and broadcasts one input a column. A
 * row is cut into tiles of nearly equal size. Nothing is copied: if a tap of a column is outside the input, its bit in
 * a mask is not set, and it is skipped. For a 1x1 window without stride the plane is one row.
 *
 * The order of the tiles is (chunk of oc groups, image, chunk of tiles, oc group, tile), an oc group being OC_VECTORS
 * vectors; each worker takes one contiguous share. With all groups in one chunk the workers split the pixels, and a
 * chunk of tiles has its input in cache for every group; with all tiles in one chunk they split the output channels,
 * and each weight is read once.
 *
 * With RUNS the tiles of a row that are alike are one call: to find the addresses of each takes as long as a tenth of
 * its multiply-adds where input channels are few.
 *
 * With PROLOGUE (batch normalisation and activation of the input, for 1x1 windows) a worker first computes it for all
 * channels of its chunk of tiles, into its own panel, which stays in cache while all oc groups read it.
 *
 * Lanes past the last channel are never read from x, and have any value in y.
 */
#include "kernel.h"
#include "simd/math.h"
#include "simd/simd.h"

#include "parts/conv_window.h"

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
enum { COLUMNS = 14 };
/* Input channels of a tap unrolled in the inner loop.
 * legal: 1..16 */
enum { UNROLL = 2 };
/* 1: for a target whose multiply-adds take a lane of a vector as an operand.
 * legal: 0 1 */
enum { BY_LANES = 0 };
/* 1: an oc group reads only the input blocks of its own groups; 0: all.
 * legal: 0 1 */
enum { GROUPED = 0 };
/* legal: 0 1 */
enum { BIAS = 1 };
/* 1: adds residual, of y's shape, before the epilogue.
 * legal: 0 1 */
enum { RESIDUAL = 0 };
/* 1: x * scale + shift, and the hook `prologue` of it, come first; only under a 1x1 window without stride and padding.
 * legal: 0 1 */
enum { PROLOGUE = 0 };

/* 1: OUT_W is known only at run time, as IN_W may be. Tiles have COLUMNS columns, and the last of a row the rest: what
 * it lacks is masked. legal: 0 1 */
enum { ANY_WIDTH = 0 };

/* 1: tiles of a row that are alike are one call. Not with ANY_WIDTH.
 * legal: 0 1 */
enum { RUNS = 0 };

enum {
  /* Tiles of a row: the first WIDE_TILES have WIDE columns, the others one fewer. */
  ROW_TILES = (OUT_W + COLUMNS - 1) / COLUMNS,
  WIDE = (OUT_W + ROW_TILES - 1) / ROW_TILES,
  WIDE_TILES = OUT_W - ROW_TILES * (WIDE - 1),
  TILES = OUT_H * ROW_TILES,
  /* Does every tap of every output lie in the input's columns? */
  INSIDE = PAD_LEFT == 0 && (OUT_W - 1) * STRIDE_W + (WINDOW_W - 1) * DILATION_W < IN_W,
  OUT_BLOCK = OUT_VECTORS * LANES,
  OUT_PLANE = OUT_H * OUT_W * OUT_BLOCK,
  TAP = IN_BLOCK * LANES,             /* weights of a tap for a block of x and a vector of output channels */
  WINDOW = WINDOW_H * WINDOW_W * TAP, /* of all taps */
  LINE = 16                           /* floats of a cache line */
};

typedef struct Conv {
  const float *x, *w, *bias, *residual, *scale, *shift;
  float *y;
  float *panel; /* this worker's, [in_blocks][panel_columns][IN_BLOCK] */
  int64_t n, x_image, residual_image, y_image;
  int64_t kernels, group_channels, group_kernels; /* of all; of a group of the convolution */
  int64_t in_blocks, span;                        /* blocks of x; maximum that an oc group has weights for */
  int64_t oc_groups, group_chunk, tile_chunk;     /* the order */
  int64_t pass;                                   /* blocks of x in a pass; partial sums are in y */
  int64_t panel_columns;
} Conv;

/* Tiles begin .. end of an oc group and image. */
typedef struct Run {
  int64_t image, oc_group, begin, end;
  int64_t chunk; /* the first tile of the chunk that they belong to */
} Run;

/* Blocks of x of a pass; first, last: of those that the oc group reads. */
typedef struct Pass {
  int64_t begin, end;
  bool first, last;
} Pass;

/* A tile: the addresses of its data, and its taps inside the input. */
typedef struct Place {
  int vectors, columns;
  int64_t first_row, end_row; /* taps that lie in the input's rows */
  const float *x;             /* input of the first column's first tap, even if that is in the padding, in the pass's
                               * first block; that of the next block is in_plane further on */
  int64_t in_plane;
  const float *w;      /* of the pass's first block */
  const float *ahead;  /* a part of the next oc group's weights */
  int64_t ahead_lines; /* of it, for each block of x */
  const float *bias, *residual;
  float *y;                  /* of the block that has the tile's first vector of output channels; residual is, too */
  int64_t odd;               /* position of the tile's first vector in its block */
  uint32_t inside[WINDOW_W]; /* one bit for each column: its tap lies in the input */
} Place;

/* hook: maps an element of the result; x and the result are one vector of channels. */
static inline vec epilogue(vec x) { return x; }

/* hook: maps an element of the input; x and the result are one vector of channels. */
static inline vec prologue(vec x) { return x; }

/* ---- a tile ---- */

#include "parts/conv_products.h"

/* All taps of one block. */
SIMD_FUNCTION void block(vec sums[OC_VECTORS][COLUMNS], const Place *p, const float *x, const float *w, int64_t depth,
                         int vectors, int columns) {
  const uint32_t all = (1u << columns) - 1;
  for (int64_t r = p->first_row; r < p->end_row; r++) {
    for (int64_t s = 0; s < WINDOW_W; s++) {
      const float *in = x + (r * DILATION_H * IN_W + s * DILATION_W) * IN_BLOCK;
      if (RUNS) in = vapart(in); /* or clang would keep what the next taps read again, and spill sums */
      const float *weights = w + (r * WINDOW_W + s) * vectors * TAP;
      if (ANY_WIDTH)
        multiply_any(sums, in, weights, depth, vectors, columns, p->inside[s]);
      else if (BY_LANES && (INSIDE || p->inside[s] == all))
        multiply_by_lanes(sums, in, weights, depth, vectors, columns);
      else if (INSIDE || p->inside[s] == all)
        multiply(sums, in, weights, depth, vectors, columns, true, all);
      else if (p->inside[s])
        multiply(sums, in, weights, depth, vectors, columns, false, p->inside[s]);
    }
  }
}

/* Offset of the tile's j-th vector in y and the residual. */
SIMD_FUNCTION int64_t out_vector(const Place *p, int j) {
  int64_t vector = OC_VECTORS % OUT_VECTORS ? p->odd + j : j;
  return vector / OUT_VECTORS * OUT_PLANE + vector % OUT_VECTORS * LANES;
}

SIMD_FUNCTION void begin_sums(vec sums[OC_VECTORS][COLUMNS], const Place *p, bool first, int vectors, int columns) {
#pragma clang loop unroll(full)
  for (int j = 0; j < vectors; j++) {
    vec bias = BIAS ? vload(p->bias + j * LANES) : vzero();
#pragma clang loop unroll(full)
    for (int m = 0; m < columns; m++) {
      int64_t at = out_vector(p, j) + m * OUT_BLOCK;
      if (ANY_WIDTH && m >= p->columns) {
        sums[j][m] = bias;
        continue;
      }
      if (RESIDUAL) vprefetch(p->residual + at);
      sums[j][m] = first ? bias : vload(p->y + at);
    }
  }
}

SIMD_FUNCTION void end_sums(vec sums[OC_VECTORS][COLUMNS], const Place *p, bool last, int vectors, int columns) {
#pragma clang loop unroll(full)
  for (int j = 0; j < vectors; j++) {
#pragma clang loop unroll(full)
    for (int m = 0; m < columns; m++) {
      int64_t at = out_vector(p, j) + m * OUT_BLOCK;
      if (ANY_WIDTH && m >= p->columns) continue;
      vec sum = sums[j][m];
      if (last && RESIDUAL) sum = vadd(sum, vload(p->residual + at));
      vstore(p->y + at, last ? epilogue(sum) : sum);
    }
  }
}

SIMD_FUNCTION void tile(const Conv *c, const Place *p, const Pass *pass, int vectors, int columns) {
  const int64_t full = CHANNEL_TAIL > 0 ? min_i64(pass->end, c->in_blocks - 1) : pass->end;
  const float *x = p->x, *w = p->w, *ahead = p->ahead;
  vec sums[OC_VECTORS][COLUMNS];
  begin_sums(sums, p, pass->first, vectors, columns);
  for (int64_t b = pass->begin; b < full; b++, x += p->in_plane, w += vectors * WINDOW) {
    for (int64_t i = 0; i < p->ahead_lines; i++, ahead += LINE) prefetch_later(ahead);
    block(sums, p, x, w, IN_BLOCK, vectors, columns);
  }
  if (CHANNEL_TAIL > 0 && full < pass->end) block(sums, p, x, w, CHANNEL_TAIL, vectors, columns);
  end_sums(sums, p, pass->last, vectors, columns);
}

/* The last tile of a row may have fewer columns; of half as many at most, fewer are in registers. */
SIMD_FUNCTION void tile_of_any_width(const Conv *c, const Place *p, const Pass *pass, int vectors) {
  if (COLUMNS == 1 || p->columns > COLUMNS / 2)
    tile(c, p, pass, vectors, COLUMNS);
  else
    tile(c, p, pass, vectors, COLUMNS / 2);
}

SIMD_FUNCTION void tile_of(const Conv *c, const Place *p, const Pass *pass, int vectors) {
  if (ANY_WIDTH)
    tile_of_any_width(c, p, pass, vectors);
  else if (WIDE_TILES == ROW_TILES || p->columns == WIDE)
    tile(c, p, pass, vectors, WIDE);
  else
    tile(c, p, pass, vectors, WIDE - 1);
}

/* Not inlined: inside the loop over tiles, clang would spill sums to keep the loop's variables. */
static __attribute__((noinline)) void any_tile(const Conv *c, const Place *p, const Pass *pass) {
  if (OC_TAIL > 0 && p->vectors == OC_TAIL)
    tile_of(c, p, pass, OC_TAIL);
  else
    tile_of(c, p, pass, OC_VECTORS);
}

/* RUNS: `tiles` tiles, one behind the other in a row. The bias is loaded for each, or clang would keep its vectors, and
 * spill sums. */
SIMD_FUNCTION void row_of(const Conv *c, const Place *first, const Pass *pass, int64_t tiles, int vectors) {
  Place p = *first;
  for (int64_t i = 0; i < tiles; i++) {
    if (BIAS) p.bias = vapart(p.bias);
    tile_of(c, &p, pass, vectors);
    p.x += p.columns * STRIDE_W * IN_BLOCK;
    p.ahead += c->span * p.ahead_lines * LINE;
    if (RESIDUAL) p.residual += p.columns * OUT_BLOCK;
    p.y += p.columns * OUT_BLOCK;
  }
}

static __attribute__((noinline)) void any_row(const Conv *c, const Place *first, const Pass *pass, int64_t tiles) {
  if (OC_TAIL > 0 && first->vectors == OC_TAIL)
    row_of(c, first, pass, tiles, OC_TAIL);
  else
    row_of(c, first, pass, tiles, OC_VECTORS);
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

/* All columns of the tile lie in the input. */
static void fill_inside(Place *p) {
  for (int64_t s = 0; s < WINDOW_W; s++) p->inside[s] = (1u << p->columns) - 1;
}

/* Weights of an oc group before the last. */
static int64_t group_weights(const Conv *c) { return c->span * OC_VECTORS * WINDOW; }

/* Each tile of a run prefetches a part of the next oc group's weights. */
static void look_ahead(const Conv *c, const Run *run, int64_t t, int64_t done, Place *p) {
  int64_t tiles = run->end - run->begin;
  p->ahead_lines = ceil_div(ceil_div(OC_VECTORS * WINDOW, LINE), tiles);
  p->ahead =
      c->w + (run->oc_group + 1) * group_weights(c) + ((t - run->begin) * c->span + done) * p->ahead_lines * LINE;
}

/* Tile t of a run in a pass, `done` blocks of the oc group's being done. */
static Place place_of(const Conv *c, const Run *run, int64_t t, const Pass *pass, int64_t done) {
  int64_t row = t / ROW_TILES, column = first_column(t % ROW_TILES);
  int64_t top = row * STRIDE_H - PAD_TOP, left = column * STRIDE_W - PAD_LEFT;
  int64_t vector = run->oc_group * OC_VECTORS;
  int64_t out = vector / OUT_VECTORS * OUT_PLANE + (row * OUT_W + column) * OUT_BLOCK;
  Place p = {.odd = vector % OUT_VECTORS,
             .vectors = OC_TAIL > 0 && run->oc_group == c->oc_groups - 1 ? OC_TAIL : OC_VECTORS,
             .columns = (int)(first_column(t % ROW_TILES + 1) - column),
             .first_row = top < 0 ? min_i64(WINDOW_H, ceil_div(-top, DILATION_H)) : 0,
             .end_row = top < IN_H ? min_i64(WINDOW_H, ceil_div(IN_H - top, DILATION_H)) : 0,
             .in_plane = PROLOGUE ? c->panel_columns * IN_BLOCK : IN_H * IN_W * IN_BLOCK};
  if (PROLOGUE)
    p.x = c->panel + (column - first_column(run->chunk)) * IN_BLOCK;
  else
    p.x = c->x + run->image * c->x_image + (top * IN_W + left) * IN_BLOCK;
  p.x += pass->begin * p.in_plane;
  p.w = c->w + run->oc_group * group_weights(c) + done * p.vectors * WINDOW;
  p.bias = BIAS ? c->bias + run->oc_group * OC_VECTORS * LANES : NULL;
  p.residual = RESIDUAL ? c->residual + run->image * c->residual_image + out : NULL;
  p.y = c->y + run->image * c->y_image + out;
  for (int64_t s = 0; !INSIDE && s < WINDOW_W; s++) p.inside[s] = columns_inside(left, s, p.columns);
  if (ANY_WIDTH && INSIDE) fill_inside(&p);
  look_ahead(c, run, t, done, &p);
  return p;
}

/* ---- the order ---- */

/* The blocks of x that an oc group reads: those of every group of the convolution that it has a part of. */
static Pass blocks_of(const Conv *c, int64_t oc_group) {
  if (!GROUPED) return (Pass){.begin = 0, .end = c->in_blocks};
  int64_t first = oc_group * OC_VECTORS * LANES, last = min_i64(first + OC_VECTORS * LANES, c->kernels) - 1;
  return (Pass){.begin = first / c->group_kernels * c->group_channels / IN_BLOCK,
                .end = ceil_div((last / c->group_kernels + 1) * c->group_channels, IN_BLOCK)};
}

/* Tile t, and those behind it in its row that are as wide; of a tile with taps in the padding, it alone. */
static int64_t tiles_alike(int64_t t, int64_t columns) {
  int64_t row_tile = t % ROW_TILES, alike = (columns == WIDE ? WIDE_TILES : ROW_TILES) - row_tile;
  if (INSIDE) return alike;
  int64_t column = first_column(row_tile), last = IN_W - 1 + PAD_LEFT - (WINDOW_W - 1) * DILATION_W;
  if (column * STRIDE_W < PAD_LEFT || last < 0) return 1;
  return max_i64(1, min_i64(alike, (last / STRIDE_W + 1 - column) / columns));
}

/* RUNS: a run's tiles, in a pass. */
static void run_rows(const Conv *c, const Run *run, const Pass *pass, int64_t done) {
  for (int64_t t = run->begin, tiles; t < run->end; t += tiles) {
    Place p = place_of(c, run, t, pass, done);
    tiles = min_i64(tiles_alike(t, p.columns), run->end - t);
    any_row(c, &p, pass, tiles);
  }
}

static void run_tiles(const Conv *c, const Run *run) {
  Pass all = blocks_of(c, run->oc_group), pass;
  for (pass.begin = all.begin; pass.begin < all.end; pass.begin = pass.end) {
    pass.end = min_i64(all.end, pass.begin + c->pass);
    pass.first = pass.begin == all.begin;
    pass.last = pass.end == all.end;
    if (RUNS)
      run_rows(c, run, &pass, pass.begin - all.begin);
    else
      for (int64_t t = run->begin; t < run->end; t++) {
        Place p = place_of(c, run, t, &pass, pass.begin - all.begin);
        any_tile(c, &p, &pass);
      }
  }
}

SIMD_FUNCTION vec load_block(const float *p) { return IN_BLOCK < LANES ? vload_n(p, IN_BLOCK) : vload(p); }
SIMD_FUNCTION void store_block(float *p, vec v) {
  if (IN_BLOCK < LANES)
    vstore_n(p, v, IN_BLOCK);
  else
    vstore(p, v);
}

/* Fills the panel with the input of tiles `first` to `end`, all channels. */
static void fill_panel(const Conv *c, int64_t image, int64_t first, int64_t end) {
  int64_t begin = first_column(first), columns = first_column(end) - begin;
  for (int64_t b = 0; b < c->in_blocks; b++) {
    const float *x = c->x + image * c->x_image + (b * IN_W + begin) * IN_BLOCK;
    float *to = c->panel + b * c->panel_columns * IN_BLOCK;
    for (int64_t k = 0; k < IN_BLOCK; k += LANES) {
      vec scale = load_block(c->scale + b * IN_BLOCK + k), shift = load_block(c->shift + b * IN_BLOCK + k);
      for (int64_t m = 0; m < columns; m++)
        store_block(to + m * IN_BLOCK + k, prologue(vfma(shift, load_block(x + m * IN_BLOCK + k), scale)));
    }
  }
}

#include "parts/conv_order.h"

/* x: [n][C / IN_BLOCK][IN_H][IN_W][IN_BLOCK], y and residual: [n][K / LANES][OUT_H][OUT_W][LANES], images x_image,
 * y_image and residual_image floats apart. w: [oc group][span][R][S][IN_BLOCK][vector of the group][LANES], zero where
 * an input and an output channel are of different groups. bias, scale, shift: whole blocks.
 * group_chunk: oc groups of a chunk; tile_chunk: tiles; pass: input blocks of a pass.
 * scratch: `panels` of [C / IN_BLOCK][tile_chunk * WIDE][IN_BLOCK], of which each worker takes one; NULL without
 * PROLOGUE. They are distributed over `slots` slots, `slot` floats apart. Workers without one do nothing. */
static void conv_direct(const Team *team, const float *x, const float *w, const float *bias, const float *residual,
                        float *y, const float *scale, const float *shift, float *scratch, int64_t n, int64_t x_image,
                        int64_t residual_image, int64_t y_image, int64_t channels, int64_t kernels,
                        int64_t group_channels, int64_t group_kernels, int64_t span, int64_t group_chunk,
                        int64_t tile_chunk, int64_t pass, int64_t panels, int64_t slots, int64_t slot) {
  Conv c = {.x = x,
            .w = w,
            .bias = bias,
            .residual = residual,
            .scale = scale,
            .shift = shift,
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
            .oc_groups = ceil_div(kernels, OC_VECTORS * LANES),
            .pass = pass};
  c.group_chunk = min_i64(group_chunk, c.oc_groups);
  c.tile_chunk = min_i64(tile_chunk, TILES);
  Team crew = {.rank = team->rank, .size = team->size};
  if (PROLOGUE) {
    c.panel_columns = c.tile_chunk * WIDE;
    c.panel = scratch + team->rank % slots * slot + team->rank / slots * c.in_blocks * c.panel_columns * IN_BLOCK;
    crew.size = (int)min_i64(panels, team->size);
    if (crew.rank >= crew.size) return;
  }
  int64_t item, end, filled = -1;
  team_share(&crew, n * c.oc_groups * TILES, &item, &end);
  while (item < end) {
    Run run = run_at(&c, item, end);
    if (PROLOGUE && filled != run.image * TILES + run.chunk)
      fill_panel(&c, run.image, run.chunk, min_i64(run.chunk + c.tile_chunk, TILES));
    filled = run.image * TILES + run.chunk;
    run_tiles(&c, &run);
    item += run.end - run.begin;
  }
}
