/* SPDX-License-Identifier: MIT */
/*
 * Mean over windows of tensors of bytes in another scale, NCDHW. COLUMNS outputs of a row are summed up at once, window
 * point by window point: each is one sweep over the columns whose point lies in the input.
 */
#include "kernel.h"
#include "knobs.h"
#include "mean_int8.h"

/* legal: 1..65536 */
enum { WINDOW_D = 1 };
/* legal: 1..65536 */
enum { WINDOW_H = 2 };
/* legal: 1..65536 */
enum { WINDOW_W = 2 };
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
/* POOL_MEAN or POOL_MEAN_WITH_PADDING.
 * legal: 1 2 */
enum { KIND = POOL_MEAN };
/* legal: uint8_t int8_t */
typedef uint8_t T;

enum { SIGNED = (T)-1 < 0, COLUMNS = 64 };

typedef struct Pool {
  const T *x;
  T *y;
  int64_t depth, height, width, out_d, out_h, out_w;
  int64_t front, top, left, back, bottom, right; /* padding */
  Mean mean;
} Pool;

/* Of a window along an axis: points in the input, and points that count. */
typedef struct Points {
  int64_t inside, counted;
} Points;

/* Points of a window that begins at `from` which lie before `limit`. */
static inline int64_t points_before(int64_t from, int64_t points, int64_t step, int64_t limit) {
  return from < limit ? min_i64(points, ceil_div(limit - from, step)) : 0;
}

static inline Points points_of(int64_t from, int64_t points, int64_t step, int64_t extent, int64_t tail) {
  Points of = {.inside = points_before(from, points, step, extent) - points_before(from, points, step, 0)};
  of.counted = KIND == POOL_MEAN_WITH_PADDING ? points_before(from, points, step, extent + tail) : of.inside;
  return of;
}

/* One window point over outputs 0..count-1, the first of which reads input column `first`. */
static void sweep(const T *restrict x, int32_t *restrict sums, int64_t first, int64_t width, int64_t count) {
  int64_t begin = first < 0 ? ceil_div(-first, STRIDE_W) : 0;
  int64_t end = first < width ? min_i64(ceil_div(width - first, STRIDE_W), count) : 0;
  for (int64_t o = begin; o < end; o++) sums[o] += x[o * STRIDE_W + first];
}

/* Sums of outputs column..column + count - 1 of a row. */
static void sum_windows(const Pool *p, int32_t *sums, int64_t volume, int64_t plane, int64_t row, int64_t column,
                        int64_t count) {
  for (int64_t o = 0; o < COLUMNS; o++) sums[o] = 0;
  for (int64_t q = 0; q < WINDOW_D; q++) {
    int64_t depth = plane * STRIDE_D - p->front + q * DILATION_D;
    if (depth < 0 || depth >= p->depth) continue;
    for (int64_t r = 0; r < WINDOW_H; r++) {
      int64_t height = row * STRIDE_H - p->top + r * DILATION_H;
      if (height < 0 || height >= p->height) continue;
      const T *x = p->x + ((volume * p->depth + depth) * p->height + height) * p->width;
      for (int64_t s = 0; s < WINDOW_W; s++)
        sweep(x, sums, column * STRIDE_W + s * DILATION_W - p->left, p->width, count);
    }
  }
}

/* Outputs of a row from `column` on, of windows that are alike. */
static void store_means(const Mean *mean, const int32_t *sums, T *y, int64_t count, int64_t inside, int64_t points) {
  for (int64_t o = 0; o < count; o += LANES) {
    int n = (int)min_i64(LANES, count - o);
    bytes_store((uint8_t *)y + o, mean_of(vint_load_n(sums + o, n), inside, points, mean), n, SIGNED);
  }
}

/* Windows that lie in the input are finished together, others one by one. */
static void finish_columns(const Pool *p, const int32_t *sums, T *y, int64_t column, int64_t count, Points rows) {
  const Mean mean = p->mean;
  int64_t room = max_i64(p->width + p->left - (int64_t)(WINDOW_W - 1) * DILATION_W, 0); /* where windows end inside */
  int64_t whole_end = min_i64(count, ceil_div(room, STRIDE_W) - column);
  for (int64_t o = 0, end; o < count; o = end) {
    Points columns = points_of((column + o) * STRIDE_W - p->left, WINDOW_W, DILATION_W, p->width, p->right);
    end = columns.inside == WINDOW_W ? whole_end : o + 1;
    store_means(&mean, sums + o, y + o, end - o, rows.inside * columns.inside, rows.counted * columns.counted);
  }
}

static void pool_row(const Pool *p, int64_t volume, int64_t plane, int64_t row) {
  int32_t sums[COLUMNS];
  T *y = p->y + ((volume * p->out_d + plane) * p->out_h + row) * p->out_w;
  Points planes = points_of(plane * STRIDE_D - p->front, WINDOW_D, DILATION_D, p->depth, p->back);
  Points rows = points_of(row * STRIDE_H - p->top, WINDOW_H, DILATION_H, p->height, p->bottom);
  rows.inside *= planes.inside;
  rows.counted *= planes.counted;
  for (int64_t column = 0; column < p->out_w; column += COLUMNS) {
    int64_t count = min_i64(COLUMNS, p->out_w - column);
    sum_windows(p, sums, volume, plane, row, column, count);
    finish_columns(p, sums, y + column, column, count, rows);
  }
}

/* x: [volumes, depth, height, width]; y: [volumes, out_d, out_h, out_w]. pads: front, top, left, back, bottom, right.
 * The rest as mean_int8.h has it. */
static void mean_pool_int8(const Team *team, const T *x, T *y, int64_t volumes, int64_t depth, int64_t height,
                           int64_t width, int64_t out_d, int64_t out_h, int64_t out_w, const int64_t *pads,
                           int64_t x_zero, float factor, int64_t before, int64_t behind) {
  Pool pool = {.x = x,
               .y = y,
               .depth = depth,
               .height = height,
               .width = width,
               .out_d = out_d,
               .out_h = out_h,
               .out_w = out_w,
               .front = pads[0],
               .top = pads[1],
               .left = pads[2],
               .back = pads[3],
               .bottom = pads[4],
               .right = pads[5],
               .mean = mean_with(SIGNED, x_zero, factor, before, behind)};
  int64_t item, end;
  team_share(team, volumes * out_d * out_h, &item, &end);
  for (; item < end; item++) pool_row(&pool, item / out_h / out_d, item / out_h % out_d, item % out_h);
}
