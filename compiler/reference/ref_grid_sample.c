/* SPDX-License-Identifier: MIT */
/* GridSample, after ONNX's text: every element that an interpolation asks for is looked up by its place, which may lie
 * beyond the border. */
#include <math.h>

#include "reference/kernels.h"

typedef struct Sampling {
  const Tensor *x;
  GridPadding padding;
  bool aligned;
  int taps; /* an axis: 1 nearest, 2 linear, 4 cubic */
  int spatial;
} Sampling;

static double place_of(const Sampling *s, double grid, int64_t n) {
  return s->aligned ? (grid + 1) / 2 * (double)(n - 1) : ((grid + 1) * (double)n - 1) / 2;
}

/* Reflected at the borders until it lies between them. */
static double reflected(const Sampling *s, double at, int64_t n) {
  double low = s->aligned ? 0 : -0.5, high = s->aligned ? (double)(n - 1) : (double)n - 0.5;
  if (high <= low) return low;
  double turn = fmod(fabs(at - low), 2 * (high - low));
  return turn > high - low ? high - (turn - (high - low)) : low + turn;
}

/* Coordinates are padded before interpolation; for cubic interpolation the taps are padded instead. */
static double padded(const Sampling *s, double at, int64_t n) {
  if (s->padding == GRID_PADDING_border) return fmin(fmax(at, 0), (double)(n - 1));
  return s->padding == GRID_PADDING_reflection ? reflected(s, at, n) : at;
}

static double weight_of(const Sampling *s, int tap, double t) {
  const double a = -0.75;
  if (s->taps == 1) return 1;
  if (s->taps == 2) return tap ? t : 1 - t;
  double d = fabs(t - (tap - 1));
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

/* The index of a tap on an axis, -1 beyond the border. */
static int64_t index_of(const Sampling *s, double tap, int64_t n) {
  if (s->taps == 4) tap = nearbyint(padded(s, tap, n));
  if (s->padding != GRID_PADDING_zeros) tap = fmin(fmax(tap, 0), (double)(n - 1));
  return tap >= 0 && tap <= (double)(n - 1) ? (int64_t)tap : -1;
}

/* The interpolated value of the channel that begins at `first`. */
static double sample(const Sampling *s, int64_t first, const double *at) {
  int64_t box[3];
  double sum = 0;
  for (int k = 0; k < s->spatial; k++) box[k] = s->taps;
  Walk point = walk_over(s->spatial, box);
  for (bool on = walk_begin(&point); on; on = walk_next(&point)) {
    double weight = 1;
    int64_t offset = 0;
    for (int k = 0; k < s->spatial && offset >= 0; k++) {
      int64_t n = s->x->shape[2 + k];
      double base = s->taps == 1 ? nearbyint(at[k]) : floor(at[k]) - (s->taps == 4);
      int64_t index = index_of(s, base + (double)point.index[k], n);
      weight *= weight_of(s, (int)point.index[k], at[k] - floor(at[k]));
      offset = index < 0 ? -1 : offset * n + index;
    }
    if (offset >= 0) sum += weight * tensor_get(s->x, first + offset);
  }
  return sum;
}

const char *ref_grid_sample(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *grid = inputs[1];
  static const int taps[] = {[GRID_nearest] = 1, [GRID_linear] = 2, [GRID_cubic] = 4};
  Sampling s = {.x = x, .padding = node_word(node, ATTR_padding_mode), .spatial = x->rank - 2};
  s.aligned = node_int(node, ATTR_align_corners) != 0;
  s.taps = taps[node_word(node, ATTR_mode)];
  int64_t points = tensor_extent(grid, 1, grid->rank - 1), volume = tensor_extent(x, 2, x->rank), C = x->shape[1];
  for (int64_t i = 0; i < x->shape[0] * points; i++) {
    double at[3];
    for (int k = 0; k < s.spatial; k++) {
      int64_t n = x->shape[2 + k];
      at[k] = place_of(&s, tensor_get(grid, i * s.spatial + s.spatial - 1 - k), n);
      at[k] = fmin(fmax(at[k], -1e9), 1e9);
      if (s.taps < 4) at[k] = padded(&s, at[k], n);
    }
    for (int64_t c = 0; c < C; c++) {
      int64_t channel = i / points * C + c;
      tensor_set(outputs[0], channel * points + i % points, sample(&s, channel * volume, at));
    }
  }
  return NULL;
}
