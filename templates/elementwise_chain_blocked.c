/* SPDX-License-Identifier: MIT */
/*
 * A chain of element-wise ops in f32 on tensors of layout NCHW[x]c, x = LANES: elementwise_chain.c on vectors that are
 * the channels of one pixel. Lanes past the last channel may have any value.
 */
#include "bands.h"
#include "chain.h"
#include "kernel.h"

/* legal: 1..8 */
enum { OPERANDS = 1 };
/* legal: 1..32 */
enum { RESULTS = 1 };

/* hook: computes one pixel of a block of channels: element `at` of the operands that have as many, `pixel` of those
 * that are the same for all channels. */
SIMD_FUNCTION void chain(const float *const *in, float *const *out, int64_t at, int64_t pixel) {
  (void)pixel;
  vstore(out[0] + at, vload(in[0] + at));
}

/* Copies of the pointers, which no store can change. */
static void piece(const float *const *operands, float *const *results, int64_t begin, int64_t end) {
  const float *in[OPERANDS];
  float *out[RESULTS];
  for (int k = 0; k < OPERANDS; k++) in[k] = operands[k];
  for (int k = 0; k < RESULTS; k++) out[k] = results[k];
  for (int64_t pixel = begin; pixel < end; pixel++) chain(in, out, pixel * LANES, pixel);
}

/* n images of `blocks` blocks of `pixels` vectors. image_strides and block_strides: in floats, of each operand, then of
 * each result. */
static void elementwise_chain_blocked(const Team *team, const void *const *operands, void *const *results, int64_t n,
                                      int64_t blocks, int64_t pixels, const int64_t *image_strides,
                                      const int64_t *block_strides) {
  Bands bands = bands_of(team, n, pixels, blocks);
  for (int64_t image = 0; image < n; image++) {
    for (int64_t block = 0; block < blocks; block++) {
      const float *in[OPERANDS];
      float *out[RESULTS];
      for (int k = 0; k < OPERANDS; k++)
        in[k] = (const float *)operands[k] + image * image_strides[k] + block * block_strides[k];
      for (int k = 0; k < RESULTS; k++)
        out[k] = (float *)results[k] + image * image_strides[OPERANDS + k] + block * block_strides[OPERANDS + k];
      piece(in, out, band_begin(&bands, image, block), band_end(&bands, image, block));
    }
  }
}
