/* SPDX-License-Identifier: MIT */
/*
 * Mean over windows of tensors of bytes in another scale, NCDHW. Sums are of bytes less the zero point, so that points
 * in the padding are zeros. COLUMNS outputs of a row are made at once.
 *
 * Where few bytes lie between the first column of their windows and the last, the rows of the windows are added up
 * first, into one number for each column of input; then the columns of each window. Else each window point is one sweep
 * over the outputs whose point lies in the input.
 */
#include "kernel.h"
#include "knobs.h"
#include "mean_int8.h"
#include "strided.h"
#include "windows.h"

#include "parts/pool_windows.h"

/* POOL_MEAN or POOL_MEAN_WITH_PADDING.
 * legal: 1 2 */
enum { KIND = POOL_MEAN };
/* legal: uint8_t int8_t */
typedef uint8_t T;

/* Are rows added up first? Sums of bytes less the zero point are exact in f32 then.
 * legal: 0 1 */
enum { ROWS_FIRST = 1 };

enum { SIGNED = (T)-1 < 0, COLUMNS = POOL_COLUMNS };

/* Rows of output for which what is known of their columns is found once. */
enum { BAND = 256 };

/* Input columns of COLUMNS outputs, one that is loaded beside them, and a vector that may be written past them. */
enum { SPAN = ROWS_FIRST ? (COLUMNS - 1) * STRIDE_W + (WINDOW_W - 1) * DILATION_W + 2 + LANES : 1 };

typedef struct Pool {
  const T *x;
  T *y;
  int64_t depth, height, width, out_d, out_h, out_w;
  int64_t front, top, left, back, bottom, right; /* padding */
  Mean mean;
} Pool;

/* Of a window along an axis: points before the input, points in it, and points that count. */
typedef struct Points {
  int64_t skipped, inside, counted;
} Points;

static inline Points points_of(int64_t from, int64_t points, int64_t step, int64_t extent, int64_t tail) {
  Points of = {.skipped = points_before(from, points, step, 0)};
  of.inside = points_before(from, points, step, extent) - of.skipped;
  of.counted = KIND == POOL_MEAN_WITH_PADDING ? points_before(from, points, step, extent + tail) : of.inside;
  return of;
}

/* Outputs first..first + count - 1 of any row. */
typedef struct Columns {
  int64_t first, count;
  float points[COLUMNS]; /* of the window's columns: how many count */
} Columns;

static Columns columns_from(const Pool *p, int64_t first) {
  Columns columns = {.first = first, .count = min_i64(COLUMNS, p->out_w - first)};
  for (int64_t o = 0; o < columns.count; o++) {
    int64_t from = (first + o) * STRIDE_W - p->left;
    columns.points[o] = (float)points_of(from, WINDOW_W, DILATION_W, p->width, p->right).counted;
  }
  return columns;
}

/* The rows of an output row's windows that lie in the input: `planes` times `rows` of them, from x on. */
typedef struct Rows {
  const T *x;
  int64_t planes, rows, width, row, plane; /* row, plane: elements from one to the next */
  int64_t points;                          /* of the window's rows: how many count */
} Rows;

static Rows rows_of(const Pool *p, int64_t volume, int64_t out_plane, int64_t out_row) {
  int64_t depth = out_plane * STRIDE_D - p->front, height = out_row * STRIDE_H - p->top;
  Points planes = points_of(depth, WINDOW_D, DILATION_D, p->depth, p->back);
  Points rows = points_of(height, WINDOW_H, DILATION_H, p->height, p->bottom);
  int64_t plane = volume * p->depth + depth + planes.skipped * DILATION_D;
  return (Rows){.x = p->x + (plane * p->height + height + rows.skipped * DILATION_H) * p->width,
                .planes = planes.inside,
                .rows = rows.inside,
                .width = p->width,
                .row = DILATION_H * p->width,
                .plane = DILATION_D * p->height * p->width,
                .points = planes.counted * rows.counted};
}

/* Where the vector of i..end - 1 begins: the last one may overlap that before, so that it is whole. */
static inline int64_t whole_vector(int64_t i, int64_t begin, int64_t end) {
  return max_i64(begin, min_i64(i, end - LANES));
}

/* Of outputs o.. of a row, the first n lanes. */
SIMD_FUNCTION void store_means(T *y, int64_t o, int n, vec sum, const Rows *rows, const Columns *columns,
                               const Mean *mean) {
  vec points = vmul(vset((float)rows->points), vload(columns->points + o));
  bytes_store((uint8_t *)y + o, mean_of_sum(sum, points, mean), n, SIGNED);
}

