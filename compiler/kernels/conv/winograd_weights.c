/* SPDX-License-Identifier: MIT */
#include "kernels/conv/winograd_weights.h"

#include "support/numbers.h"
#include "winograd_taps.h"

/* One filter's points, `stride` apart. */
static void transform(const WinogradForm *f, const float *filter, float *points, int64_t stride) {
  int extent_h = f->tile_h + f->taps_h - 1, extent_w = f->tile_w + f->taps_w - 1;
  double taps[WINOGRAD_MAX_TAPS * WINOGRAD_MAX_TAPS], columns[WINOGRAD_MAX_EXTENT * WINOGRAD_MAX_TAPS];
  double all[WINOGRAD_MAX_EXTENT * WINOGRAD_MAX_EXTENT];
  for (int i = 0; i < f->taps_h * f->taps_w; i++) taps[i] = filter[i];
  winograd_taps(extent_h, extent_w, f->taps_h, f->taps_w, taps, columns, all);
  for (int i = 0; i < extent_h * extent_w; i++) points[i * stride] = (float)all[i];
}

static int64_t vectors_of(const WinogradWeights *w) { return ceil_div(w->kernels, w->lanes); }

int64_t winograd_weights_floats(const WinogradWeights *w) {
  return winograd_points(&w->form) * w->channels * vectors_of(w) * w->lanes;
}

/* A group of `width` columns, of which `used` are kernels; the others are transformed from zeros, as the kernel does.
 */
static void pack_group(const WinogradWeights *w, const float *source, float *target, int64_t used, int64_t width) {
  static const float zeros[WINOGRAD_MAX_TAPS * WINOGRAD_MAX_TAPS];
  int64_t taps = w->form.taps_h * w->form.taps_w, stride = w->channels * width;
  for (int64_t c = 0; c < w->channels; c++, target += width)
    for (int64_t k = 0; k < width; k++)
      transform(&w->form, k < used ? source + (k * w->channels + c) * taps : zeros, target + k, stride);
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
