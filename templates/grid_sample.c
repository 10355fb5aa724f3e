/* SPDX-License-Identifier: MIT */
/*
 * GridSample over two or three spatial axes: an output point reads the input at the coordinates that the grid has for
 * it, in -1..1 along each axis, last axis first, and takes the nearest element, or interpolates.
 *
 * Points' taps, offsets and weights, are made once and then used by all channels.
 */
#include "kernel.h"
#include "knobs.h"

/* Spatial axes.
 * legal: 2 3 */
enum { SPATIAL = 2 };
/* SAMPLE_NEAREST, ...
 * legal: 0 1 2 */
enum { MODE = SAMPLE_LINEAR };
/* Values beyond the border: BEYOND_ZEROS, ...
 * legal: 0 1 2 */
enum { PADDING = BEYOND_ZEROS };
/* 1: -1 and 1 are the centres of the corner elements; 0: their outer edges.
 * legal: 0 1 */
enum { ALIGNED = 0 };

/* Taps of a point along an axis and in all, and points whose taps are made together. */
enum {
  TAPS = MODE == SAMPLE_NEAREST  ? 1
         : MODE == SAMPLE_LINEAR ? 2
                                 : 4,
  POINT_TAPS = SPATIAL == 2 ? TAPS * TAPS : TAPS * TAPS * TAPS,
  TOGETHER = 32
};

/* The taps of one axis. Offset -1: beyond the border, where the value is 0. */
typedef struct AxisTaps {
  int64_t index[TAPS];
  float weight[TAPS];
} AxisTaps;

/* The taps of some points. Offset -1: beyond the border. */
typedef struct PointTaps {
  int32_t offset[POINT_TAPS][TOGETHER];
  float weight[POINT_TAPS][TOGETHER];
} PointTaps;

static inline float floor_of(float x) {
  float whole = (float)(int64_t)x;
  return whole > x ? whole - 1 : whole;
}

/* Halves go to the even neighbour. */
static inline float nearest_to(float x) {
  float below = floor_of(x), part = x - below;
  if (part == 0.5f) return below + (float)((int64_t)below & 1);
  return part < 0.5f ? below : below + 1;
}

/* Mirrored at low and high until it lies between. */
static float mirrored(float x, float low, float high) {
  float range = high - low;
  if (!(range > 0)) return low;
  float beyond = x < low ? low - x : x - high;
  if (beyond <= 0) return x;
  float turns = floor_of(beyond / range), rest = beyond - turns * range;
  bool odd = (int64_t)turns & 1, below = x < low;
  return below != odd ? low + rest : high - rest;
}

/* The position of a grid coordinate on an axis of n elements. NaN is far outside. */
static float place_of(float grid, int64_t n) {
  float last = (float)(n - 1), far = (float)n * 8 + 0x1p20f;
  float x = ALIGNED ? (grid + 1) / 2 * last : ((grid + 1) * (float)n - 1) / 2;
  if (!(x > -far)) x = -far;
  if (!(x < far)) x = far;
  if (PADDING == BEYOND_BORDER && MODE != SAMPLE_CUBIC) return x < 0 ? 0 : x > last ? last : x;
  if (PADDING == BEYOND_REFLECTION && MODE != SAMPLE_CUBIC)
    return ALIGNED ? mirrored(x, 0, last) : mirrored(x, -0.5f, last + 0.5f);
  return x;
}

/* The index at which element i is read; i may be beyond the border. */
static int64_t inside(int64_t i, int64_t n) {
  if (i >= 0 && i < n) return i;
  if (PADDING == BEYOND_ZEROS) return -1;
  if (PADDING == BEYOND_REFLECTION && MODE == SAMPLE_CUBIC) {
    float low = ALIGNED ? 0 : -0.5f, high = (float)(n - 1) + (ALIGNED ? 0 : 0.5f);
    i = (int64_t)nearest_to(mirrored((float)i, low, high));
  }
  return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* Keys's cubic, a = -0.75, for the four taps around a fraction. */
static void cubic_weights(float t, float weight[4]) {
  const float a = -0.75f;
  float u = 1 - t, far = t + 1, other = u + 1;
  weight[0] = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a;
  weight[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
  weight[2] = ((a + 2) * u - (a + 3)) * u * u + 1;
  weight[3] = ((a * other - 5 * a) * other + 8 * a) * other - 4 * a;
}

static AxisTaps taps_along(float grid, int64_t n) {
  AxisTaps taps;
  float x = place_of(grid, n), below = MODE == SAMPLE_NEAREST ? nearest_to(x) : floor_of(x), t = x - below, weight[4];
  int64_t first = (int64_t)below - (MODE == SAMPLE_CUBIC);
  if (MODE == SAMPLE_NEAREST) weight[0] = 1;
  if (MODE == SAMPLE_LINEAR) {
    weight[0] = 1 - t;
    weight[1] = t;
  }
  if (MODE == SAMPLE_CUBIC) cubic_weights(t, weight);
  for (int k = 0; k < TAPS; k++) {
    taps.index[k] = inside(first + k, n);
    taps.weight[k] = weight[k];
  }
  return taps;
}

/* The taps of point p. extent: the spatial axes; grid: its coordinates, the last axis's first. */
static void make_taps(PointTaps *taps, int p, const float *grid, const int64_t *extent) {
  AxisTaps axis[3];
  for (int k = 0; k < SPATIAL; k++) axis[k] = taps_along(grid[SPATIAL - 1 - k], extent[k]);
  for (int i = 0; i < POINT_TAPS; i++) {
    int64_t offset = 0, stride = 1;
    float weight = 1;
    bool beyond = false;
    for (int k = SPATIAL - 1, rest = i; k >= 0; k--, rest /= TAPS) {
      int64_t index = axis[k].index[rest % TAPS];
      beyond |= index < 0;
      weight *= axis[k].weight[rest % TAPS];
      offset += index * stride;
      stride *= extent[k];
    }
    taps->offset[i][p] = beyond ? -1 : (int32_t)offset;
    taps->weight[i][p] = weight;
  }
}

/* One channel at the first `count` points. */
static void sample(const PointTaps *taps, const float *restrict x, float *restrict y, int64_t count) {
  float sum[TOGETHER] = {0};
  for (int i = 0; i < POINT_TAPS; i++) {
    for (int p = 0; p < TOGETHER; p++) {
      int32_t at = taps->offset[i][p];
      sum[p] += at < 0 ? 0 : x[at] * taps->weight[i][p];
    }
  }
  for (int64_t p = 0; p < count; p++) y[p] = sum[p];
}

/* x: [n, channels, extent...]; grid: [n, points, SPATIAL]; y: [n, channels, points]. */
static void grid_sample(const Team *team, const float *x, const float *grid, float *y, int64_t n, int64_t channels,
                        const int64_t *extent, int64_t points) {
  int64_t volume = 1, blocks = ceil_div(points, TOGETHER), item, end;
  for (int k = 0; k < SPATIAL; k++) volume *= extent[k];
  team_share(team, n * blocks, &item, &end);
  for (; item < end; item++) {
    int64_t image = item / blocks, first = item % blocks * TOGETHER, count = min_i64(TOGETHER, points - first);
    PointTaps taps;
    for (int p = 0; p < TOGETHER; p++)
      make_taps(&taps, p, grid + (image * points + first + min_i64(p, count - 1)) * SPATIAL, extent);
    for (int64_t c = image * channels; c < (image + 1) * channels; c++)
      sample(&taps, x + c * volume, y + c * points + first, count);
  }
}
