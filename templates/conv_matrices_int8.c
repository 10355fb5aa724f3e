/* SPDX-License-Identifier: MIT */
/*
 * Convolution of quantised tensors, bytes blocked by channels, [N][ceil(C / block)][H][W][block]:
 *   sum[n, k, oh, ow] = bias[k] + sum over c, r, s of (x[n, c, ih, iw] - zero) w[k, c, r, s],
 *   y = saturate(round(scale[k] * sum) + y_zero), as templates/conv_direct_int8.c computes it, bit for bit,
 * for CPUs that multiply matrices of bytes in registers (simd/matrices.h).
 *
 * A pair is two matrices of ROWS consecutive pixels of an image; its input becomes a panel, each pixel with all that
 * its window reads, the padding as x's zero point, in the order of weights:
 *
 *   panel     [pixel of the pair][channel block][R][S][block], whole lines, an odd number of them
 *   weights   [group][line of the panel][vector of the group][LINE / DOT][LANES][DOT], s8, zero behind the window
 *
 * A group is two vectors of output channels, so that four matrices of sums stay in registers over the whole panel.
 * Pairs are taken in blocks, whose panels stay in the cache for all groups. Each worker owns blocks, or groups
 * (BY_GROUPS), and then makes panels of all pixels for itself.
 */
#include "kernel.h"
#include "requantise.h"
#include "simd/int8.h"
#include "simd/matrices.h"
#include "simd/simd.h"

/* R.
 * legal: 1..4096 */
enum { WINDOW_H = 3 };
/* S.
 * legal: 1..4096 */
enum { WINDOW_W = 3 };
/* legal: 1..4096 */
enum { STRIDE_H = 1 };
/* legal: 1..4096 */
enum { STRIDE_W = 1 };
/* legal: 1..65536 */
enum { DILATION_H = 1 };
/* legal: 1..65536 */
enum { DILATION_W = 1 };
/* legal: 1..268435456 */
enum { IN_H = 14 };
/* legal: 1..268435456 */
enum { IN_W = 14 };
/* legal: 1..268435456 */
enum { OUT_H = 14 };
/* legal: 1..268435456 */
enum { OUT_W = 14 };
/* Rows of padding above the input.
 * legal: 0..65536 */
enum { PAD_TOP = 1 };
/* legal: 0..65536 */
enum { PAD_LEFT = 1 };
/* The channel block of x.
 * legal: 4..16 */
enum { IN_BLOCK = 16 };
/* 1: the last group has one vector.
 * legal: 0 1 */
enum { OC_TAIL = 0 };
/* 1: workers own groups of output channels; 0: blocks of pixels.
 * legal: 0 1 */
enum { BY_GROUPS = 0 };
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

enum { LINE = MATRIX_BYTES, VECTORS = 2, MATRIX = MATRIX_ROWS * LINE };
enum { PIXELS = OUT_H * OUT_W, OUT_PLANE = PIXELS * LANES, IN_PLANE = IN_H * IN_W * IN_BLOCK };
enum { TAP_ROW = WINDOW_W * IN_BLOCK, WINDOW = WINDOW_H * TAP_ROW }; /* of a channel block */
/* The pairs of an image; the last one may begin with pixels of the one before it, which it does not store again. */
enum { PAIRS = (PIXELS + 2 * MATRIX_ROWS - 1) / (2 * MATRIX_ROWS), ROWS = (PIXELS + 2 * PAIRS - 1) / (2 * PAIRS) };
/* Pixels of a pair, and its second matrix's first one. */
enum { SPAN = PIXELS < 2 * ROWS ? PIXELS : 2 * ROWS, SECOND = SPAN - ROWS };
/* What a window spans of the input. */
enum { REACH_H = (WINDOW_H - 1) * DILATION_H, REACH_W = (WINDOW_W - 1) * DILATION_W };

typedef struct Conv {
  const uint8_t *x, *residual;
  const int8_t *w;
  const int32_t *start;
  const float *scale;
  uint8_t *y;
  Finish finish;
  uint8_t *panel; /* this worker's working memory */
  int32_t *sums;
  uint8_t outside[IN_BLOCK]; /* a pixel in the padding */
  int64_t channel_blocks, groups;
  int64_t lines, panel_row;                 /* of the panel: lines of a pixel, and bytes to the next one */
  int64_t x_image, residual_image, y_image; /* bytes from one image to the next */
} Conv;

/* ---- panels ---- */

/* What a pixel's window reads of the first channel block. */
typedef struct Source {
  const uint8_t *at; /* may be outside of x */
  int64_t row, column;
  bool whole; /* no tap is in the padding */
} Source;

static Source source_of(const uint8_t *image, int64_t pixel) {
  int64_t row = pixel / OUT_W * STRIDE_H - PAD_TOP, column = pixel % OUT_W * STRIDE_W - PAD_LEFT;
  return (Source){.at = image + (row * IN_W + column) * IN_BLOCK,
                  .row = row,
                  .column = column,
                  .whole = row >= 0 && row + REACH_H < IN_H && column >= 0 && column + REACH_W < IN_W};
}

