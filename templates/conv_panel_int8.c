/* SPDX-License-Identifier: MIT */
/*
 * Convolution of quantised tensors, bytes blocked by channels, [N][ceil(C / LANES)][H][W][LANES]:
 *   sum[n, k, oh, ow] = bias[k] + sum over c, r, s of (x[n, c, ih, iw] - zero) w[k, c, r, s],
 *   y = saturate(round(scale[k] * sum) + y_zero), as templates/conv_direct_int8.c computes it, bit for bit,
 * for CPUs that multiply numbers of 16 bits: both factors are widened once, not in each product.
 *
 * Pixels of the output are taken in blocks, cut into parts of even size of as many pixels as there are sums in
 * registers for. A block's input becomes a panel, a group's weights are widened for each block:
 *
 *   panel     [part of the block][tap][channel block][pixel of the part][LANES], s16
 *   weights   [tap][channel block][pair of channels][OC_VECTORS][LANES][2], s16
 *
 * Both stay in the second level of the cache. In memory, weights are the same in bytes. Each worker owns blocks, or
 * groups of OC_VECTORS vectors of output channels (BY_GROUPS), and then makes panels of all pixels for itself.
 */
#include "kernel.h"
#include "requantise.h"
#include "simd/int8.h"
#include "simd/simd.h"

#include "parts/conv_window.h"

/* Vectors of output channels in a group.
 * legal: 1..4 */
enum { OC_VECTORS = 2 };
/* Vectors of the last group, if fewer; else 0.
 * legal: 0..3 */
enum { OC_TAIL = 0 };
/* Maximum pixels of a part: PART_PIXELS * OC_VECTORS sums are in registers.
 * legal: 1..14 */
enum { PART_PIXELS = 6 };
/* Minimum pixels of a part.
 * legal: 1..14 */
enum { MIN_PIXELS = 1 };
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

enum { TAPS = WINDOW_H * WINDOW_W, BLOCK_PAIRS = LANES / 2 };
enum { IN_PLANE = IN_H * IN_W * LANES, PIXELS = OUT_H * OUT_W, OUT_PLANE = PIXELS * LANES };

typedef struct Conv {
  const uint8_t *x, *residual;
  const int8_t *w;
  const int32_t *start;
  const float *scale;
  uint8_t *y;
  Finish finish;
  int16_t *panel, *weights;                 /* this worker's working memory */
  uint8_t outside[LANES];                   /* a pixel in the padding */
  int64_t channel_blocks, pairs, groups;    /* pairs: of channels of all taps */
  int64_t x_image, residual_image, y_image; /* bytes from one image to the next */
} Conv;

/* Consecutive pixels of all images. */
typedef struct Block {
  int64_t first, pixels, parts;
} Block;

/* Pixels first .. first + count of all images. */
typedef struct Part {
  int64_t first, count;
} Part;

static Part part_of(const Block *b, int64_t part) {
  int64_t begin = b->pixels * part / b->parts;
  return (Part){b->first + begin, b->pixels * (part + 1) / b->parts - begin};
}

static int16_t *panel_of(const Conv *c, const Block *b, const Part *part) {
  return c->panel + (part->first - b->first) * 2 * c->pairs;
}

/* ---- panels ---- */

/* A pixel's input at a tap in its first channel block, and how far that of the next one is. */
typedef struct Source {
  const uint8_t *at;
  int64_t block;
} Source;

static Source source_of(const Conv *c, int64_t pixel, int64_t r, int64_t s) {
  int64_t image = pixel / PIXELS, place = pixel % PIXELS;
  int64_t row = place / OUT_W * STRIDE_H - PAD_TOP + r * DILATION_H;
  int64_t column = place % OUT_W * STRIDE_W - PAD_LEFT + s * DILATION_W;
  if (row < 0 || row >= IN_H || column < 0 || column >= IN_W) return (Source){c->outside, 0};
  return (Source){c->x + image * c->x_image + (row * IN_W + column) * LANES, IN_PLANE};
}

/* A tap of a part, all channels. */
static int16_t *widen_tap(const Conv *c, int16_t *out, const Source *sources, int64_t count) {
  for (int64_t block = 0; block < c->channel_blocks; block++) {
    int64_t i = 0;
    for (; i + 1 < count; i += 2, out += 2 * LANES) {
      const Source *p = &sources[i], *q = &sources[i + 1];
      vint_store(out, vpair_inputs(p->at + block * p->block, q->at + block * q->block, SIGNED_X));
    }
    if (i == count) continue;
    const uint8_t *last = sources[i].at + block * sources[i].block;
    vpair_store_first(out, vpair_inputs(last, last, SIGNED_X));
    out += LANES;
  }
  return out;
}

