/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "reference/resize_taps.h"

#include "support/numbers.h"

ResizeAxis resize_axis(int64_t in, int64_t out, float given) {
  ResizeAxis axis = {.in = in, .out = out, .roi = {0, 1}};
  axis.scale = given != 0 ? given : (float)out / (float)in;
  axis.length = given != 0 ? given * (float)in : (float)out;
  return axis;
}

static bool cropping(const Node *node) {
  return node_word(node, ATTR_coordinate_transformation_mode) == COORDINATES_tf_crop_and_resize;
}

bool resize_is_identity(const Node *node, const ResizeAxis *axis) {
  if (cropping(node) && (axis->roi[0] != 0 || axis->roi[1] != 1)) return false;
  return axis->in == axis->out && axis->scale == 1;
}

/* ---- coordinates: where output element o lies in the input ---- */

typedef float Coordinate(const ResizeAxis *a, float o);

static float half_pixel(const ResizeAxis *a, float o) { return (o + 0.5f) / a->scale - 0.5f; }

/* The middle of the input is that of the output, also where the output's extent was rounded. */
static float half_pixel_symmetric(const ResizeAxis *a, float o) {
  float shift = (float)a->in / 2 * (1 - (float)a->out / a->length), shifted = shift + (o + 0.5f) / a->scale;
  return shifted - 0.5f;
}

static float pytorch_half_pixel(const ResizeAxis *a, float o) { return a->out > 1 ? half_pixel(a, o) : 0; }

static float asymmetric(const ResizeAxis *a, float o) { return o / a->scale; }

static float tf_half_pixel_for_nn(const ResizeAxis *a, float o) { return (o + 0.5f) / a->scale; }

static float align_corners(const ResizeAxis *a, float o) {
  return a->length == 1 ? 0 : o * (float)(a->in - 1) / (a->length - 1);
}

static float tf_crop_and_resize(const ResizeAxis *a, float o) {
  float last = (float)(a->in - 1), begin = a->roi[0], end = a->roi[1];
  return a->out > 1 ? begin * last + o * (end - begin) * last / (a->length - 1) : 0.5f * (begin + end) * last;
}

static Coordinate *const coordinates[] = {
    [COORDINATES_half_pixel] = half_pixel,
    [COORDINATES_half_pixel_symmetric] = half_pixel_symmetric,
    [COORDINATES_pytorch_half_pixel] = pytorch_half_pixel,
    [COORDINATES_asymmetric] = asymmetric,
    [COORDINATES_align_corners] = align_corners,
    [COORDINATES_tf_crop_and_resize] = tf_crop_and_resize,
    [COORDINATES_tf_half_pixel_for_nn] = tf_half_pixel_for_nn,
};

static Coordinate *coordinate_of(const Node *node) {
  return coordinates[node_word(node, ATTR_coordinate_transformation_mode)];
}

static float nearest(NearestMode mode, float at) {
  if (mode == NEAREST_floor) return floorf(at);
  if (mode == NEAREST_ceil) return ceilf(at);
  bool halfway = at - floorf(at) == 0.5f;
  if (!halfway) return roundf(at);
  return mode == NEAREST_round_prefer_ceil ? ceilf(at) : floorf(at);
}

/* ---- weights, by the distance in input elements; `narrow` <= 1: a filter widened against aliasing ---- */

static double linear_weight(double distance) { return distance < 1 ? 1 - distance : 0; }

