/* SPDX-License-Identifier: MIT */
/*
 * Deformable convolution (Dai et al. 2017; with a mask: Zhu et al. 2018): each tap of a window reads the image where
 * its offset says, between pixels, and weighs what it finds by its mask.
 *
 * A block of outputs is a panel of the matrix product of weights and samples (panel.h). The samples are written as
 * that panel, as many channels at a time as stay in cache. Places and weights of a tap's samples are made once for all
 * channels of an offset group.
 */
#include "kernel.h"
#include "panel.h"

/* Vectors of outputs in a block.
 * legal: 1..4 */
enum { VECTORS = 4 };
/* Maximum output channels of a tile: ROWS * VECTORS sums are in registers.
 * legal: 1..8 */
enum { ROWS = 6 };
/* Minimum output channels of a tile; their numbers are one of two neighbours.
 * legal: 1..8 */
enum { MIN_ROWS = 1 };
/* legal: 0 1 */
enum { MASKED = 1 };
/* legal: 0 1 */
enum { BIASED = 1 };

enum { WIDTH = VECTORS * LANES };

/* An axis of the image. */
typedef struct Axis {
  int64_t in, out, kernel, stride, dilation, pad;
} Axis;

typedef struct Deform {
  const float *x, *w, *offset, *bias, *mask;
  float *y, *panel;
  int64_t groups, channels, kernels; /* channels and kernels of a group */
  int64_t offset_groups, offset_channels;
  int64_t chunk; /* channels of a group that are sampled at a time */
  Axis h, v;     /* along a row, and down a column */
} Deform;

/* A block of outputs, and the upper left corner of each one's window. */
typedef struct Block {
  int64_t image, first, count;
  int32_t row[WIDTH], column[WIDTH];
} Block;

/* Four pixels around each sample; -1: beyond the border, where the image is 0. */
typedef struct Taps {
  int32_t at[4][WIDTH];
  float weight[4][WIDTH];
  bool inside; /* all of them */
} Taps;

/* ---- samples ---- */

/* The pixel before a place, `base` + offset, in [-2^30, 2^30), and the rest. NaN is far outside. */
static inline int32_t pixel_before(int32_t base, float offset, float *rest) {
  const float far = 0x1p29f;
  float bounded = offset > -far ? offset : -far;
  bounded = bounded < far ? bounded : far;
  int32_t whole = (int32_t)bounded;
  whole -= (float)whole > bounded;
  *rest = bounded - (float)whole;
  return base + whole;
}

static inline bool is_inside(int32_t i, int64_t n) { return i >= 0 && i < n; }

/* One tap, number `tap` of the window, of one output. */
static inline void make_tap(const Deform *d, Taps *taps, int64_t p, int32_t row, int32_t column, float down,
                            float right, float scale) {
  float v, h;
  int32_t top = pixel_before(row, down, &v), left = pixel_before(column, right, &h), width = (int32_t)d->h.in;
  bool above = is_inside(top, d->v.in), below = is_inside(top + 1, d->v.in);
  bool before = is_inside(left, d->h.in), after = is_inside(left + 1, d->h.in);
  taps->at[0][p] = above && before ? top * width + left : -1;
  taps->at[1][p] = above && after ? top * width + left + 1 : -1;
  taps->at[2][p] = below && before ? (top + 1) * width + left : -1;
  taps->at[3][p] = below && after ? (top + 1) * width + left + 1 : -1;
  taps->weight[0][p] = (1 - v) * (1 - h) * scale;
  taps->weight[1][p] = (1 - v) * h * scale;
  taps->weight[2][p] = v * (1 - h) * scale;
  taps->weight[3][p] = v * h * scale;
  taps->inside &= above && below && before && after;
}

/* Outputs past the last one sample nothing. */
static void make_taps(const Deform *d, const Block *b, Taps *taps, int64_t group, int64_t tap) {
  int64_t outputs = d->v.out * d->h.out, window = d->v.kernel * d->h.kernel;
  int64_t at = (b->image * d->offset_groups + group) * window + tap;
  const float *down = d->offset + 2 * at * outputs + b->first, *right = down + outputs;
  const float *mask = MASKED ? d->mask + at * outputs + b->first : NULL;
  int32_t row = (int32_t)(tap / d->h.kernel * d->v.dilation), column = (int32_t)(tap % d->h.kernel * d->h.dilation);
  taps->inside = b->count == WIDTH;
  for (int64_t p = 0; p < b->count; p++)
    make_tap(d, taps, p, b->row[p] + row, b->column[p] + column, down[p], right[p], MASKED ? mask[p] : 1);
  for (int64_t p = b->count; p < WIDTH; p++)
    for (int i = 0; i < 4; i++) taps->at[i][p] = -1;
}

static void sample(const Taps *taps, const float *restrict x, float *restrict to) {
  for (int p = 0; taps->inside && p < WIDTH; p++) {
    to[p] = x[taps->at[0][p]] * taps->weight[0][p] + x[taps->at[1][p]] * taps->weight[1][p] +
            (x[taps->at[2][p]] * taps->weight[2][p] + x[taps->at[3][p]] * taps->weight[3][p]);
  }
  for (int p = 0; !taps->inside && p < WIDTH; p++) {
    float sum = 0;
    for (int i = 0; i < 4; i++)
      if (taps->at[i][p] >= 0) sum += x[taps->at[i][p]] * taps->weight[i][p];
    to[p] = sum;
  }
}