static void widen_input(const Conv *c, const Block *b) {
  Source sources[PART_PIXELS];
  for (int64_t i = 0; i < b->parts; i++) {
    Part part = part_of(b, i);
    int16_t *out = panel_of(c, b, &part);
    for (int64_t tap = 0; tap < TAPS; tap++) {
      for (int64_t m = 0; m < part.count; m++)
        sources[m] = source_of(c, part.first + m, tap / WINDOW_W, tap % WINDOW_W);
      out = widen_tap(c, out, sources, part.count);
    }
  }
}

static void widen_weights(const Conv *c, const int8_t *w, int64_t vectors) {
  int64_t count = c->pairs * vectors * LANES * 2;
  for (int64_t i = 0; i < count; i += 2 * LANES) vint_store(c->weights + i, vpair_weights(w + i));
}

/* ---- products ---- */

/* The sums of a part over all pairs of channels. Not unrolled: clang would add up products first, and spill sums. */
SIMD_FUNCTION void multiply(vint sums[OC_VECTORS][PART_PIXELS], int pixels, int vectors, const int16_t *in,
                            const int16_t *weights, int64_t pairs) {
  for (int64_t left = pairs; left > 0; left -= BLOCK_PAIRS) {
#pragma clang loop unroll(disable)
    for (int64_t k = 0; k < BLOCK_PAIRS; k++) {
      vint w[OC_VECTORS];
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++) w[v] = vint_load(weights + v * LANES * 2);
      weights += vectors * LANES * 2;
#pragma clang loop unroll(full)
      for (int m = 0; m < pixels; m++) {
        vint x = vint_set((int)*(const bits32 *)(in + m * LANES + k * 2));
#pragma clang loop unroll(full)
        for (int v = 0; v < vectors; v++) sums[v][m] = vpair_dot(sums[v][m], x, w[v]);
      }
    }
    in += pixels * LANES;
  }
}

/* Where a part's results go in a vector of output channels. */
typedef struct Target {
  const float *scale;
  const uint8_t *residual;
  uint8_t *y;
} Target;

static Target target_of(const Conv *c, int64_t pixel, int64_t vector) {
  int64_t image = pixel / PIXELS, at = vector * OUT_PLANE + pixel % PIXELS * LANES;
  return (Target){c->scale + vector * LANES, RESIDUAL ? c->residual + image * c->residual_image + at : NULL,
                  c->y + image * c->y_image + at};
}

/* Of pixels of one image; four vectors are packed together. */
SIMD_FUNCTION void end_sums(const vint *sums, int pixels, const Target *t, const Finish *f) {
  vec scale = vload(t->scale), scaled[PART_PIXELS];
#pragma clang loop unroll(full)
  for (int m = 0; m < pixels; m++) scaled[m] = vmul(vint_to_float(sums[m]), scale);
#pragma clang loop unroll(full)
  for (int m = 0; m < pixels; m++) {
    const bool by_four = m / 4 * 4 + 4 <= pixels;
    if (by_four && m % 4) continue;
    requantise(&scaled[m], by_four ? 4 : 1, RESIDUAL ? t->residual + m * LANES : NULL, t->y + m * LANES, STEP, BOUNDS,
               SIGNED_Y, f);
  }
}

SIMD_FUNCTION void part_of_pixels(const Conv *c, const Part *part, const int16_t *in, int64_t group, int pixels,
                                  int vectors) {
  const Finish f = c->finish; /* bytes that are stored may be anything in memory */
  const bool one_image = part->first / PIXELS == (part->first + pixels - 1) / PIXELS;
  vint sums[OC_VECTORS][PART_PIXELS];
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) {
    vint start = vint_load(c->start + (group * OC_VECTORS + v) * LANES);
#pragma clang loop unroll(full)
    for (int m = 0; m < pixels; m++) sums[v][m] = start;
  }
  multiply(sums, pixels, vectors, in, c->weights, c->pairs);
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) {
    Target target = target_of(c, part->first, group * OC_VECTORS + v);
    if (one_image) {
      end_sums(sums[v], pixels, &target, &f);
      continue;
    }
#pragma clang loop unroll(full)
    for (int m = 0; m < pixels; m++) {
      target = target_of(c, part->first + m, group * OC_VECTORS + v);
      end_sums(&sums[v][m], 1, &target, &f);
    }
  }
}

