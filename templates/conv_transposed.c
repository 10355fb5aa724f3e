/* SPDX-License-Identifier: MIT */
/*
 * Transposed convolution in NCDHW, of any extents: y[n, k, od, oh, ow] = epilogue(bias[k] + sum over c, q, r, s of
 * x[n, c, id, ih, iw] w[c, k, q, r, s], where ih STRIDE_H + r DILATION_H = oh + top, and likewise for the others).
 *
 * A row of the output is filled in place: for each channel and window point one sweep over the columns of the input
 * row that it takes, which lie STRIDE_W apart in the output. No other row is written, so rows can be shared out.
 */
#include "kernel.h"
#include "simd/math.h"
#include "simd/simd.h"
#include "windows.h"

/* Q.
 * legal: 1..65536 */
enum { WINDOW_D = 1 };
/* R.
 * legal: 1..65536 */
enum { WINDOW_H = 3 };
/* S.
 * legal: 1..65536 */
enum { WINDOW_W = 3 };
/* legal: 1..65536 */
enum { STRIDE_D = 1 };
/* legal: 1..65536 */
enum { STRIDE_H = 2 };
/* legal: 1..65536 */
enum { STRIDE_W = 2 };
/* legal: 1..65536 */
enum { DILATION_D = 1 };
/* legal: 1..65536 */
enum { DILATION_H = 1 };
/* legal: 1..65536 */
enum { DILATION_W = 1 };
/* legal: 0 1 */
enum { BIAS = 1 };

/* A group is `channels` inputs and `kernels` outputs. */
typedef struct Transposed {
  const float *x, *w, *bias;
  float *y;
  int64_t groups, channels, kernels;
  int64_t in_d, in_h, in_w, out_d, out_h, out_w;
  int64_t front, top, left; /* cropped from the output */
} Transposed;

/* hook: maps an element of the result; x and the result are one vector of columns. */
static inline vec epilogue(vec x) { return x; }

/* Window point s of one input row: columns begin..end-1 are inside the output. */
static void sweep(const Transposed *t, const float *restrict x, float w, float *restrict y, int64_t s) {
  int64_t first = s * DILATION_W - t->left; /* the output column of input column 0 */
  int64_t begin = points_before(first, t->in_w, STRIDE_W, 0);
  int64_t end = points_before(first, t->in_w, STRIDE_W, t->out_w);
  for (int64_t i = begin; i < end; i++) y[i * STRIDE_W + first] += x[i] * w;
}

static void finish_row(const Transposed *t, float *y) {
  int64_t i = 0;
  for (; i + LANES <= t->out_w; i += LANES) vstore(y + i, epilogue(vload(y + i)));
  int rest = (int)(t->out_w - i);
  if (rest) vstore_n(y + i, epilogue(vload_n(y + i, rest)), rest);
}

/* The input index of which window point k writes output `o`; -1: none. */
static inline int64_t source_of(int64_t o, int64_t k, int64_t stride, int64_t dilation, int64_t cut, int64_t in) {
  int64_t from = o + cut - k * dilation;
  return from < 0 || from % stride || from / stride >= in ? -1 : from / stride;
}

/* Row `row` of plane `plane` of channel k; `image` counts the groups of all images. */
static void transposed_row(const Transposed *t, int64_t image, int64_t k, int64_t plane, int64_t row) {
  int64_t group = image % t->groups;
  float *y = t->y + (((image * t->kernels + k) * t->out_d + plane) * t->out_h + row) * t->out_w;
  float bias = BIAS ? t->bias[group * t->kernels + k] : 0;
  for (int64_t o = 0; o < t->out_w; o++) y[o] = bias;
  for (int64_t c = 0; c < t->channels; c++) {
    const float *w = t->w + ((group * t->channels + c) * t->kernels + k) * WINDOW_D * WINDOW_H * WINDOW_W;
    for (int64_t qr = 0; qr < WINDOW_D * WINDOW_H; qr++) {
      int64_t depth = source_of(plane, qr / WINDOW_H, STRIDE_D, DILATION_D, t->front, t->in_d);
      int64_t height = source_of(row, qr % WINDOW_H, STRIDE_H, DILATION_H, t->top, t->in_h);
      if (depth < 0 || height < 0) continue;
      const float *x = t->x + (((image * t->channels + c) * t->in_d + depth) * t->in_h + height) * t->in_w;
      for (int64_t s = 0; s < WINDOW_W; s++) sweep(t, x, w[qr * WINDOW_W + s], y, s);
    }
  }
  finish_row(t, y);
}

/* x: [n, groups * channels, in_d, in_h, in_w]; w: [groups * channels, kernels, Q, R, S]; y: [n, groups * kernels,
 * out_d, out_h, out_w]. */
static void conv_transposed(const Team *team, const float *x, const float *w, const float *bias, float *y, int64_t n,
                            int64_t groups, int64_t channels, int64_t kernels, int64_t in_d, int64_t in_h, int64_t in_w,
                            int64_t out_d, int64_t out_h, int64_t out_w, int64_t front, int64_t top, int64_t left) {
  Transposed transposed = {.x = x,
                           .w = w,
                           .bias = bias,
                           .y = y,
                           .groups = groups,
                           .channels = channels,
                           .kernels = kernels,
                           .in_d = in_d,
                           .in_h = in_h,
                           .in_w = in_w,
                           .out_d = out_d,
                           .out_h = out_h,
                           .out_w = out_w,
                           .front = front,
                           .top = top,
                           .left = left};
  int64_t item, end;
  team_share(team, n * groups * kernels * out_d * out_h, &item, &end);
  for (; item < end; item++) {
    int64_t plane = item / out_h, channel = plane / out_d;
    transposed_row(&transposed, channel / kernels, channel % kernels, plane % out_d, item % out_h);
  }
}