/* Channels first .. end of all, as rows [channel][tap] of the panel. */
static void sample_channels(const Deform *d, const Block *b, int64_t first, int64_t end) {
  int64_t window = d->v.kernel * d->h.kernel, plane = d->v.in * d->h.in, all = d->groups * d->channels;
  for (int64_t c = first; c < end;) {
    int64_t group = c / d->offset_channels, stop = min_i64(end, (group + 1) * d->offset_channels);
    for (int64_t tap = 0; tap < window; tap++) {
      Taps taps;
      make_taps(d, b, &taps, group, tap);
      for (int64_t k = c; k < stop; k++)
        sample(&taps, d->x + (b->image * all + k) * plane, d->panel + ((k - first) * window + tap) * WIDTH);
    }
    c = stop;
  }
}

/* ---- products ---- */

/* Kernels first .. first + rows of all, over `depth` rows of the panel from row k of the group's on. */
SIMD_FUNCTION void tile(const Deform *d, const Block *b, int64_t first, int64_t k, int64_t depth, int rows) {
  PanelRow sums[PANEL_ROWS];
  int64_t outputs = d->v.out * d->h.out, row = d->channels * d->v.kernel * d->h.kernel;
  float *y = d->y + (b->image * d->groups * d->kernels + first) * outputs + b->first;
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
    vec start = BIASED && !k ? vset(d->bias[first + m]) : vzero();
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++)
      sums[m][v] = k ? panel_load(y + m * outputs + v * LANES, b->count - v * LANES) : start;
  }
  panel_multiply(sums, rows, VECTORS, d->w + first * row + k, row, 1, d->panel, depth);
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++) panel_store(y + m * outputs + v * LANES, sums[m][v], b->count - v * LANES);
  }
}

static void tile_of_rows(const Deform *d, const Block *b, int64_t first, int64_t k, int64_t depth, int64_t rows) {
  if (MIN_ROWS <= 1 && 1 <= ROWS && rows == 1) tile(d, b, first, k, depth, 1);
  if (MIN_ROWS <= 2 && 2 <= ROWS && rows == 2) tile(d, b, first, k, depth, 2);
  if (MIN_ROWS <= 3 && 3 <= ROWS && rows == 3) tile(d, b, first, k, depth, 3);
  if (MIN_ROWS <= 4 && 4 <= ROWS && rows == 4) tile(d, b, first, k, depth, 4);
  if (MIN_ROWS <= 5 && 5 <= ROWS && rows == 5) tile(d, b, first, k, depth, 5);
  if (MIN_ROWS <= 6 && 6 <= ROWS && rows == 6) tile(d, b, first, k, depth, 6);
  if (MIN_ROWS <= 7 && 7 <= ROWS && rows == 7) tile(d, b, first, k, depth, 7);
  if (MIN_ROWS <= 8 && 8 <= ROWS && rows == 8) tile(d, b, first, k, depth, 8);
}

/* One group of the channels, at one block of outputs. */
static void block_of_group(const Deform *d, const Block *b, int64_t group) {
  int64_t window = d->v.kernel * d->h.kernel, tiles = ceil_div(d->kernels, ROWS);
  for (int64_t c = 0; c < d->channels; c += d->chunk) {
    int64_t count = min_i64(d->chunk, d->channels - c), from = group * d->channels + c;
    sample_channels(d, b, from, from + count);
    for (int64_t i = 0; i < tiles; i++) {
      int64_t first = i * d->kernels / tiles, rows = (i + 1) * d->kernels / tiles - first;
      tile_of_rows(d, b, group * d->kernels + first, c * window, count * window, rows);
    }
  }
}

static void place_block(const Deform *d, Block *b, int64_t image, int64_t first) {
  b->image = image;
  b->first = first;
  b->count = min_i64(WIDTH, d->v.out * d->h.out - first);
  for (int64_t p = 0; p < b->count; p++) {
    b->row[p] = (int32_t)((first + p) / d->h.out * d->v.stride - d->v.pad);
    b->column[p] = (int32_t)((first + p) % d->h.out * d->h.stride - d->h.pad);
  }
}

/* x: [n][groups * channels][in_h][in_w]. w: [groups * kernels][channels][window]. offset: [n][offset_groups][window][2]
 * [out_h][out_w], down and to the right; mask: the same without 2. y: [n][groups * kernels][out_h][out_w]. extents: in,
 * out, kernel, stride, dilation and pad of each axis, the vertical one first. scratch: `slots` workers' slots, `slot`
 * floats apart. */
static void deform_conv(const Team *team, const float *x, const float *w, const float *offset, const float *bias,
                        const float *mask, float *y, float *scratch, int64_t n, int64_t groups, int64_t channels,
                        int64_t kernels, int64_t offset_groups, int64_t chunk, const int64_t *extents, int64_t slots,
                        int64_t slot) {
  int64_t workers = min_i64(slots, team->size);
  if (team->rank >= workers) return;
  const int64_t *v = extents, *h = extents + 6;
  Deform d = {.x = x,
              .w = w,
              .offset = offset,
              .bias = bias,
              .mask = mask,
              .y = y,
              .panel = scratch + team->rank * slot,
              .groups = groups,
              .channels = channels,
              .kernels = kernels,
              .offset_groups = offset_groups,
              .offset_channels = groups * channels / offset_groups,
              .chunk = chunk,
              .h = {h[0], h[1], h[2], h[3], h[4], h[5]},
              .v = {v[0], v[1], v[2], v[3], v[4], v[5]}};
  int64_t blocks = ceil_div(d.v.out * d.h.out, WIDTH), item = share_begin(n * blocks * groups, team->rank, workers);
  int64_t end = share_begin(n * blocks * groups, team->rank + 1, workers);
  for (; item < end; item++) {
    Block b;
    place_block(&d, &b, item / groups / blocks, item / groups % blocks * WIDTH);
    block_of_group(&d, &b, item % groups);
  }
}
