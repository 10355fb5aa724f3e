/* SPDX-License-Identifier: MIT */
#include "kernels/conv/winograd_weights.h"

#include "support/numbers.h"

enum { MAX_EXTENT = 8, MAX_TAPS = 7 };

/* The transform of the taps along an axis, G of Lavin and Gray (section 4): at each finite point of
 * templates/winograd.h the polynomial of the taps, times the part of the reciprocal of the product of differences to
 * the other points that the input's transform does not have. At infinity it is the last tap. */
typedef struct Point {
  double at, factor;
} Point;

static const Point points4[] = {{0, 1}, {1, 1 / 2.0}, {-1, 1 / 2.0}};
static const Point points6[] = {{0, 1 / 4.0}, {1, -1 / 6.0}, {-1, -1 / 6.0}, {2, 1 / 24.0}, {-2, 1 / 24.0}};
static const Point points8[] = {{0, 1},         {1, -2 / 9.0},    {-1, -2 / 9.0},   {2, 1 / 90.0},
                                {-2, 1 / 90.0}, {0.5, 32 / 45.0}, {-0.5, 32 / 45.0}};
static const Point *const points_by_extent[MAX_EXTENT + 1] = {[4] = points4, [6] = points6, [8] = points8};

/* `taps` numbers to `extent`, either `stride` apart. */
static void transform_axis(int extent, int taps, const double *in, int in_stride, double *out, int out_stride) {
  const Point *points = points_by_extent[extent];
  for (int i = 0; i < extent - 1; i++) {
    double value = 0, power = points[i].factor;
    for (int k = 0; k < taps; k++, power *= points[i].at) value += power * in[k * in_stride];
    out[i * out_stride] = value;
  }
  out[(extent - 1) * out_stride] = in[(taps - 1) * in_stride];
}

/* One filter's points, `stride` apart: G g G^T. */
static void transform(const WinogradForm *f, const float *filter, float *points, int64_t stride) {
  int extent_h = f->tile_h + f->taps_h - 1, extent_w = f->tile_w + f->taps_w - 1;
  double taps[MAX_TAPS * MAX_TAPS], columns[MAX_EXTENT * MAX_TAPS], all[MAX_EXTENT * MAX_EXTENT];
  for (int i = 0; i < f->taps_h * f->taps_w; i++) taps[i] = filter[i];
  for (int s = 0; s < f->taps_w; s++) transform_axis(extent_h, f->taps_h, taps + s, f->taps_w, columns + s, f->taps_w);
  for (int i = 0; i < extent_h; i++)
    transform_axis(extent_w, f->taps_w, columns + i * f->taps_w, 1, all + i * extent_w, 1);
  for (int i = 0; i < extent_h * extent_w; i++) points[i * stride] = (float)all[i];
}

static int64_t vectors_of(const WinogradWeights *w) { return ceil_div(w->kernels, w->lanes); }

int64_t winograd_weights_floats(const WinogradWeights *w) {
  return winograd_points(&w->form) * w->channels * vectors_of(w) * w->lanes;
}

/* A group of `width` columns, of which `used` are kernels. */
static void pack_group(const WinogradWeights *w, const float *source, float *target, int64_t used, int64_t width) {
  int64_t points = winograd_points(&w->form), taps = w->form.taps_h * w->form.taps_w, stride = w->channels * width;
  for (int64_t c = 0; c < w->channels; c++, target += width) {
    for (int64_t k = 0; k < used; k++) transform(&w->form, source + (k * w->channels + c) * taps, target + k, stride);
    for (int64_t k = used; k < width; k++)
      for (int64_t point = 0; point < points; point++) target[point * stride + k] = 0;
  }
}

void winograd_weights_pack(const WinogradWeights *w, const float *source, float *target) {
  int64_t group = (int64_t)w->oc_vectors * w->lanes, columns = vectors_of(w) * w->lanes;
  for (int64_t first = 0; first < columns; first += group) {
    int64_t width = columns - first < group ? columns - first : group;
    int64_t used = w->kernels - first < width ? w->kernels - first : width;
    pack_group(w, source + first * w->channels * w->form.taps_h * w->form.taps_w, target, used, width);
    target += winograd_points(&w->form) * w->channels * width;
  }
}
