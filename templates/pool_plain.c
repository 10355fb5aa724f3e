/* SPDX-License-Identifier: MIT */
/*
 * Maximum, mean or norm over windows, NCDHW. NaN in a window makes the result NaN.
 *
 * Maxima and means of floats are computed COLUMNS outputs at a time: the rows of their windows are combined first, into
 * one element for each column of input, without padding; then the columns of each window.
 *
 * Else an output row is filled in place, window point by window point: each is one sweep over the columns whose point
 * lies in the input.
 */
#include "kernel.h"
#include "knobs.h"
#include "simd/math.h"
#include "strided.h"
#include "windows.h"

/* The element; means are of floats.
 * legal: float double int8_t uint8_t */
typedef float T;

#include "parts/pool_windows.h"

/* POOL_MAX, ...
 * legal: 0..3 */
enum { KIND = POOL_MAX };
/* legal: 1..1024 */
enum { P = 2 };

/* Outputs that are made at once, whole vectors of them; 0: by sweeps. T is float then, and KIND not POOL_NORM.
 * legal: 0 64 */
enum { COLUMNS = 64 };

/* Input columns of COLUMNS outputs, one that is loaded beside them, and a vector that may be written past them. */
enum { SPAN = COLUMNS > 0 ? (COLUMNS - 1) * STRIDE_W + (WINDOW_W - 1) * DILATION_W + 2 + LANES : 1 };

typedef struct Pool {
  const T *x;
  T *y;
  int64_t depth, height, width, out_d, out_h, out_w;
  int64_t front, top, left, back, bottom, right; /* padding */
} Pool;

static inline T larger(T a, T b) { return a > b || a != a ? a : b; }

#include "parts/least.h"

static float power(float x, float exponent) {
  float lanes[LANES];
  vstore(lanes, vpow(vset(x), vset(exponent)));
  return lanes[0];
}

/* What an element adds to a sum. */
static inline T term(T x) {
  if (KIND != POOL_NORM) return x;
  if (P == 2) return x * x;
  T magnitude = x < 0 ? -x : x;
  return P == 1 ? magnitude : (T)power((float)magnitude, P);
}

/* Window points at output o that lie between -head and length + tail. */
static inline int64_t points(int64_t o, int64_t kernel, int64_t stride, int64_t dilation, int64_t length, int64_t head,
                             int64_t tail, int64_t from) {
  int64_t begin = o * stride - head;
  int64_t skipped = begin < from ? ceil_div(from - begin, dilation) : 0;
  int64_t reached = length + tail > begin ? ceil_div(length + tail - begin, dilation) : 0;
  return max_i64(0, min_i64(kernel, reached) - skipped);
}

/* One window point over a row: columns whose input column o * STRIDE_W + first is in 0..width-1. */
static void sweep(const T *restrict x, T *restrict y, int64_t first, int64_t width, int64_t out_w) {
  int64_t begin = points_before(first, out_w, STRIDE_W, 0), end = points_before(first, out_w, STRIDE_W, width);
  for (int64_t o = begin; o < end; o++) {
    T in = x[o * STRIDE_W + first];
    y[o] = KIND == POOL_MAX ? larger(y[o], in) : y[o] + term(in);
  }
}

static void divide_floats(float *y, int64_t count, float by) {
  for (int64_t i = 0; i < count; i += LANES) {
    int n = (int)min_i64(LANES, count - i);
    vstore_n(y + i, vdiv(vload_n(y + i, n), vset(by)), n);
  }
}

/* With dilations a window may have no point at all: its mean is 0. */
static inline int64_t counted(int64_t rows, int64_t columns) { return max_i64(1, rows * columns); }

