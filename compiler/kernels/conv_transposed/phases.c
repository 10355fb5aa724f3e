/* SPDX-License-Identifier: MIT */
#include "kernels/conv_transposed/phases.h"

#include "support/numbers.h"

/* a and modulus have no common divisor. */
static int64_t inverse_modulo(int64_t a, int64_t modulus) {
  int64_t inverse = 0;
  while (a * inverse % modulus != 1 % modulus) inverse++;
  return inverse;
}

PhaseAxis phase_axis_of(int64_t window, int64_t stride, int64_t dilation) {
  int64_t common = common_divisor(stride, dilation);
  PhaseAxis axis = {.window = window, .up = stride, .period = stride / common, .dilation = dilation / common};
  axis.inverse = inverse_modulo(axis.dilation, axis.period);
  return axis;
}

/* ---- weights ---- */

/* The taps of a phase along an axis, the last point of the window first. */
typedef struct Taps {
  int64_t first, count; /* the first point */
} Taps;

static Taps taps_from(const PhaseAxis *axis, int64_t first) {
  return (Taps){.first = first, .count = ceil_div(axis->window - first, axis->period)};
}

static int64_t point_of(const PhaseAxis *axis, Taps taps, int64_t tap) {
  return taps.first + (taps.count - 1 - tap) * axis->period;
}

/* An input and an output channel's taps of a phase. window: [R][S]. Returns the end of `taps`. */
static float *gather(const PhaseAxis *h, const PhaseAxis *w, Taps rows, Taps columns, const float *window,
                     float *taps) {
  for (int64_t r = 0; r < rows.count; r++)
    for (int64_t s = 0; s < columns.count; s++)
      *taps++ = window[point_of(h, rows, r) * w->window + point_of(w, columns, s)];
  return taps;
}

/* [groups * kernels][channels][taps of a phase], the order of a convolution's weights. */
static void gather_phase(const DirectWeights *weights, const PhaseAxis *h, const PhaseAxis *w, Taps rows, Taps columns,
                         const float *source, float *taps) {
  int64_t C = weights->group_channels, K = weights->group_kernels;
  for (int64_t kernel = 0; kernel < weights->kernels; kernel++)
    for (int64_t c = 0; c < C; c++) {
      int64_t pair = (kernel / K * C + c) * K + kernel % K;
      taps = gather(h, w, rows, columns, source + pair * h->window * w->window, taps);
    }
}

void phases_pack(const DirectWeights *weights, const PhaseAxis *h, const PhaseAxis *w, const float *source, float *taps,
                 float *packed) {
  for (int64_t r = 0; r < min_int(h->period, h->window); r++)
    for (int64_t s = 0; s < min_int(w->period, w->window); s++) {
      Taps rows = taps_from(h, r), columns = taps_from(w, s);
      DirectWeights phase = *weights;
      phase.window = rows.count * columns.count;
      gather_phase(weights, h, w, rows, columns, source, taps);
      direct_pack(&phase, taps, packed);
      packed += direct_floats(&phase);
    }
}
