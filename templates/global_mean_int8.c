/* SPDX-License-Identifier: MIT */
/*
 * The mean of all pixels of each channel of a tensor of bytes, in another scale. The lanes of a vector are channels of
 * a pixel, of tensors in blocks or with the channels last; or pixels of a channel, of row-major tensors. Sums are of
 * integers, so their order is free: PARTS of them hide the latency of an addition.
 */
#include "kernel.h"
#include "mean_int8.h"
#include "simd/int8.h"
#include "simd/simd.h"

/* 1: lanes are pixels, which stand side by side, as the channels' rows do; else channels.
 * legal: 0 1 */
enum { BY_PIXELS = 0 };
/* Elements are of i8, else of u8.
 * legal: 0 1 */
enum { SIGNED = 0 };

enum { PARTS = 4 };

/* Of `count` vectors, `step` bytes apart, the first n lanes. */
SIMD_FUNCTION vint sum_vectors(const uint8_t *x, int64_t count, int64_t step, int n) {
  vint part[PARTS];
#pragma clang loop unroll(full)
  for (int i = 0; i < PARTS; i++) part[i] = vint_zero();
  int64_t at = 0;
  for (; at + PARTS <= count; at += PARTS) {
#pragma clang loop unroll(full)
    for (int i = 0; i < PARTS; i++) part[i] = vint_add(part[i], bytes_load(x + (at + i) * step, n, SIGNED));
  }
  for (; at < count; at++) part[0] = vint_add(part[0], bytes_load(x + at * step, n, SIGNED));
  return vint_add(vint_add(part[0], part[1]), vint_add(part[2], part[3]));
}

/* The sums of `lanes` channels. Blocks have whole vectors. */
SIMD_FUNCTION vint sum_channels(const uint8_t *x, int lanes, int64_t pixels, int64_t step) {
  bool whole = lanes == LANES || step == LANES;
  return whole ? sum_vectors(x, pixels, step, LANES) : sum_vectors(x, pixels, step, lanes);
}

/* The same of rows of pixels. */
static vint sum_rows(const uint8_t *x, int lanes, int64_t pixels) {
  int32_t sums[LANES];
  int64_t vectors = pixels / LANES;
  int rest = (int)(pixels % LANES);
  for (int lane = 0; lane < lanes; lane++, x += pixels) {
    vint sum = sum_vectors(x, vectors, LANES, LANES);
    if (rest) sum = vint_add(sum, bytes_load(x + vectors * LANES, rest, SIGNED));
    sums[lane] = vint_hsum(sum);
  }
  return vint_load_n(sums, lanes);
}

/* y: [n][channels], an image y_image behind the other. x: LANES channels x_vector behind those before, a pixel x_pixel
 * behind the one before; BY_PIXELS: of one image of [channels][pixels]. The rest as mean_int8.h has it. Lanes past the
 * channels are not written. */
static void global_mean_int8(const Team *team, const uint8_t *x, uint8_t *y, int64_t n, int64_t channels,
                             int64_t pixels, int64_t x_image, int64_t x_vector, int64_t x_pixel, int64_t y_image,
                             int64_t x_zero, float factor, int64_t before, int64_t behind) {
  const Mean mean = mean_with(SIGNED, x_zero, factor, before, behind);
  int64_t vectors = ceil_div(channels, LANES), item, end;
  team_share(team, n * vectors, &item, &end);
  for (; item < end; item++) {
    int64_t image = item / vectors, vector = item % vectors;
    const uint8_t *first = x + image * x_image + vector * x_vector;
    int lanes = (int)min_i64(LANES, channels - vector * LANES);
    vint sum = BY_PIXELS ? sum_rows(first, lanes, pixels) : sum_channels(first, lanes, pixels, x_pixel);
    bytes_store(y + image * y_image + vector * LANES, mean_of(sum, pixels, pixels, &mean), lanes, SIGNED);
  }
}