/* Divides columns begin..end-1, whose windows all count the same points or are counted one by one. */
static void divide_columns(const Pool *p, T *y, int64_t in_rows, int64_t begin, int64_t end, bool alike) {
  bool padded = KIND == POOL_MEAN_WITH_PADDING;
  if (COLUMNS > 0 && alike) {
    divide_floats((float *)(void *)(y + begin), end - begin, (float)counted(in_rows, WINDOW_W));
    return;
  }
  for (int64_t o = begin; o < end; o++) {
    int64_t in_columns = alike ? WINDOW_W
                               : points(o, WINDOW_W, STRIDE_W, DILATION_W, p->width, p->left, padded ? p->right : 0,
                                        padded ? -p->left : 0);
    y[o] /= (T)counted(in_rows, in_columns);
  }
}

/* Columns first..last-1 have their whole window in the input. */
static void divide_row(const Pool *p, T *y, int64_t plane, int64_t row) {
  bool padded = KIND == POOL_MEAN_WITH_PADDING;
  int64_t in_planes =
      points(plane, WINDOW_D, STRIDE_D, DILATION_D, p->depth, p->front, padded ? p->back : 0, padded ? -p->front : 0);
  int64_t in_rows = in_planes * points(row, WINDOW_H, STRIDE_H, DILATION_H, p->height, p->top, padded ? p->bottom : 0,
                                       padded ? -p->top : 0);
  int64_t room = p->width + p->left - (WINDOW_W - 1) * DILATION_W; /* window starts that end inside */
  int64_t first = min_i64(ceil_div(p->left, STRIDE_W), p->out_w);
  int64_t last = max_i64(first, min_i64(room > 0 ? ceil_div(room, STRIDE_W) : 0, p->out_w));
  divide_columns(p, y, in_rows, 0, first, false);
  divide_columns(p, y, in_rows, first, last, true);
  divide_columns(p, y, in_rows, last, p->out_w, false);
}

static void root_row(const Pool *p, T *y) {
  for (int64_t o = 0; o < p->out_w; o++) {
    if (P == 2) y[o] = __builtin_sqrtf((float)y[o]);
    if (P > 2) y[o] = (T)power((float)y[o], 1.0f / P);
  }
}

/* ---- rows first, then columns ---- */

/* The rows of an output row's windows that lie in the input: `planes` times `rows` of them, from x on. */
typedef struct Rows {
  const float *x;
  int64_t planes, rows, width, row, plane; /* row, plane: elements from one to the next */
} Rows;

static inline int64_t first_inside(int64_t begin, int64_t dilation) {
  return begin < 0 ? ceil_div(-begin, dilation) : 0;
}

static Rows rows_of(const Pool *p, const T *volume, int64_t plane, int64_t row) {
  int64_t depth = plane * STRIDE_D - p->front, height = row * STRIDE_H - p->top;
  int64_t q = first_inside(depth, DILATION_D), r = first_inside(height, DILATION_H);
  const T *x = volume + ((depth + q * DILATION_D) * p->height + height + r * DILATION_H) * p->width;
  return (Rows){.x = (const float *)(const void *)x,
                .planes = points(plane, WINDOW_D, STRIDE_D, DILATION_D, p->depth, p->front, 0, 0),
                .rows = points(row, WINDOW_H, STRIDE_H, DILATION_H, p->height, p->top, 0, 0),
                .width = p->width,
                .row = DILATION_H * p->width,
                .plane = DILATION_D * p->height * p->width};
}

SIMD_FUNCTION vec nothing(void) { return vset(KIND == POOL_MAX ? -__builtin_inff() : 0); }
SIMD_FUNCTION vec combine(vec a, vec b) { return KIND == POOL_MAX ? vmax(a, b) : vadd(a, b); }

SIMD_FUNCTION vec combine_rows(const Rows *rows, int64_t column, int n) {
  vec result = nothing();
  for (int64_t q = 0; q < rows->planes; q++) {
    for (int64_t r = 0; r < rows->rows; r++) {
      const float *x = rows->x + q * rows->plane + r * rows->row + column;
      result = combine(result, n == LANES ? vload(x) : vload_n(x, n));
    }
  }
  return result;
}

