/* SPDX-License-Identifier: MIT */
/*
 * Maximum or mean over windows, NCHW. An output row is filled in place, window point by window point: each is one
 * vectorised sweep over the columns whose point lies in the input. NaN in a window makes the result NaN.
 */
#include "kernel.h"

/* legal: 1..65536 */
enum { WINDOW_H = 2 };
/* legal: 1..65536 */
enum { WINDOW_W = 2 };
/* legal: 1..65536 */
enum { STRIDE_H = 2 };
/* legal: 1..65536 */
enum { STRIDE_W = 2 };
/* legal: 1..65536 */
enum { DILATION_H = 1 };
/* legal: 1..65536 */
enum { DILATION_W = 1 };
/* 0: maximum; 1: mean over the points in the input; 2: mean over those in the input and its padding.
 * legal: 0 1 2 */
enum { KIND = 0 };

typedef struct Pool {
  const float *x;
  float *y;
  int64_t height, width, out_h, out_w;
  int64_t top, left, bottom, right; /* padding */
} Pool;

static inline float larger(float a, float b) { return a > b || a != a ? a : b; }

/* Window points at output o that lie between -head and length + tail. */
static inline int64_t points(int64_t o, int64_t kernel, int64_t stride, int64_t dilation, int64_t length, int64_t head,
                             int64_t tail, int64_t from) {
  int64_t begin = o * stride - head;
  int64_t skipped = begin < from ? ceil_div(from - begin, dilation) : 0;
  int64_t reached = length + tail > begin ? ceil_div(length + tail - begin, dilation) : 0;
  return max_i64(0, min_i64(kernel, reached) - skipped);
}

/* One window point over a row: columns whose input column o * STRIDE_W + first is in 0..width-1. */
static void sweep(const float *restrict x, float *restrict y, int64_t first, int64_t width, int64_t out_w) {
  int64_t begin = first < 0 ? ceil_div(-first, STRIDE_W) : 0;
  int64_t end = first < width ? min_i64(ceil_div(width - first, STRIDE_W), out_w) : 0;
  for (int64_t o = begin; o < end; o++) {
    float in = x[o * STRIDE_W + first];
    y[o] = KIND == 0 ? larger(y[o], in) : y[o] + in;
  }
}

/* Divides columns begin..end-1, whose windows all count the same points or are counted one by one. */
static void divide_columns(const Pool *p, float *y, int64_t in_rows, int64_t begin, int64_t end, bool alike) {
  bool padded = KIND == 2;
  for (int64_t o = begin; o < end; o++) {
    int64_t in_columns = alike ? WINDOW_W
                               : points(o, WINDOW_W, STRIDE_W, DILATION_W, p->width, p->left, padded ? p->right : 0,
                                        padded ? -p->left : 0);
    y[o] /= (float)(in_rows * in_columns);
  }
}

/* Columns first..last-1 have their whole window in the input. */
static void divide_row(const Pool *p, float *y, int64_t row) {
  bool padded = KIND == 2;
  int64_t in_rows =
      points(row, WINDOW_H, STRIDE_H, DILATION_H, p->height, p->top, padded ? p->bottom : 0, padded ? -p->top : 0);
  int64_t room = p->width + p->left - (WINDOW_W - 1) * DILATION_W; /* window starts that end inside */
  int64_t first = min_i64(ceil_div(p->left, STRIDE_W), p->out_w);
  int64_t last = max_i64(first, min_i64(room > 0 ? ceil_div(room, STRIDE_W) : 0, p->out_w));
  divide_columns(p, y, in_rows, 0, first, false);
  divide_columns(p, y, in_rows, first, last, true);
  divide_columns(p, y, in_rows, last, p->out_w, false);
}

static void pool_row(const Pool *p, int64_t plane, int64_t row) {
  const float *x = p->x + plane * p->height * p->width;
  float *y = p->y + (plane * p->out_h + row) * p->out_w;
  for (int64_t o = 0; o < p->out_w; o++) y[o] = KIND == 0 ? -__builtin_inff() : 0;
  for (int64_t r = 0; r < WINDOW_H; r++) {
    int64_t from = row * STRIDE_H - p->top + r * DILATION_H;
    if (from < 0 || from >= p->height) continue;
    for (int64_t s = 0; s < WINDOW_W; s++) sweep(x + from * p->width, y, s * DILATION_W - p->left, p->width, p->out_w);
  }
  if (KIND != 0) divide_row(p, y, row);
}

/* x: [planes, height, width]; y: [planes, out_h, out_w]. */
static void pool2d(const Team *team, const float *x, float *y, int64_t planes, int64_t height, int64_t width,
                   int64_t out_h, int64_t out_w, int64_t top, int64_t left, int64_t bottom, int64_t right) {
  Pool pool = {.x = x,
               .y = y,
               .height = height,
               .width = width,
               .out_h = out_h,
               .out_w = out_w,
               .top = top,
               .left = left,
               .bottom = bottom,
               .right = right};
  int64_t item, end;
  team_share(team, planes * out_h, &item, &end);
  for (; item < end; item++) pool_row(&pool, item / out_h, item % out_h);
}
