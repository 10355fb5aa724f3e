/* SPDX-License-Identifier: MIT */
/*
 * Maximum or mean over windows of tensors of bytes, blocked by channels, LANES channels at a time. Windows that lie in
 * the input have code of their own, in which their extents are constant; elsewhere the padding is skipped.
 */
#include "bands.h"
#include "kernel.h"
#include "knobs.h"
#include "mean_int8.h"
#include "simd/int8.h"
#include "simd/simd.h"
#include "windows.h"

/* legal: 1..268435456 */
enum { IN_H = 8 };
/* legal: 1..268435456 */
enum { IN_W = 8 };
/* legal: 1..268435456 */
enum { OUT_H = 4 };
/* legal: 1..268435456 */
enum { OUT_W = 4 };
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
/* Rows of padding before the input.
 * legal: 0..65536 */
enum { PAD_TOP = 0 };
/* Columns of padding before the input.
 * legal: 0..65536 */
enum { PAD_LEFT = 0 };
/* Rows of padding after the input.
 * legal: 0..65536 */
enum { PAD_BOTTOM = 0 };
/* Columns of padding after the input.
 * legal: 0..65536 */
enum { PAD_RIGHT = 0 };
/* POOL_MAX, POOL_MEAN or POOL_MEAN_WITH_PADDING.
 * legal: 0 1 2 */
enum { KIND = POOL_MAX };
/* Elements are of i8, else of u8.
 * legal: 0 1 */
enum { SIGNED = 0 };

/* Points begin..end-1 of a window along an axis lie in the input. */
typedef struct Inside {
  int64_t begin, end;
} Inside;

static inline Inside inside_of(int64_t from, int64_t points, int64_t step, int64_t extent) {
  return (Inside){.begin = points_before(from, points, step, 0), .end = points_before(from, points, step, extent)};
}

/* Points that a mean is over: those inside, or all up to `padded`, where the padding ends. */
static inline int64_t counted(Inside inside, int64_t from, int64_t points, int64_t step, int64_t padded) {
  return KIND == POOL_MEAN_WITH_PADDING ? points_before(from, points, step, padded) : inside.end - inside.begin;
}

/* first: the window's first point, even if that is in the padding. */
SIMD_FUNCTION vint combined(const uint8_t *first, int64_t row, int64_t rows_end, int64_t column, int64_t columns_end) {
  vint all = vint_set(KIND == POOL_MAX && SIGNED ? -128 : 0);
  for (int64_t r = row; r < rows_end; r++) {
    for (int64_t s = column; s < columns_end; s++) {
      vint x = bytes_load(first + (r * DILATION_H * IN_W + s * DILATION_W) * LANES, LANES, SIGNED);
      all = KIND == POOL_MAX ? vint_max(all, x) : vint_add(all, x);
    }
  }
  return all;
}

/* mean: of kinds that are means. */
static void one_row(const uint8_t *x, uint8_t *y, int64_t line, const Mean mean) {
  int64_t top = line * STRIDE_H - PAD_TOP;
  Inside rows = inside_of(top, WINDOW_H, DILATION_H, IN_H);
  int64_t counted_rows = counted(rows, top, WINDOW_H, DILATION_H, IN_H + PAD_BOTTOM);
  const int64_t all_points = (int64_t)WINDOW_H * WINDOW_W;
  bool all_rows = rows.begin == 0 && rows.end == WINDOW_H;
  for (int64_t column = 0; column < OUT_W; column++) {
    int64_t left = column * STRIDE_W - PAD_LEFT;
    const uint8_t *first = x + (top * IN_W + left) * LANES;
    Inside columns = inside_of(left, WINDOW_W, DILATION_W, IN_W);
    vint result;
    if (all_rows && columns.begin == 0 && columns.end == WINDOW_W) {
      result = combined(first, 0, WINDOW_H, 0, WINDOW_W);
      if (KIND != POOL_MAX) result = mean_of(result, all_points, all_points, &mean);
    } else {
      int64_t inside = (rows.end - rows.begin) * (columns.end - columns.begin);
      int64_t points = counted_rows * counted(columns, left, WINDOW_W, DILATION_W, IN_W + PAD_RIGHT);
      result = combined(first, rows.begin, rows.end, columns.begin, columns.end);
      if (KIND != POOL_MAX) result = mean_of(result, inside, points, &mean);
    }
    bytes_store(y + (line * OUT_W + column) * LANES, result, LANES, SIGNED);
  }
}

/* x: [n][blocks][IN_H][IN_W][LANES]; y: [n][blocks][OUT_H][OUT_W][LANES]. What follows y_image is for means, as
 * mean_int8.h has it. */
static void pool_int8(const Team *team, const uint8_t *x, uint8_t *y, int64_t n, int64_t blocks, int64_t x_image,
                      int64_t y_image, int64_t x_zero, float factor, int64_t before, int64_t behind) {
  Bands bands = bands_of(team, n, OUT_H, blocks);
  const Mean mean = mean_with(SIGNED, x_zero, factor, before, behind);
  for (int64_t image = 0; image < n; image++) {
    for (int64_t block = 0; block < blocks; block++) {
      const uint8_t *plane = x + image * x_image + block * IN_H * IN_W * LANES;
      uint8_t *to = y + image * y_image + block * OUT_H * OUT_W * LANES;
      int64_t end = band_end(&bands, image, block);
      for (int64_t line = band_begin(&bands, image, block); line < end; line++) one_row(plane, to, line, mean);
    }
  }
}