/* down[i]: of column first + i, of which there are `count`. */
static void combine_span(const Rows *rows, float down[SPAN], int64_t first, int64_t count) {
  int64_t begin = min_i64(max_i64(-first, 0), count), end = max_i64(begin, min_i64(rows->width - first, count));
  for (int64_t i = begin; i < end; i += LANES)
    vstore(down + i, combine_rows(rows, first + i, (int)min_i64(LANES, end - i)));
  for (int64_t i = 0; i < begin; i += LANES) vstore_n(down + i, nothing(), (int)min_i64(LANES, begin - i));
  for (int64_t i = end; i < count; i += LANES) vstore(down + i, nothing());
}

/* Outputs column..column + count - 1, of which there are at most COLUMNS. */
static void combine_windows(const Pool *p, const Rows *rows, float *y, int64_t column, int64_t count) {
  float down[SPAN];
  combine_span(rows, down, column * STRIDE_W - p->left, (count - 1) * STRIDE_W + (WINDOW_W - 1) * DILATION_W + 1);
  for (int64_t o = 0; o < count; o += LANES) {
    vec result = load_strided(down + o * STRIDE_W, STRIDE_W);
    for (int64_t s = 1; s < WINDOW_W; s++)
      result = combine(result, load_strided(down + o * STRIDE_W + s * DILATION_W, STRIDE_W));
    vstore_n(y + column + o, result, (int)min_i64(LANES, count - o));
  }
}

static void combine_row(const Pool *p, T *y, int64_t volume, int64_t plane, int64_t row) {
  Rows rows = rows_of(p, p->x + volume * p->depth * p->height * p->width, plane, row);
  for (int64_t column = 0; column < p->out_w; column += COLUMNS)
    combine_windows(p, &rows, (float *)(void *)y, column, min_i64(COLUMNS, p->out_w - column));
}

/* ---- by sweeps ---- */

static void sweep_row(const Pool *p, T *y, int64_t volume, int64_t plane, int64_t row) {
  for (int64_t o = 0; o < p->out_w; o++) y[o] = KIND == POOL_MAX ? least() : 0;
  for (int64_t qr = 0; qr < WINDOW_D * WINDOW_H; qr++) {
    int64_t depth = plane * STRIDE_D - p->front + qr / WINDOW_H * DILATION_D;
    int64_t height = row * STRIDE_H - p->top + qr % WINDOW_H * DILATION_H;
    if (depth < 0 || depth >= p->depth || height < 0 || height >= p->height) continue;
    const T *x = p->x + ((volume * p->depth + depth) * p->height + height) * p->width;
    for (int64_t s = 0; s < WINDOW_W; s++) sweep(x, y, s * DILATION_W - p->left, p->width, p->out_w);
  }
}

static void pool_row(const Pool *p, int64_t volume, int64_t plane, int64_t row) {
  T *y = p->y + ((volume * p->out_d + plane) * p->out_h + row) * p->out_w;
  if (COLUMNS > 0)
    combine_row(p, y, volume, plane, row);
  else
    sweep_row(p, y, volume, plane, row);
  if (KIND == POOL_MEAN || KIND == POOL_MEAN_WITH_PADDING) divide_row(p, y, plane, row);
  if (KIND == POOL_NORM) root_row(p, y);
}

/* x: [volumes, depth, height, width]; y: [volumes, out_d, out_h, out_w]. pads: front, top, left, back, bottom, right.
 */
static void pool_plain(const Team *team, const T *x, T *y, int64_t volumes, int64_t depth, int64_t height,
                       int64_t width, int64_t out_d, int64_t out_h, int64_t out_w, const int64_t *pads) {
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
               .right = pads[5]};
  int64_t item, end;
  team_share(team, volumes * out_d * out_h, &item, &end);
  for (; item < end; item++) pool_row(&pool, item / out_h / out_d, item / out_h % out_d, item % out_h);
}
