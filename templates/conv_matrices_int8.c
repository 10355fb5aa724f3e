/* SPDX-License-Identifier: MIT */
/*
 * Convolution of quantised tensors, bytes blocked by channels, [N][ceil(C / block)][H][W][block]:
 *   sum[n, k, oh, ow] = bias[k] + sum over c, r, s of (x[n, c, ih, iw] - zero) w[k, c, r, s],
 *   y = saturate(round(scale[k] * sum) + y_zero),
 * or with FLOATS, in f32: y = epilogue((x_scale * scale[k]) * sum + bias[k] + residual),
 * as templates/conv_direct_int8.c computes it, bit for bit, for CPUs that multiply matrices of bytes in registers: see
 * parts/conv_matrices.h. The padding is x's zero point.
 */
#include "kernel.h"
#include "requantise.h"
#include "simd/int8.h"
#include "simd/matrices.h"
#include "simd/simd.h"

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
/* 1: y and the residual are of f32, and x's scale and zero point are known in the run only.
 * legal: 0 1 */
enum { FLOATS = 0 };

typedef uint8_t X;
typedef int32_t Sum;
enum { ELEMENT = 1, Y_BYTES = FLOATS ? 4 : 1 };

typedef struct Extra {
  const float *scale, *bias;
  Finish finish;
  float x_scale; /* with FLOATS */
  uint8_t zero;  /* of x */
} Extra;

#include "parts/conv_window.h"

#include "parts/conv_matrices.h"

static void fill(const Conv *c, uint8_t *out, int64_t pixels) {
  for (int64_t p = 0; p < pixels; p++, out += PIXEL) __builtin_memset(out, c->extra.zero, CHANNELS);
}

/* A line of each pixel after the other: few blocks of x are read at a time. */
SIMD_FUNCTION void copy_pixels(const Conv *c, uint8_t *out, const uint8_t *in, int64_t pixels) {
  (void)c;
  enum { TOGETHER = LINE / IN_BLOCK };
  for (int64_t b = 0; b < IN_BLOCKS; b += TOGETHER, out += TOGETHER * IN_BLOCK) {
    const int64_t blocks = min_i64(TOGETHER, IN_BLOCKS - b);
    for (int64_t p = 0; p < pixels; p++) {
      uint8_t *to = out + p * PIXEL;
      const uint8_t *from = in + b * IN_PLANE + p * IN_STEP_W * IN_BLOCK;
      if (blocks == TOGETHER) {
#pragma clang loop unroll(full)
        for (int64_t i = 0; i < TOGETHER; i++) __builtin_memcpy(to + i * IN_BLOCK, from + i * IN_PLANE, IN_BLOCK);
      } else {
        for (int64_t i = 0; i < blocks; i++) __builtin_memcpy(to + i * IN_BLOCK, from + i * IN_PLANE, IN_BLOCK);
      }
    }
  }
}

SIMD_FUNCTION void add_product(matrices *m, int sums, int pixels, int weights) {
  matrices_dot(m, sums, pixels, weights, SIGNED_X);
}

/* With FLOATS, the product of the weights' sums with the zero point that the run tells. */
SIMD_FUNCTION const int32_t *starts_of(const Conv *c, int64_t vector, int vectors, int32_t *own) {
  const int zero = SIGNED_X ? (int8_t)c->extra.zero : c->extra.zero;
  if (!FLOATS) return c->start + vector * LANES;
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++)
    vint_store(own + v * LANES, vint_mul(vint_load(c->start + (vector + v) * LANES), vint_set(-zero)));
  return own;
}

SIMD_FUNCTION void end_in_floats(const Conv *c, const int32_t *sums, int64_t row, int count, const Target *t) {
  const vec scale = vmul(vset(c->extra.x_scale), vload(c->extra.scale + t->channel));
#pragma clang loop unroll(full)
  for (int i = 0; i < count; i++) {
    const int64_t at = (row + i) * LANES * Y_BYTES;
    vec y = vmul(vint_to_float(vint_load(sums + (row + i) * LANES)), scale);
    if (BIAS) y = vadd(y, vload(c->extra.bias + t->channel));
    if (RESIDUAL) y = vadd(y, vload((const float *)(t->residual + at)));
    vstore((float *)(t->y + at), epilogue(y));
  }
}

SIMD_FUNCTION void end_rows(const Conv *c, const int32_t *sums, int64_t row, int count, const Target *t) {
  if (FLOATS) {
    end_in_floats(c, sums, row, count, t);
    return;
  }
  vec scale = vload(c->extra.scale + t->channel), scaled[4];
#pragma clang loop unroll(full)
  for (int i = 0; i < count; i++) scaled[i] = vmul(vint_to_float(vint_load(sums + (row + i) * LANES)), scale);
  requantise(scaled, count, RESIDUAL ? t->residual + row * LANES : NULL, t->y + row * LANES, STEP, BOUNDS, SIGNED_Y,
             &c->extra.finish);
}

static inline Extra extra_of(const Extra *all, int64_t channel) {
  Extra extra = *all;
  extra.scale += channel;
  if (BIAS) extra.bias += channel;
  return extra;
}

#include "parts/conv_matrices_order.h"

/* x: blocked by IN_BLOCK, residual, y: by LANES; lanes past the last channel may have any value, and multiply weights
 * of zero. Images are x_image, residual_image and y_image elements apart. start, scale: whole blocks. x_zero: as a byte
 * of x. finish: the fields of Finish, in order. With FLOATS bias is as scale, or NULL; start has the sums of weights;
 * x_scale and x_point, its zero point, are of one element, which NULL says to be 0. scratch: a slot for each of `slots`
 * workers, `slot` bytes apart: the strip, of strip_bytes bytes, and sums. Workers past `slots` have nothing to do.
 * kernels: output channels of each of `parts` parts. */
static void conv_matrices_int8(const Team *team, const uint8_t *x, const int8_t *w, const int32_t *start,
                               const float *scale, const float *bias, const float *x_scale, const uint8_t *x_point,
                               const uint8_t *residual, uint8_t *y, const float *finish, uint8_t *scratch, int64_t n,
                               int64_t x_image, int64_t residual_image, int64_t y_image, int64_t x_zero,
                               int64_t kernels, int64_t parts, int64_t strip_bytes, int64_t slots, int64_t slot) {
  int64_t workers = min_i64(slots, team->size), rank = min_i64(team->rank, slots - 1);
  uint8_t *own = scratch + rank * slot;
  Conv c = {.x = x,
            .residual = residual,
            .w = (const uint8_t *)w,
            .start = start,
            .y = y,
            .strip = own,
            .sums = (int32_t *)(own + strip_bytes),
            .vectors = ceil_div(kernels, LANES),
            .x_image = x_image,
            .residual_image = residual_image,
            .y_image = y_image,
            .extra = {.scale = scale, .bias = bias, .zero = (uint8_t)x_zero}};
  if (!FLOATS) c.extra.finish = finish_of(finish);
  if (FLOATS) c.extra.x_scale = *x_scale;
  if (FLOATS) c.extra.zero = x_point ? *x_point : 0;
  run_share(team, &c, n, parts, workers);
}
