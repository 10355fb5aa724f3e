/* SPDX-License-Identifier: MIT */
/*
 * Convolution of tensors of f32 blocked by channels, [N][ceil(C / block)][H][W][block]:
 *   y[n, k, oh, ow] = epilogue(bias[k] + sum over c, r, s of x[n, c, ih, iw] w[k, c, r, s] + residual),
 * with products of bf16 by matrices in registers, and sums in f32: see parts/conv_matrices.h. x is rounded to bf16 as
 * it is copied to the strip, halves to even. The padding is zeros, and so are the lanes past the last channel, which
 * may have any value in memory.
 *
 * A sum runs over the window in order, whatever pixels are beside it: it has the same bits in each blocking. Where a
 * window does not fill its last line, the pixels behind it are multiplied by zero: those of an infinite number or NaN
 * make NaN of it.
 */
#include "kernel.h"
#include "panel_matrices.h"
#include "simd/math.h"
#include "simd/matrices.h"
#include "simd/simd.h"

/* Channels of the last block of x; 0: all.
 * legal: 0..15 */
enum { CHANNEL_TAIL = 0 };
/* 1: x * scale + shift, and the hook `prologue` of it, come first; only under a 1x1 window without stride and padding.
 * legal: 0 1 */
enum { PROLOGUE = 0 };

/* hook: maps x * scale + shift; x and the result are one vector of channels. */
static inline vec prologue(vec x) { return x; }

typedef float X, Sum;
enum { ELEMENT = sizeof(uint16_t), Y_BYTES = sizeof(float) };

/* Of the prologue. */
typedef struct Extra {
  const float *scale, *shift;
} Extra;

#include "parts/conv_window.h"

#include "parts/conv_matrices.h"

static void fill(const Conv *c, uint8_t *out, int64_t pixels) {
  (void)c;
  for (int64_t p = 0; p < pixels; p++, out += PIXEL) __builtin_memset(out, 0, CHANNELS);
}

/* Blocks of a pixel that are a line. */
enum { TOGETHER = LINE / (LANES * ELEMENT) };

typedef struct Affine { /* of a block, for the prologue */
  vec scale, shift;
} Affine;

static inline int channels_of(int64_t b) { return CHANNEL_TAIL > 0 && b == IN_BLOCKS - 1 ? CHANNEL_TAIL : IN_BLOCK; }

/* The first `count` elements, zero in the others. */
SIMD_FUNCTION vec load_first(const float *p, int count) { return count < LANES ? vload_n(p, count) : vload(p); }

SIMD_FUNCTION Affine affine_of(const Conv *c, int64_t b) {
  if (!PROLOGUE) return (Affine){vzero(), vzero()};
  const int count = channels_of(b);
  return (Affine){load_first(c->extra.scale + b * IN_BLOCK, count), load_first(c->extra.shift + b * IN_BLOCK, count)};
}

/* A pixel's block, which has `count` channels: zeros behind them. */
SIMD_FUNCTION vec pixel_at(const float *p, int count, const Affine *a) {
  vec x = load_first(p, count);
  if (PROLOGUE) x = vselect(vmask_first(count), prologue(vfma(a->shift, x, a->scale)), vzero());
  return x;
}

/* Whole blocks from b on, `count` of them, the last one of which has `last` channels. */
SIMD_FUNCTION void round_blocks(const Conv *c, uint8_t *out, const float *in, int64_t b, int count, int last,
                                int64_t pixels) {
  Affine affine[TOGETHER];
#pragma clang loop unroll(full)
  for (int i = 0; i < count; i++) affine[i] = affine_of(c, b + i);
  out += b * IN_BLOCK * ELEMENT;
  in += b * IN_PLANE;
  for (int64_t p = 0; p < pixels; p++, out += PIXEL, in += IN_STEP_W * IN_BLOCK) {
    vec x[TOGETHER];
#pragma clang loop unroll(full)
    for (int i = 0; i < count; i++) x[i] = pixel_at(in + i * IN_PLANE, i + 1 < count ? IN_BLOCK : last, &affine[i]);
#pragma clang loop unroll(full)
    for (int i = 0; i < count; i++) store_rounded((uint16_t *)out + i * LANES, x[i]);
  }
}