/* One channel block. */
SIMD_FUNCTION void copy_whole(uint8_t *out, const uint8_t *in) {
#pragma clang loop unroll_count(8)
  for (int64_t r = 0; r < WINDOW_H; r++, out += TAP_ROW, in += DILATION_H * IN_W * IN_BLOCK) {
    if (DILATION_W == 1) {
      __builtin_memcpy(out, in, TAP_ROW);
      continue;
    }
    for (int64_t s = 0; s < WINDOW_W; s++)
      __builtin_memcpy(out + s * IN_BLOCK, in + s * DILATION_W * IN_BLOCK, IN_BLOCK);
  }
}

static void copy_part(const Conv *c, uint8_t *out, const Source *p, const uint8_t *at) {
  for (int64_t r = 0; r < WINDOW_H; r++)
    for (int64_t s = 0; s < WINDOW_W; s++, out += IN_BLOCK) {
      int64_t row = p->row + r * DILATION_H, column = p->column + s * DILATION_W;
      bool inside = row >= 0 && row < IN_H && column >= 0 && column < IN_W;
      const uint8_t *in = at + (r * DILATION_H * IN_W + s * DILATION_W) * IN_BLOCK;
      __builtin_memcpy(out, inside ? in : c->outside, IN_BLOCK);
    }
}

static void make_panel(const Conv *c, uint8_t *panel, int64_t image, int64_t first) {
  const uint8_t *x = c->x + image * c->x_image;
  for (int64_t m = 0; m < SPAN; m++, panel += c->panel_row) {
    Source source = source_of(x, first + m);
    for (int64_t block = 0; block < c->channel_blocks; block++) {
      if (source.whole)
        copy_whole(panel + block * WINDOW, source.at + block * IN_PLANE);
      else
        copy_part(c, panel + block * WINDOW, &source, source.at + block * IN_PLANE);
    }
  }
}

/* ---- products ---- */

/* The four sums of a pair, over all lines of its panel. ahead: weights that are needed next. */
SIMD_FUNCTION void multiply(const Conv *c, matrices *m, const uint8_t *in, const int8_t *w, const int32_t *start,
                            int vectors, const int8_t *ahead, int64_t ahead_lines) {
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) {
    matrices_load(m, v, start + v * LANES, 0);
    matrices_load(m, 2 + v, start + v * LANES, 0);
  }
  for (int64_t k = 0; k < c->lines; k++, in += LINE, w += vectors * MATRIX) {
    matrices_load(m, 4, in, c->panel_row);
    matrices_load(m, 6, w, LINE);
    matrices_dot(m, 0, 4, 6, SIGNED_X);
    if (vectors > 1) matrices_load(m, 7, w + MATRIX, LINE);
    if (vectors > 1) matrices_dot(m, 1, 4, 7, SIGNED_X);
    matrices_load(m, 5, in + SECOND * c->panel_row, c->panel_row);
    matrices_dot(m, 2, 5, 6, SIGNED_X);
    if (vectors > 1) matrices_dot(m, 3, 5, 7, SIGNED_X);
    for (int64_t i = 0; i < ahead_lines; i++, ahead += LINE) prefetch_later(ahead);
  }
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) {
    matrices_store(m, v, c->sums + v * MATRIX_ROWS * LANES, LINE);
    matrices_store(m, 2 + v, c->sums + (VECTORS + v) * MATRIX_ROWS * LANES, LINE);
  }
}

/* Where a matrix's results go in a vector of output channels. */
typedef struct Target {
  const float *scale;
  const uint8_t *residual;
  uint8_t *y;
} Target;

static Target target_of(const Conv *c, int64_t image, int64_t pixel, int64_t vector) {
  int64_t at = vector * OUT_PLANE + pixel * LANES;
  return (Target){c->scale + vector * LANES, RESIDUAL ? c->residual + image * c->residual_image + at : NULL,
                  c->y + image * c->y_image + at};
}

SIMD_FUNCTION void end_rows(const int32_t *sums, int64_t row, int count, const Target *t, const Finish *f) {
  vec scale = vload(t->scale), scaled[4];
#pragma clang loop unroll(full)
  for (int i = 0; i < count; i++) scaled[i] = vmul(vint_to_float(vint_load(sums + (row + i) * LANES)), scale);
  requantise(scaled, count, RESIDUAL ? t->residual + row * LANES : NULL, t->y + row * LANES, STEP, BOUNDS, SIGNED_Y, f);
}

/* The rows from `first` on. */
SIMD_FUNCTION void end_sums(const int32_t *sums, int64_t first, const Target *t, const Finish *f) {
  int64_t row = first;
  for (; row + 4 <= ROWS; row += 4) end_rows(sums, row, 4, t, f);
  for (; row < ROWS; row++) end_rows(sums, row, 1, t, f);
}