/* Not inlined: inside the loop over parts, clang would spill sums to keep the loop's variables. */
static __attribute__((noinline)) void any_part(const Conv *c, const Part *part, const int16_t *in, int64_t group,
                                               bool is_tail) {
#pragma clang loop unroll(full)
  for (int m = MIN_PIXELS; m <= PART_PIXELS; m++) {
    if (part->count != m) continue;
    if (OC_TAIL > 0 && is_tail)
      part_of_pixels(c, part, in, group, m, OC_TAIL);
    else
      part_of_pixels(c, part, in, group, m, OC_VECTORS);
  }
}

static void run_group(const Conv *c, const Block *b, int64_t group) {
  bool is_tail = OC_TAIL > 0 && group + 1 == c->groups;
  widen_weights(c, c->w + group * c->pairs * OC_VECTORS * LANES * 2, is_tail ? OC_TAIL : OC_VECTORS);
  for (int64_t i = 0; i < b->parts; i++) {
    Part part = part_of(b, i);
    any_part(c, &part, panel_of(c, b, &part), group, is_tail);
  }
}

/* ---- partitions ---- */

/* This worker's share of n items, which the first `workers` workers divide; it is empty for others. */
static void share_of(const Team *team, int64_t workers, int64_t n, int64_t *begin, int64_t *end) {
  *begin = n * min_i64(team->rank, workers) / workers;
  *end = n * min_i64(team->rank + 1, workers) / workers;
}

static Block block_at(int64_t index, int64_t blocks, int64_t pixels) {
  Block b = {.first = index * pixels / blocks};
  b.pixels = (index + 1) * pixels / blocks - b.first;
  b.parts = ceil_div(b.pixels, PART_PIXELS);
  return b;
}

/* x, residual, y: blocked by LANES; lanes past the last channel may have any value, and multiply weights of zero.
 * w: [group][R][S][channel block][pair][vector of the group][LANES][2]. start, scale: whole blocks. x_zero: as a byte
 * of x. finish: the fields of Finish, in order. scratch: a slot for each of `slots` workers, `slot` words of four bytes
 * apart: the panel of block_pixels pixels, which has panel_words words, and a group's weights. Workers past `slots`
 * have nothing to do. */
static void conv_panel_int8(const Team *team, const uint8_t *x, const int8_t *w, const int32_t *start,
                            const float *scale, const uint8_t *residual, uint8_t *y, const float *finish,
                            int32_t *scratch, int64_t n, int64_t x_image, int64_t residual_image, int64_t y_image,
                            int64_t x_zero, int64_t channels, int64_t kernels, int64_t block_pixels,
                            int64_t panel_words, int64_t slots, int64_t slot) {
  int64_t pixels = n * PIXELS, blocks = ceil_div(pixels, block_pixels);
  int64_t workers = min_i64(slots, team->size), rank = min_i64(team->rank, slots - 1);
  int32_t *own = scratch + rank * slot;
  Conv c = {.x = x,
            .residual = residual,
            .w = w,
            .start = start,
            .scale = scale,
            .y = y,
            .finish = finish_of(finish),
            .panel = (int16_t *)own,
            .weights = (int16_t *)(own + panel_words),
            .channel_blocks = ceil_div(channels, LANES),
            .groups = ceil_div(kernels, OC_VECTORS * LANES),
            .x_image = x_image,
            .residual_image = residual_image,
            .y_image = y_image};
  c.pairs = TAPS * c.channel_blocks * BLOCK_PAIRS;
  for (int i = 0; i < LANES; i++) c.outside[i] = (uint8_t)x_zero;
  int64_t block = 0, last_block = blocks, group = 0, last_group = c.groups;
  share_of(team, workers, BY_GROUPS ? c.groups : blocks, BY_GROUPS ? &group : &block,
           BY_GROUPS ? &last_group : &last_block);
  for (; block < last_block && group < last_group; block++) {
    Block b = block_at(block, blocks, pixels);
    widen_input(&c, &b);
    for (int64_t g = group; g < last_group; g++) run_group(&c, &b, g);
  }
}
