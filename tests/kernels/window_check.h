/* SPDX-License-Identifier: MIT */
/* A kernel that slides a window over blocked tensors, and its knobs. */
#ifndef WINDOW_CHECK_H
#define WINDOW_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "team.h"

typedef enum WindowKind { WINDOW_MAX, WINDOW_MEAN, WINDOW_MEAN_WITH_PADDING, WINDOW_DEPTHWISE } WindowKind;

/* w, bias and residual belong to the convolution. n images. */
typedef void WindowKernel(const Team *team, const float *x, const float *w, const float *bias, const float *residual,
                          float *y, int64_t n, int64_t channels, int64_t x_image, int64_t residual_image,
                          int64_t y_image);

typedef struct WindowVariant {
  const char *name;
  WindowKind kind;
  int lanes;
  int64_t n, channels;
  int64_t in[2], out[2], window[2], stride[2], dilation[2], pad_begin[2], pad_end[2]; /* rows, columns */
  bool bias, residual;                                                                /* result: twice the sum */
  WindowKernel *run;
} WindowVariant;

extern const WindowVariant *const window_variants[]; /* NULL-terminated */

#endif
