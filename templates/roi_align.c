/* SPDX-License-Identifier: MIT */
/*
 * RoiAlign (He et al., Mask R-CNN, 2017): a region is cut into out_h by out_w bins, each of which is the mean, or the
 * largest, of the values at points spread evenly over it, interpolated linearly between the four pixels around.
 */
#include "kernel.h"

/* 1: the largest weighted pixel instead of the mean.
 * legal: 0 1 */
enum { LARGEST = 0 };
/* Points a bin has along each axis; 0: as many as it has pixels.
 * legal: 0..65536 */
enum { SAMPLES = 2 };
/* 1: pixel centres lie at halves.
 * legal: 0 1 */
enum { HALF_PIXEL = 1 };

/* Where a point lies along an axis: between two pixels, and the weight of the second. */
typedef struct Point {
  int32_t low, high;
  float weight;
  bool inside; /* the plane, or at most a pixel beyond it */
} Point;

/* Points of an axis that are kept while a region's channels are read; of more each is found anew. */
enum { MAX_KEPT = 256 };

/* A region along one axis. */
typedef struct Axis {
  float begin, bin;                /* in pixels */
  int64_t pixels, samples, points; /* of the plane, of a bin, of the region */
  Point kept[MAX_KEPT];
} Axis;

/* Maximum points of a bin along an axis. A region is data, so it may be larger than any image. */
enum { MAX_SAMPLES = 4096 };

static inline int64_t pixels_of(float extent) {
  if (!(extent > 0)) return 0;
  if (extent >= MAX_SAMPLES) return MAX_SAMPLES;
  int64_t whole = (int64_t)extent;
  return (float)whole < extent ? whole + 1 : whole;
}

static Point located(float at, int64_t pixels) {
  if (!(at >= -1 && at <= (float)pixels)) return (Point){.inside = false};
  if (at < 0) at = 0;
  int64_t low = (int64_t)at, last = pixels - 1;
  if (low >= last) return (Point){(int32_t)last, (int32_t)last, 0, true};
  return (Point){(int32_t)low, (int32_t)low + 1, at - (float)low, true};
}

static Point find_point(const Axis *a, int64_t k) {
  float in_bin = ((float)(k % a->samples) + 0.5f) * a->bin / (float)a->samples;
  return located(a->begin + (float)(k / a->samples) * a->bin + in_bin, a->pixels);
}

static inline Point point_of(const Axis *a, int64_t k) { return a->points <= MAX_KEPT ? a->kept[k] : find_point(a, k); }

/* From a region's begin and end, in pixels. */
static void lay_out(Axis *a, float begin, float end, int64_t bins, int64_t pixels) {
  float extent = end - begin;
  if (!HALF_PIXEL) extent = extent > 1 ? extent : 1;
  a->begin = begin;
  a->bin = extent / (float)bins;
  a->pixels = pixels;
  a->samples = SAMPLES ? SAMPLES : pixels_of(a->bin);
  a->points = bins * a->samples;
  for (int64_t k = 0; a->points <= MAX_KEPT && k < a->points; k++) a->kept[k] = find_point(a, k);
}

static inline float larger(float a, float b) { return a > b || a != a ? a : b; }

/* Channels whose planes are read for a point together. */
enum { CHANNELS = 8 };

/* Where a point's four pixels are in a plane, and their weights. */
typedef struct Corners {
  int64_t at[4];
  float weight[4];
} Corners;

static inline Corners corners_of(const Point *y, const Point *x, int64_t width) {
  const float v = y->weight, u = x->weight;
  const int64_t above = y->low * width, below = y->high * width;
  return (Corners){{above + x->low, above + x->high, below + x->low, below + x->high},
                   {(1 - v) * (1 - u), (1 - v) * u, v * (1 - u), v * u}};
}

/* What the point adds: the interpolated value, or the largest of its four terms. */
static inline float value_at(const float *plane, const Corners *p) {
  float term[4];
#pragma clang loop unroll(full)
  for (int k = 0; k < 4; k++) term[k] = p->weight[k] * plane[p->at[k]];
  if (LARGEST) return larger(larger(term[0], term[1]), larger(term[2], term[3]));
  return term[0] + term[1] + term[2] + term[3];
}

/* A bin of `count` channels, whose planes are `area` apart, as are the bins `bins`. */
static inline __attribute__((always_inline)) void pool_bin(const float *plane, int64_t area, const Axis *rows,
                                                           const Axis *columns, int64_t oh, int64_t ow, float *to,
                                                           int64_t bins, int count) {
  float total[CHANNELS] = {0};
  for (int64_t i = 0; i < rows->samples; i++) {
    Point y = point_of(rows, oh * rows->samples + i);
    for (int64_t j = 0; j < columns->samples; j++) {
      Point x = point_of(columns, ow * columns->samples + j);
      bool inside = y.inside && x.inside, first = i + j == 0;
      Corners corners = inside ? corners_of(&y, &x, columns->pixels) : (Corners){{0}, {0}};
      for (int c = 0; c < count; c++) {
        float value = inside ? value_at(plane + c * area, &corners) : 0;
        total[c] = !LARGEST ? total[c] + value : first ? value : larger(total[c], value);
      }
    }
  }
  int64_t points = rows->samples * columns->samples;
  for (int c = 0; c < count; c++) to[c * bins] = LARGEST || points < 1 ? total[c] : total[c] / (float)points;
}

static void pool_channels(const float *plane, const Axis *rows, const Axis *columns, float *to, int64_t out_h,
                          int64_t out_w, int count) {
  const int64_t area = rows->pixels * columns->pixels, bins = out_h * out_w;
  for (int64_t o = 0; o < bins; o++) {
    if (count == CHANNELS)
      pool_bin(plane, area, rows, columns, o / out_w, o % out_w, to + o, bins, CHANNELS);
    else
      pool_bin(plane, area, rows, columns, o / out_w, o % out_w, to + o, bins, count);
  }
}

/* x: [n, channels, height, width]; rois: [regions, 4]; images: [regions]; y: [regions, channels, out_h, out_w]. */
static void roi_align(const Team *team, const float *x, const float *rois, const int64_t *images, float *y, float scale,
                      int64_t n, int64_t channels, int64_t height, int64_t width, int64_t regions, int64_t out_h,
                      int64_t out_w, atomic_int *fault) {
  const float shift = HALF_PIXEL ? 0.5f : 0;
  int64_t item, end;
  team_share(team, regions * channels, &item, &end);
  while (item < end) {
    int64_t region = item / channels, image = images[region], next = min_i64(end, (region + 1) * channels);
    const float *roi = rois + region * 4;
    Axis rows, columns;
    if (image < 0 || image >= n) {
      fault_report(fault, RNNCC_ERROR_VALUE);
      image = 0;
    }
    lay_out(&rows, roi[1] * scale - shift, roi[3] * scale - shift, out_h, height);
    lay_out(&columns, roi[0] * scale - shift, roi[2] * scale - shift, out_w, width);
    for (int64_t count; item < next; item += count) {
      count = min_i64(CHANNELS, next - item);
      pool_channels(x + (image * channels + item % channels) * height * width, &rows, &columns,
                    y + item * out_h * out_w, out_h, out_w, (int)count);
    }
  }
}