/* The pair's pixels from `first` on. done: so many are stored already. */
SIMD_FUNCTION void end_pair(const Conv *c, int64_t image, int64_t first, int64_t done, int64_t vector, int vectors) {
  const Finish f = c->finish; /* bytes that are stored may be anything in memory */
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) {
    Target target = target_of(c, image, first, vector + v);
    end_sums(c->sums + v * MATRIX_ROWS * LANES, done, &target, &f);
    target = target_of(c, image, first + SECOND, vector + v);
    end_sums(c->sums + (VECTORS + v) * MATRIX_ROWS * LANES, max_i64(done, ROWS) - SECOND, &target, &f);
  }
}

/* ---- the order ---- */

/* Pairs of all images; each is an item. */
typedef struct Block {
  int64_t begin, end;
  bool is_first; /* of this worker */
} Block;

static int64_t first_pixel(int64_t pair) { return min_i64(pair * 2 * ROWS, PIXELS - SPAN); }

static void make_panels(const Conv *c, const Block *b) {
  for (int64_t item = b->begin; item < b->end; item++)
    make_panel(c, c->panel + (item - b->begin) * SPAN * c->panel_row, item / PAIRS, first_pixel(item % PAIRS));
}

/* While weights come from memory, each pair prefetches a part of the next group's. */
SIMD_FUNCTION void pairs_of_group(const Conv *c, matrices *m, const Block *b, int64_t group, int vectors) {
  const int64_t size = c->lines * VECTORS * MATRIX;
  const int64_t ahead_lines = b->is_first ? ceil_div(VECTORS * MATRIX_ROWS, b->end - b->begin) : 0;
  const int8_t *w = c->w + group * size, *ahead = w + size;
  for (int64_t item = b->begin; item < b->end; item++, ahead += c->lines * ahead_lines * LINE) {
    int64_t pair = item % PAIRS, first = first_pixel(pair);
    const uint8_t *panel = c->panel + (item - b->begin) * SPAN * c->panel_row;
    multiply(c, m, panel, w, c->start + group * VECTORS * LANES, vectors, ahead, ahead_lines);
    end_pair(c, item / PAIRS, first, pair * 2 * ROWS - first, group * VECTORS, vectors);
  }
}

static void run_group(const Conv *c, matrices *m, const Block *b, int64_t group) {
  if (OC_TAIL && group + 1 == c->groups)
    pairs_of_group(c, m, b, group, 1);
  else
    pairs_of_group(c, m, b, group, VECTORS);
}

/* This worker's share of n items, which the first `workers` workers divide; it is empty for others. */
static void share_of(const Team *team, int64_t workers, int64_t n, int64_t *begin, int64_t *end) {
  *begin = n * min_i64(team->rank, workers) / workers;
  *end = n * min_i64(team->rank + 1, workers) / workers;
}

/* x: blocked by IN_BLOCK, residual, y: by LANES; lanes past the last channel may have any value, and multiply weights
 * of zero. start, scale: whole blocks. x_zero: as a byte of x. finish: the fields of Finish, in order. lines: of a
 * pixel's panel; panel_row: bytes of it. scratch: a slot for each of `slots` workers, `slot` bytes apart: the panel of
 * block_pairs pairs, which has panel_bytes bytes, and sums. Workers past `slots` have nothing to do. */
static void conv_matrices_int8(const Team *team, const uint8_t *x, const int8_t *w, const int32_t *start,
                               const float *scale, const uint8_t *residual, uint8_t *y, const float *finish,
                               uint8_t *scratch, int64_t n, int64_t x_image, int64_t residual_image, int64_t y_image,
                               int64_t x_zero, int64_t channels, int64_t kernels, int64_t lines, int64_t panel_row,
                               int64_t block_pairs, int64_t panel_bytes, int64_t slots, int64_t slot) {
  int64_t pairs = n * PAIRS, blocks = ceil_div(pairs, block_pairs);
  int64_t workers = min_i64(slots, team->size), rank = min_i64(team->rank, slots - 1);
  uint8_t *own = scratch + rank * slot;
  Conv c = {.x = x,
            .residual = residual,
            .w = w,
            .start = start,
            .scale = scale,
            .y = y,
            .finish = finish_of(finish),
            .panel = own,
            .sums = (int32_t *)(own + panel_bytes),
            .channel_blocks = ceil_div(channels, IN_BLOCK),
            .groups = ceil_div(kernels, VECTORS * LANES),
            .lines = lines,
            .panel_row = panel_row,
            .x_image = x_image,
            .residual_image = residual_image,
            .y_image = y_image};
  for (int i = 0; i < IN_BLOCK; i++) c.outside[i] = (uint8_t)x_zero;
  int64_t block = 0, last_block = blocks, group = 0, last_group = c.groups;
  share_of(team, workers, BY_GROUPS ? c.groups : blocks, BY_GROUPS ? &group : &block,
           BY_GROUPS ? &last_group : &last_block);
  if (block == last_block || group == last_group) return;
  matrices m;
  matrices_begin(&m, ROWS);
  for (const int64_t first = block; block < last_block; block++) {
    Block b = {block * pairs / blocks, (block + 1) * pairs / blocks, block == first};
    make_panels(&c, &b);
    for (int64_t g = group; g < last_group; g++) run_group(&c, &m, &b, g);
  }
  matrices_end(&m);
}
