/* SPDX-License-Identifier: MIT */
/* A specialised Winograd convolution, and its knobs. */
#ifndef CONV_WINOGRAD_CHECK_H
#define CONV_WINOGRAD_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/conv/winograd_weights.h"
#include "team.h"

typedef void WinogradKernel(const Team *team, const float *x, const float *weights, const float *bias,
                            const float *residual, float *y, float *scratch, int64_t n, int64_t channels,
                            int64_t kernels, int64_t x_image, int64_t residual_image, int64_t y_image,
                            int64_t block_tiles, int64_t input_point, int64_t product_point, int64_t slots,
                            int64_t slot);

typedef struct WinogradVariant {
  const char *name;
  WinogradForm form;
  int lanes, oc_vectors, oc_tail;
  int64_t in_h, in_w, out_h, out_w, pad_top, pad_left;
  int pool;
  bool by_groups, bias, residual;
  WinogradKernel *kernel;
} WinogradVariant;

extern const WinogradVariant *const winograd_variants[]; /* NULL-terminated */

#endif