/* A block that is no whole vector, which has all channels. */
SIMD_FUNCTION void round_narrow(uint8_t *out, const float *in, int64_t pixels) {
  enum { RUN = 64 };
  uint16_t rounded[RUN * IN_BLOCK + LANES];
  for (int64_t first = 0; first < pixels; first += RUN, in += RUN * IN_STEP_W * IN_BLOCK) {
    const int64_t count = min_i64(RUN, pixels - first);
    if (IN_STEP_W == 1)
      for (int64_t i = 0; i < count * IN_BLOCK; i += LANES)
        store_rounded(rounded + i, panel_load(in + i, count * IN_BLOCK - i));
    else
      for (int64_t p = 0; p < count; p++)
        store_rounded(rounded + p * IN_BLOCK, vload_n(in + p * IN_STEP_W * IN_BLOCK, IN_BLOCK));
    for (int64_t p = 0; p < count; p++, out += PIXEL) __builtin_memcpy(out, rounded + p * IN_BLOCK, IN_BLOCK * ELEMENT);
  }
}

SIMD_FUNCTION void copy_pixels(const Conv *c, uint8_t *out, const float *in, int64_t pixels) {
  if (IN_BLOCK < LANES) {
    round_narrow(out, in, pixels);
    return;
  }
  int64_t b = 0;
  for (; b + TOGETHER < IN_BLOCKS; b += TOGETHER) round_blocks(c, out, in, b, TOGETHER, IN_BLOCK, pixels);
  if (IN_BLOCKS % TOGETHER)
    round_blocks(c, out, in, b, 1, channels_of(IN_BLOCKS - 1), pixels);
  else
    round_blocks(c, out, in, b, TOGETHER, channels_of(IN_BLOCKS - 1), pixels);
}

SIMD_FUNCTION void add_product(matrices *m, int sums, int pixels, int weights) {
  matrices_dot_bf16(m, sums, pixels, weights);
}

SIMD_FUNCTION const float *starts_of(const Conv *c, int64_t vector, int vectors, float *own) {
  if (BIAS) return c->start + vector * LANES;
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) vstore(own + v * LANES, vzero());
  return own;
}

SIMD_FUNCTION void end_rows(const Conv *c, const float *sums, int64_t row, int count, const Target *t) {
  (void)c;
#pragma clang loop unroll(full)
  for (int i = 0; i < count; i++) {
    const int64_t at = (row + i) * LANES;
    vec y = vload(sums + at);
    if (RESIDUAL) y = vadd(y, vload((const float *)t->residual + at));
    vstore((float *)t->y + at, epilogue(y));
  }
}

/* A prologue comes before a convolution of one part alone. */
static inline Extra extra_of(const Extra *all, int64_t channel) {
  (void)channel;
  return *all;
}

#include "parts/conv_matrices_order.h"

/* x: blocked by IN_BLOCK, residual, y: by LANES. Images are x_image, residual_image and y_image elements apart. bias,
 * scale, shift: whole blocks, or NULL. scratch: a slot for each of `slots` workers, `slot` bytes apart: the strip, of
 * strip_bytes bytes, and sums. Workers past `slots` have nothing to do. kernels:
 * output channels of each of `parts` parts. */
static void conv_matrices_bf16(const Team *team, const float *x, const uint16_t *w, const float *bias,
                               const float *residual, float *y, const float *scale, const float *shift,
                               uint8_t *scratch, int64_t n, int64_t x_image, int64_t residual_image, int64_t y_image,
                               int64_t kernels, int64_t parts, int64_t strip_bytes, int64_t slots, int64_t slot) {
  int64_t workers = min_i64(slots, team->size), rank = min_i64(team->rank, slots - 1);
  uint8_t *own = scratch + rank * slot;
  Conv c = {.x = x,
            .w = (const uint8_t *)w,
            .start = bias,
            .residual = (const uint8_t *)residual,
            .y = (uint8_t *)y,
            .strip = own,
            .sums = (float *)(own + strip_bytes),
            .vectors = ceil_div(kernels, LANES),
            .x_image = x_image,
            .residual_image = residual_image,
            .y_image = y_image,
            .extra = {.scale = scale, .shift = shift}};
  run_share(team, &c, n, parts, workers);
}
