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

typedef struct Region {
  float top, left, bin_h, bin_w; /* in pixels */
  int64_t samples_h, samples_w;  /* a bin */
} Region;

typedef struct Plane {
  const float *x;
  int64_t height, width;
} Plane;

/* Maximum points of a bin along an axis. A region is data, so it may be larger than any image. */
enum { MAX_SAMPLES = 4096 };

static inline int64_t pixels_of(float extent) {
  if (!(extent > 0)) return 0;
  if (extent >= MAX_SAMPLES) return MAX_SAMPLES;
  int64_t whole = (int64_t)extent;
  return (float)whole < extent ? whole + 1 : whole;
}

static Region region_of(const float *roi, float scale, int64_t out_h, int64_t out_w) {
  float shift = HALF_PIXEL ? 0.5f : 0;
  float left = roi[0] * scale - shift, top = roi[1] * scale - shift;
  float width = roi[2] * scale - shift - left, height = roi[3] * scale - shift - top;
  if (!HALF_PIXEL) {
    width = width > 1 ? width : 1;
    height = height > 1 ? height : 1;
  }
  Region r = {.top = top, .left = left, .bin_h = height / (float)out_h, .bin_w = width / (float)out_w};
  r.samples_h = SAMPLES ? SAMPLES : pixels_of(r.bin_h);
  r.samples_w = SAMPLES ? SAMPLES : pixels_of(r.bin_w);
  return r;
}

/* A coordinate's pixels and the weight of the second; false: more than a pixel beyond the plane. */
static bool locate(float at, int64_t n, int64_t *low, int64_t *high, float *weight) {
  if (!(at >= -1 && at <= (float)n)) return false;
  if (at < 0) at = 0;
  *low = (int64_t)at;
  if (*low >= n - 1) {
    *low = *high = n - 1;
    *weight = 0;
    return true;
  }
  *high = *low + 1;
  *weight = at - (float)*low;
  return true;
}

static inline float larger(float a, float b) { return a > b || a != a ? a : b; }

/* What the point (y, x) adds: the interpolated value, or the largest of its four terms. */
static float value_at(const Plane *p, float y, float x) {
  int64_t top, bottom, left, right;
  float v, u;
  if (!locate(y, p->height, &top, &bottom, &v) || !locate(x, p->width, &left, &right, &u)) return 0;
  const float *above = p->x + top * p->width, *below = p->x + bottom * p->width;
  float a = (1 - v) * (1 - u) * above[left], b = (1 - v) * u * above[right];
  float c = v * (1 - u) * below[left], d = v * u * below[right];
  return LARGEST ? larger(larger(a, b), larger(c, d)) : a + b + c + d;
}

static float bin_of(const Plane *p, const Region *r, int64_t oh, int64_t ow) {
  float total = 0;
  for (int64_t i = 0; i < r->samples_h; i++) {
    float y = r->top + (float)oh * r->bin_h + ((float)i + 0.5f) * r->bin_h / (float)r->samples_h;
    for (int64_t j = 0; j < r->samples_w; j++) {
      float x = r->left + (float)ow * r->bin_w + ((float)j + 0.5f) * r->bin_w / (float)r->samples_w;
      float value = value_at(p, y, x);
      total = !LARGEST ? total + value : i + j == 0 ? value : larger(total, value);
    }
  }
  int64_t count = r->samples_h * r->samples_w;
  return LARGEST || count < 1 ? total : total / (float)count;
}

/* x: [n, channels, height, width]; rois: [regions, 4]; images: [regions]; y: [regions, channels, out_h, out_w]. */
static void roi_align(const Team *team, const float *x, const float *rois, const int64_t *images, float *y, float scale,
                      int64_t n, int64_t channels, int64_t height, int64_t width, int64_t regions, int64_t out_h,
                      int64_t out_w, atomic_int *fault) {
  int64_t item, end;
  team_share(team, regions * channels, &item, &end);
  for (; item < end; item++) {
    int64_t region = item / channels, image = images[region];
    if (image < 0 || image >= n) {
      fault_report(fault, RNNCC_ERROR_VALUE);
      image = 0;
    }
    Plane plane = {x + (image * channels + item % channels) * height * width, height, width};
    Region r = region_of(rois + region * 4, scale, out_h, out_w);
    for (int64_t o = 0; o < out_h * out_w; o++) y[item * out_h * out_w + o] = bin_of(&plane, &r, o / out_w, o % out_w);
  }
}
