/* SPDX-License-Identifier: MIT */
/*
 * The tables of one axis of a Resize whose extents only the run knows: of each output element the first input element,
 * and the weights of TAPS elements from there on. Constant extents have theirs from compiler/reference/resize_taps.c:
 * the two agree in every formula, and coordinates in every rounding.
 */
#include "kernel.h"
#include "knobs.h"

/* SAMPLE_NEAREST, ...
 * legal: 0 1 2 */
enum { MODE = SAMPLE_LINEAR };
/* Where an output element lies in the input: PLACE_HALF_PIXEL, ...
 * legal: 0 1 2 3 4 5 6 */
enum { PLACE = PLACE_HALF_PIXEL };
/* The nearest element of one between two: ROUND_PREFER_FLOOR, ...
 * legal: 0 1 2 3 */
enum { ROUND = ROUND_PREFER_FLOOR };
/* legal: 1..1024 */
enum { TAPS = 2 };
/* 1: elements outside have no weight; 0: theirs goes to the edge.
 * legal: 0 1 */
enum { EXCLUDES = 0 };

typedef struct Axis {
  int64_t in, out;
  float scale, length; /* length: in * scale, which `out` may be rounded from */
  float begin, end;    /* of PLACE_CROP, in parts of the input */
} Axis;

static inline float floor_of(float x) {
  float whole = (float)(int64_t)x;
  return whole > x ? whole - 1 : whole;
}

/* A statement has no sum of a product: fused, it would be rounded otherwise. */
static float place_of(const Axis *a, float o) {
  float last = (float)(a->in - 1), middle = (o + 0.5f) / a->scale, half_pixel = middle - 0.5f;
  bool crops = PLACE == PLACE_CROP;
  if (!crops && a->in == a->out && a->scale == 1) return o;
  if (PLACE == PLACE_ASYMMETRIC) return o / a->scale;
  if (PLACE == PLACE_MIDDLE) return middle;
  if (PLACE == PLACE_PYTORCH) return a->out > 1 ? half_pixel : 0;
  if (PLACE == PLACE_CORNERS) return a->length == 1 ? 0 : o * last / (a->length - 1);
  if (PLACE == PLACE_SYMMETRIC) {
    float shift = (float)a->in / 2 * (1 - (float)a->out / a->length), shifted = shift + middle;
    return shifted - 0.5f;
  }
  if (crops) {
    if (a->out <= 1) return 0.5f * (a->begin + a->end) * last;
    float first = a->begin * last, along = o * (a->end - a->begin) * last / (a->length - 1);
    return first + along;
  }
  return half_pixel;
}

/* Also for NaN, of NaN regions. */
static bool is_outside(const Axis *a, float at) {
  return PLACE == PLACE_CROP && !(at >= 0 && at <= (float)(a->in - 1));
}

static inline int64_t clamp(int64_t low, int64_t x, int64_t high) { return x < low ? low : x > high ? high : x; }

static int64_t nearest_to(float at) {
  float below = floor_of(at), part = at - below;
  bool up = ROUND == ROUND_UP             ? part > 0
            : ROUND == ROUND_PREFER_FLOOR ? part > 0.5f
            : ROUND == ROUND_PREFER_CEIL  ? part >= 0.5f
                                          : false;
  return (int64_t)below + up;
}

/* Keys, Cubic convolution interpolation for digital image processing (1981), with his a. */
static double cubic_weight(double d, double a) {
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/* narrow <= 1: a filter widened against aliasing. */
static double weight_of(const Axis *axis, float at, int64_t i, double a, double narrow) {
  double difference = (double)i - (double)at, distance = (difference < 0 ? -difference : difference) * narrow;
  if (EXCLUDES && (i < 0 || i >= axis->in)) return 0;
  if (MODE == SAMPLE_CUBIC) return cubic_weight(distance, a);
  return distance < 1 ? 1 - distance : 0;
}

/* The taps around `at`, moved inside; weights are `out` apart. Where the input has fewer than TAPS elements, the last
 * weights are 0. */
static int32_t weigh(const Axis *axis, float at, float *weight, double a, double narrow) {
  double sums[TAPS] = {0}, total = 0;
  float below = floor_of(at);
  int64_t first = (int64_t)below + (at > below) - TAPS / 2, start = clamp(0, first, max_i64(0, axis->in - TAPS));
  for (int64_t k = 0; k < TAPS; k++) {
    double own = weight_of(axis, at, first + k, a, narrow);
    sums[clamp(0, first + k, axis->in - 1) - start] += own;
    total += own;
  }
  if (!EXCLUDES && !(narrow < 1)) total = 1;
  for (int64_t k = 0; k < TAPS; k++) weight[k * axis->out] = (float)(sums[k] / total);
  return (int32_t)start;
}

/* weight: [TAPS][out], not written of the nearest element. scale 0: that of the extents. length 0: what follows from
 * both. begin, end: the region. a: of cubic interpolation. */
static void resize_taps(const Team *team, int32_t *start, float *weight, float scale, float length, float begin,
                        float end, float a, float narrow, int64_t in, int64_t out) {
  Axis axis = {in, out, scale, scale * (float)in, begin, end};
  if (!(scale > 0)) axis.scale = (float)out / (float)in, axis.length = (float)out;
  if (length > 0) axis.length = length;
  int64_t o, last;
  team_share(team, out, &o, &last);
  for (; o < last; o++) {
    float at = place_of(&axis, (float)o);
    if (is_outside(&axis, at))
      start[o] = -1;
    else if (MODE == SAMPLE_NEAREST)
      start[o] = (int32_t)clamp(0, nearest_to(at), in - 1);
    else
      start[o] = weigh(&axis, at, weight + o, (double)a, (double)narrow);
  }
}
