/* SPDX-License-Identifier: MIT */
/* A direct convolution, ordinary or transposed, with its knobs set, what it computes, and its order of computation. */
#ifndef CONV_DIRECT_CHECK_H
#define CONV_DIRECT_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "team.h"

typedef void DirectKernel(const Team *team, const float *x, const float *w, const float *bias, const float *residual,
                          float *y, const float *scale, const float *shift, float *scratch, int64_t n, int64_t x_image,
                          int64_t residual_image, int64_t y_image, int64_t channels, int64_t kernels,
                          int64_t group_channels, int64_t group_kernels, int64_t span, int64_t group_chunk,
                          int64_t tile_chunk, int64_t pass, int64_t panels, int64_t slots, int64_t slot);

typedef struct DirectVariant {
  const char *name;
  DirectKernel *kernel;
  int lanes, in_block, out_block, oc_vectors, wide;
  bool bias, residual, prologue, transposed, depthwise;
  int64_t n, channels, kernels, groups; /* of the whole convolution */
  int64_t in_h, in_w, out_h, out_w, window_h, window_w, stride_h, stride_w, dilation_h, dilation_w, top, left;
  int64_t group_chunk, tile_chunk, pass;
} DirectVariant;

extern const DirectVariant *const direct_variants[]; /* NULL-terminated */

#endif
