/* SPDX-License-Identifier: MIT */
#include "convolution/winograd_weights.h"

enum { MOST_EXTENT = 6 };

/* The transform of three taps, G of Lavin and Gray (sections 4.1 and 4.3): the polynomial of the taps at the points of
 * templates/winograd.h, over the product of the point's differences from the others. */
static const double taps2[][3] = {{1, 0, 0}, {1 / 2.0, 1 / 2.0, 1 / 2.0}, {1 / 2.0, -1 / 2.0, 1 / 2.0}, {0, 0, 1}};
static const double taps4[][3] = {{1 / 4.0, 0, 0},
                                  {-1 / 6.0, -1 / 6.0, -1 / 6.0},
                                  {-1 / 6.0, 1 / 6.0, -1 / 6.0},
                                  {1 / 24.0, 1 / 12.0, 1 / 6.0},
                                  {1 / 24.0, -1 / 12.0, 1 / 6.0},
                                  {0, 0, 1}};

static double dot(const double *taps, double a, double b, double c) { return taps[0] * a + taps[1] * b + taps[2] * c; }

/* One filter's points, `stride` apart: G g G^T. */
static void transform(int tile, const float *filter, float *points, int64_t stride) {
  const double(*taps)[3] = tile == 2 ? taps2 : taps4;
  int extent = tile + 2;
  double rows[MOST_EXTENT][3];
  for (int i = 0; i < extent; i++)
    for (int s = 0; s < 3; s++) rows[i][s] = dot(taps[i], filter[s], filter[3 + s], filter[6 + s]);
  for (int i = 0; i < extent; i++)
    for (int j = 0; j < extent; j++, points += stride)
      *points = (float)dot(taps[j], rows[i][0], rows[i][1], rows[i][2]);
}

static int64_t points_of(const WinogradWeights *w) { return (int64_t)(w->tile + 2) * (w->tile + 2); }
static int64_t vectors_of(const WinogradWeights *w) { return (w->kernels + w->lanes - 1) / w->lanes; }

int64_t winograd_weights_floats(const WinogradWeights *w) {
  return points_of(w) * w->channels * vectors_of(w) * w->lanes;
}

/* A group of `width` columns, of which `used` are kernels. */
static void pack_group(const WinogradWeights *w, const float *source, float *target, int64_t used, int64_t width) {
  int64_t points = points_of(w), stride = w->channels * width;
  for (int64_t c = 0; c < w->channels; c++, target += width) {
    for (int64_t k = 0; k < used; k++) transform(w->tile, source + (k * w->channels + c) * 9, target + k, stride);
    for (int64_t k = used; k < width; k++)
      for (int64_t point = 0; point < points; point++) target[point * stride + k] = 0;
  }
}

void winograd_weights_pack(const WinogradWeights *w, const float *source, float *target) {
  int64_t group = (int64_t)w->oc_vectors * w->lanes, columns = vectors_of(w) * w->lanes;
  for (int64_t first = 0; first < columns; first += group) {
    int64_t width = columns - first < group ? columns - first : group;
    int64_t used = w->kernels - first < width ? w->kernels - first : width;
    pack_group(w, source + first * w->channels * 9, target, used, width);
    target += points_of(w) * w->channels * width;
  }
}
