/* SPDX-License-Identifier: MIT */
/*
 * Maximum over windows of tensors of bytes, blocked by channels, LANES channels at a time. Windows that lie in the
 * input have code of their own, in which their extents are constant; elsewhere the padding is skipped.
 */
#include "bands.h"
#include "kernel.h"
#include "simd/int8.h"
#include "simd/simd.h"

/* legal: 1..1048576 */
enum { IN_H = 8 };
/* legal: 1..1048576 */
enum { IN_W = 8 };
/* legal: 1..1048576 */
enum { OUT_H = 4 };
/* legal: 1..1048576 */
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
/* Elements are of i8, else of u8.
 * legal: 0 1 */
enum { SIGNED = 0 };

/* Points begin..end-1 of a window along an axis lie in the input. */
typedef struct Inside {
  int64_t begin, end;
} Inside;

static inline Inside inside_of(int64_t from, int64_t points, int64_t step, int64_t extent) {
  return (Inside){.begin = from < 0 ? min_i64(points, ceil_div(-from, step)) : 0,
                  .end = from < extent ? min_i64(points, ceil_div(extent - from, step)) : 0};
}

SIMD_FUNCTION vint load(const uint8_t *p) { return SIGNED ? vint_load_s8(p) : vint_load_u8(p); }

/* first: the window's first point, even if that is in the padding. */
SIMD_FUNCTION vint largest(const uint8_t *first, int64_t row, int64_t rows_end, int64_t column, int64_t columns_end) {
  vint most = vint_set(SIGNED ? -128 : 0);
  for (int64_t r = row; r < rows_end; r++)
    for (int64_t s = column; s < columns_end; s++)
      most = vint_max(most, load(first + (r * DILATION_H * IN_W + s * DILATION_W) * LANES));
  return most;
}

static void one_row(const uint8_t *x, uint8_t *y, int64_t line) {
  int64_t top = line * STRIDE_H - PAD_TOP;
  Inside rows = inside_of(top, WINDOW_H, DILATION_H, IN_H);
  bool all_rows = rows.begin == 0 && rows.end == WINDOW_H;
  for (int64_t column = 0; column < OUT_W; column++) {
    int64_t left = column * STRIDE_W - PAD_LEFT;
    const uint8_t *first = x + (top * IN_W + left) * LANES;
    Inside columns = inside_of(left, WINDOW_W, DILATION_W, IN_W);
    vint most;
    if (all_rows && columns.begin == 0 && columns.end == WINDOW_W)
      most = largest(first, 0, WINDOW_H, 0, WINDOW_W);
    else
      most = largest(first, rows.begin, rows.end, columns.begin, columns.end);
    if (SIGNED)
      vint_store_s8(y + (line * OUT_W + column) * LANES, most);
    else
      vint_store_u8(y + (line * OUT_W + column) * LANES, most);
  }
}

/* x: [n][blocks][IN_H][IN_W][LANES]; y: [n][blocks][OUT_H][OUT_W][LANES]. */
static void max_pool_int8(const Team *team, const uint8_t *x, uint8_t *y, int64_t n, int64_t blocks, int64_t x_image,
                          int64_t y_image) {
  Bands bands = bands_of(team, n, OUT_H, blocks);
  for (int64_t image = 0; image < n; image++) {
    for (int64_t block = 0; block < blocks; block++) {
      const uint8_t *plane = x + image * x_image + block * IN_H * IN_W * LANES;
      uint8_t *to = y + image * y_image + block * OUT_H * OUT_W * LANES;
      int64_t end = band_end(&bands, image, block);
      for (int64_t line = band_begin(&bands, image, block); line < end; line++) one_row(plane, to, line);
    }
  }
}