/* Keys, Cubic convolution interpolation for digital image processing (1981), with his a. */
static double cubic_weight(double d, double a) {
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

typedef struct Filter {
  bool cubic, exclude_outside;
  double a, narrow;
  int half; /* taps on either side */
} Filter;

double resize_narrow(const Node *node, const ResizeAxis *axis) {
  return node_int(node, ATTR_antialias) && axis->scale > 0 && axis->scale < 1 ? axis->scale : 1;
}

static Filter filter_of(const Node *node, const ResizeAxis *axis) {
  Filter filter = {.cubic = node_word(node, ATTR_mode) == RESIZE_cubic, .narrow = 1};
  filter.a = node_float(node, ATTR_cubic_coeff_a);
  filter.exclude_outside = node_int(node, ATTR_exclude_outside) != 0;
  filter.narrow = resize_narrow(node, axis);
  filter.half = (int)-floor(-(filter.cubic ? 2 : 1) / filter.narrow);
  return filter;
}

/* The weights of taps first .. first + 2 half - 1 around `at`. Weights that were widened, or lost some outside, are
 * scaled to a sum of 1. */
static void weigh(const Filter *filter, const ResizeAxis *axis, float at, int64_t first, double *weight) {
  double sum = 0;
  for (int k = 0; k < 2 * filter->half; k++) {
    double distance = fabs((double)(first + k) - (double)at) * filter->narrow;
    bool outside = first + k < 0 || first + k >= axis->in;
    weight[k] = filter->cubic ? cubic_weight(distance, filter->a) : linear_weight(distance);
    if (filter->exclude_outside && outside) weight[k] = 0;
    sum += weight[k];
  }
  if (filter->narrow == 1 && !filter->exclude_outside) return;
  for (int k = 0; k < 2 * filter->half; k++) weight[k] /= sum;
}

/* Taps outside read the element at the edge: their weights go to it, and the window moves inside. */
static void place(const ResizeAxis *axis, ResizeTaps *taps, int64_t o, int64_t first, int count, const double *weight,
                  double *sums) {
  int64_t start = clamp_int(0, first, axis->in - taps->n);
  for (int k = 0; k < taps->n; k++) sums[k] = 0;
  for (int k = 0; k < count; k++) sums[clamp_int(0, first + k, axis->in - 1) - start] += weight[k];
  taps->start[o] = (int32_t)start;
  for (int k = 0; k < taps->n; k++) taps->weight[o * taps->n + k] = (float)sums[k];
}

/* Also for NaN coordinates, from NaN regions. */
static bool outside(const Node *node, const ResizeAxis *axis, float at) {
  return cropping(node) && !(at >= 0 && at <= (float)(axis->in - 1));
}

static void weighted_taps(Arena *arena, const Node *node, const ResizeAxis *axis, ResizeTaps *taps) {
  Filter filter = filter_of(node, axis);
  double *weight = ARENA_ARRAY(arena, double, 2 * filter.half), *sums = ARENA_ARRAY(arena, double, taps->n);
  for (int64_t o = 0; o < axis->out; o++) {
    float at = coordinate_of(node)(axis, (float)o);
    taps->start[o] = -1;
    if (outside(node, axis, at)) continue;
    int64_t first = (int64_t)ceilf(at) - filter.half;
    weigh(&filter, axis, at, first, weight);
    place(axis, taps, o, first, 2 * filter.half, weight, sums);
  }
}

static void nearest_taps(const Node *node, const ResizeAxis *axis, ResizeTaps *taps) {
  NearestMode mode = node_word(node, ATTR_nearest_mode);
  for (int64_t o = 0; o < axis->out; o++) {
    float at = coordinate_of(node)(axis, (float)o);
    taps->start[o] = outside(node, axis, at) ? -1 : (int32_t)clamp_int(0, (int64_t)nearest(mode, at), axis->in - 1);
    taps->weight[o] = 1;
  }
}

static bool takes_nearest(const Node *node) { return node_word(node, ATTR_mode) == RESIZE_nearest; }

int64_t resize_tap_count(const Node *node, const ResizeAxis *axis) {
  return takes_nearest(node) ? 1 : 2 * filter_of(node, axis).half;
}

ResizeTaps resize_taps(Arena *arena, const Node *node, const ResizeAxis *axis) {
  int64_t n = min_int(resize_tap_count(node, axis), axis->in);
  ResizeTaps taps = {.n = (int)n};
  taps.start = ARENA_ARRAY(arena, int32_t, axis->out);
  taps.weight = ARENA_ARRAY(arena, float, axis->out *n);
  if (takes_nearest(node))
    nearest_taps(node, axis, &taps);
  else
    weighted_taps(arena, node, axis, &taps);
  return taps;
}

ResizeTaps resize_identity(Arena *arena, int64_t extent) {
  ResizeTaps taps = {.n = 1, .start = ARENA_ARRAY(arena, int32_t, extent), .weight = ARENA_ARRAY(arena, float, extent)};
  for (int64_t o = 0; o < extent; o++) {
    taps.start[o] = (int32_t)o;
    taps.weight[o] = 1;
  }
  return taps;
}

/* ---- which axes ---- */

float resize_keep_aspect(const Node *node, int n, const int64_t *in, int64_t *sizes) {
  ResizeAspect policy = node_word(node, ATTR_keep_aspect_ratio_policy);
  if (policy == ASPECT_stretch) return 0;
  bool larger = policy == ASPECT_not_smaller;
  float scale = larger ? 0 : INFINITY;
  for (int i = 0; i < n; i++) {
    float own = (float)sizes[i] / (float)in[i];
    scale = larger ? fmaxf(scale, own) : fminf(scale, own);
  }
  for (int i = 0; i < n; i++) sizes[i] = (int64_t)floorf(scale * (float)in[i] + 0.5f);
  return scale;
}

int resize_position(const Node *node, int axis, int rank) {
  const Attribute *axes = node_attribute(node, ATTR_axes);
  if (!axes) return axis;
  for (size_t i = 0; i < axes->count; i++)
    if (normal_axis(axes->ints[i], rank) == axis) return (int)i;
  return -1;
}
