/* SPDX-License-Identifier: MIT */
/*
 * Maxima over windows, NCDHW, and their indices: of equal ones the first in the order of the window. NaN is the
 * largest.
 */
#include "kernel.h"

/* The element.
 * legal: float double int8_t uint8_t */
typedef float T;

#include "parts/least.h"
#include "parts/pool_windows.h"

/* 1: an index counts the volume's elements with the first axis running fastest, not the last.
 * legal: 0 1 */
enum { COLUMN_MAJOR = 0 };

typedef struct Pool {
  const T *x;
  int64_t depth, height, width, front, top, left;
} Pool;

typedef struct Place {
  T value;
  int64_t d, h, w; /* d -1: none yet */
} Place;

static inline bool exceeds(T a, T b) { return a > b || (a != a && b == b); }

/* The columns of one row of the window whose first is `w`. */
static Place search_row(const Pool *p, const T *x, Place best, int64_t d, int64_t h, int64_t w) {
  for (int64_t s = 0; s < WINDOW_W; s++, w += DILATION_W) {
    if (w < 0 || w >= p->width) continue;
    if (best.d < 0 || exceeds(x[w], best.value)) best = (Place){x[w], d, h, w};
  }
  return best;
}

/* The window that begins at (d, h, w) of the volume x. */
static Place search(const Pool *p, const T *x, int64_t d, int64_t h, int64_t w) {
  Place best = {.value = least(), .d = -1};
  for (int64_t qr = 0; qr < WINDOW_D * WINDOW_H; qr++) {
    int64_t depth = d + qr / WINDOW_H * DILATION_D, height = h + qr % WINDOW_H * DILATION_H;
    if (depth < 0 || depth >= p->depth || height < 0 || height >= p->height) continue;
    best = search_row(p, x + (depth * p->height + height) * p->width, best, depth, height, w);
  }
  return best;
}

/* In a volume that begins with element `volume`. With dilations a window may have no point: -1. */
static int64_t index_of(const Pool *p, Place at, int64_t volume) {
  if (at.d < 0) return -1;
  if (COLUMN_MAJOR) return volume + at.d + p->depth * (at.h + p->height * at.w);
  return volume + (at.d * p->height + at.h) * p->width + at.w;
}

/* x: [volumes, depth, height, width]; y and indices: [volumes, out_d, out_h, out_w]. */
static void max_pool_indices(const Team *team, const T *x, T *y, int64_t *indices, int64_t volumes, int64_t depth,
                             int64_t height, int64_t width, int64_t out_d, int64_t out_h, int64_t out_w, int64_t front,
                             int64_t top, int64_t left) {
  Pool pool = {x, depth, height, width, front, top, left};
  int64_t size = depth * height * width, item, end;
  team_share(team, volumes * out_d * out_h, &item, &end);
  for (; item < end; item++) {
    int64_t row = item % out_h, plane = item / out_h % out_d, volume = item / out_h / out_d;
    for (int64_t o = 0; o < out_w; o++) {
      Place best =
          search(&pool, x + volume * size, plane * STRIDE_D - front, row * STRIDE_H - top, o * STRIDE_W - left);
      y[item * out_w + o] = best.value;
      indices[item * out_w + o] = index_of(&pool, best, volume * size);
    }
  }
}
