/* SPDX-License-Identifier: MIT */
/*
 * y = op(a, b, c) in f32 on tensors of layout NCHW[x]c, x = LANES: a vector is the channels of one pixel. An operand
 * may be the same for all pixels (a scale of each channel), for all channels (a mask over pixels, in row-major layout),
 * or for both. Lanes past the last channel may have any value.
 */
#include "bands.h"
#include "kernel.h"
#include "simd/math.h"

/* Operands; others are not read.
 * legal: 1..3 */
enum { OPERANDS = 2 };
/* 1: the operand has an element for each pixel, for each channel; 0: it is broadcast.
 * legal: 0 1 */
enum { A_PIXELS = 1 };
/* legal: 0 1 */
enum { A_CHANNELS = 1 };
/* legal: 0 1 */
enum { B_PIXELS = 0 };
/* legal: 0 1 */
enum { B_CHANNELS = 1 };
/* legal: 0 1 */
enum { C_PIXELS = 1 };
/* legal: 0 1 */
enum { C_CHANNELS = 1 };
/* hook: the operation on one vector of each operand. */
static inline vec op(vec a, vec b, vec c) {
  (void)c;
  return vadd(a, b);
}

SIMD_FUNCTION vec load(const float *p, int pixels, int channels, int64_t pixel) {
  const float *at = p + (pixels ? pixel * (channels ? LANES : 1) : 0);
  return channels ? vload(at) : vbroadcast_load(at);
}

/* Pixels begin .. end of one block of channels. */
static void piece(const float *a, const float *b, const float *c, float *y, int64_t begin, int64_t end) {
  for (int64_t pixel = begin; pixel < end; pixel++) {
    vec va = load(a, A_PIXELS, A_CHANNELS, pixel), vb = vzero(), vc = vzero();
    if (OPERANDS > 1) vb = load(b, B_PIXELS, B_CHANNELS, pixel);
    if (OPERANDS > 2) vc = load(c, C_PIXELS, C_CHANNELS, pixel);
    vstore(y + pixel * LANES, op(va, vb, vc));
  }
}

/* y: n images of `blocks` blocks of `pixels` vectors. Strides in floats: from image to image, from block to block. */
static void elementwise_blocked(const Team *team, const float *a, const float *b, const float *c, float *y, int64_t n,
                                int64_t blocks, int64_t pixels, int64_t a_image, int64_t a_block, int64_t b_image,
                                int64_t b_block, int64_t c_image, int64_t c_block, int64_t y_image) {
  Bands bands = bands_of(team, n, pixels, blocks);
  for (int64_t image = 0; image < n; image++) {
    for (int64_t block = 0; block < blocks; block++) {
      piece(a + image * a_image + block * a_block, b + image * b_image + block * b_block,
            c + image * c_image + block * c_block, y + image * y_image + block * pixels * LANES,
            band_begin(&bands, image, block), band_end(&bands, image, block));
    }
  }
}