/* ---- rows first, then columns ---- */

SIMD_FUNCTION vec sum_rows(const Rows *rows, int64_t column, int n, int64_t x_zero) {
  vint sum = vint_set((int32_t)(-rows->planes * rows->rows * x_zero));
  for (int64_t q = 0; q < rows->planes; q++) {
    for (int64_t r = 0; r < rows->rows; r++) {
      const T *x = rows->x + q * rows->plane + r * rows->row + column;
      sum = vint_add(sum, bytes_load((const uint8_t *)x, n, SIGNED));
    }
  }
  return vint_to_float(sum);
}

/* down[i]: of column first + i, of which there are `count`. */
SIMD_FUNCTION void sum_span(const Rows *rows, float down[SPAN], int64_t first, int64_t count, int64_t x_zero) {
  int64_t begin = min_i64(max_i64(-first, 0), count), end = max_i64(begin, min_i64(rows->width - first, count));
  int n = (int)min_i64(LANES, end - begin);
  for (int64_t i = begin; i < end; i += LANES) {
    int64_t at = whole_vector(i, begin, end);
    vstore(down + at, sum_rows(rows, first + at, n, x_zero));
  }
  for (int64_t i = 0; i < begin; i += LANES) vstore_n(down + i, vzero(), (int)min_i64(LANES, begin - i));
  for (int64_t i = end; i < count; i += LANES) vstore(down + i, vzero());
}

static void rows_first(const Pool *p, const Rows *rows, const Columns *columns, T *y) {
  const Mean mean = p->mean;
  float down[SPAN];
  int64_t count = columns->count;
  int64_t reach = (count - 1) * STRIDE_W + (int64_t)(WINDOW_W - 1) * DILATION_W + 1;
  sum_span(rows, down, columns->first * STRIDE_W - p->left, reach, mean.x_zero);
  int n = (int)min_i64(LANES, count);
  for (int64_t i = 0; i < count; i += LANES) {
    int64_t o = whole_vector(i, 0, count);
    vec sum = load_strided(down + o * STRIDE_W, STRIDE_W);
    for (int64_t s = 1; s < WINDOW_W; s++)
      sum = vadd(sum, load_strided(down + o * STRIDE_W + s * DILATION_W, STRIDE_W));
    store_means(y, o, n, sum, rows, columns, &mean);
  }
}

/* ---- by sweeps ---- */

/* One window point over outputs 0..count-1, the first of which reads input column `first`. */
static void sweep(const T *restrict x, int32_t *restrict sums, int64_t first, int64_t width, int64_t count,
                  int32_t x_zero) {
  int64_t begin = points_before(first, count, STRIDE_W, 0), end = points_before(first, count, STRIDE_W, width);
  for (int64_t o = begin; o < end; o++) sums[o] += x[o * STRIDE_W + first] - x_zero;
}

static void by_sweeps(const Pool *p, const Rows *rows, const Columns *columns, T *y) {
  const Mean mean = p->mean;
  int32_t sums[COLUMNS] = {0};
  for (int64_t q = 0; q < rows->planes; q++) {
    for (int64_t r = 0; r < rows->rows; r++) {
      const T *x = rows->x + q * rows->plane + r * rows->row;
      for (int64_t s = 0; s < WINDOW_W; s++) {
        int64_t first = columns->first * STRIDE_W + s * DILATION_W - p->left;
        sweep(x, sums, first, p->width, columns->count, mean.x_zero);
      }
    }
  }
  int n = (int)min_i64(LANES, columns->count);
  for (int64_t i = 0; i < columns->count; i += LANES) {
    int64_t o = whole_vector(i, 0, columns->count);
    store_means(y, o, n, vint_to_float(vint_load(sums + o)), rows, columns, &mean);
  }
}

static void pool_row(const Pool *p, int64_t item, const Columns *columns) {
  Rows rows = rows_of(p, item / p->out_h / p->out_d, item / p->out_h % p->out_d, item % p->out_h);
  T *y = p->y + item * p->out_w + columns->first;
  if (ROWS_FIRST)
    rows_first(p, &rows, columns, y);
  else
    by_sweeps(p, &rows, columns, y);
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
  int64_t begin, end;
  team_share(team, volumes * out_d * out_h, &begin, &end);
  for (; begin < end; begin += BAND) {
    for (int64_t column = 0; column < out_w; column += COLUMNS) {
      Columns columns = columns_from(&pool, column);
      for (int64_t item = begin; item < min_i64(begin + BAND, end); item++) pool_row(&pool, item, &columns);
    }
  }
}
