/* SPDX-License-Identifier: MIT */
/*
 * The taps' transform of Winograd convolution, G of Lavin and Gray (section 4), for the points of winograd.h. At each
 * finite point it is the polynomial of the taps, times the part of the reciprocal of the product of differences to the
 * other points that the input's transform does not have. At infinity it is the last tap.
 *
 * The compiler transforms weights that it knows by these functions, a kernel those that only the running module knows,
 * and both must give the same bits. So the factor comes last: points are powers of 2, their products are exact, and it
 * does not matter whether a target adds them by fused multiply-adds.
 *
 * A number is one in the compiler, and in a kernel a register of them, of filters beside each other. `extent` and
 * `taps` should be constants once inlined.
 */
#ifndef WINOGRAD_TAPS_H
#define WINOGRAD_TAPS_H

#ifdef SIMD_SIMD_H
enum { WINOGRAD_ROW = LANES / 2 };
typedef double winograd_row __attribute__((vector_size(8 * WINOGRAD_ROW)));
typedef float winograd_floats __attribute__((vector_size(4 * WINOGRAD_ROW)));
#else
typedef double winograd_row;
#endif

enum { WINOGRAD_MAX_EXTENT = 8, WINOGRAD_MAX_TAPS = 7 };

typedef struct WinogradPoint {
  double at, factor;
} WinogradPoint;

/* Finite point i of a tile of this extent. */
static inline WinogradPoint winograd_point(int extent, int i) {
  static const WinogradPoint of4[] = {{0, 1}, {1, 1 / 2.0}, {-1, 1 / 2.0}};
  static const WinogradPoint of6[] = {{0, 1 / 4.0}, {1, -1 / 6.0}, {-1, -1 / 6.0}, {2, 1 / 24.0}, {-2, 1 / 24.0}};
  static const WinogradPoint of8[] = {{0, 1},         {1, -2 / 9.0},    {-1, -2 / 9.0},   {2, 1 / 90.0},
                                      {-2, 1 / 90.0}, {0.5, 32 / 45.0}, {-0.5, 32 / 45.0}};
  return extent == 4 ? of4[i] : extent == 6 ? of6[i] : of8[i];
}

/* Taps along an axis to points, either `stride` apart. */
static inline void winograd_taps_axis(int extent, int taps, const winograd_row *in, int in_stride, winograd_row *out,
                                      int out_stride) {
  for (int i = 0; i < extent - 1; i++) {
    const WinogradPoint point = winograd_point(extent, i);
    winograd_row value = in[0];
    double power = point.at;
    for (int k = 1; k < taps; k++, power *= point.at) value += power * in[k * in_stride];
    out[i * out_stride] = value * point.factor;
  }
  out[(extent - 1) * out_stride] = in[(taps - 1) * in_stride];
}

/* A window [taps_h][taps_w] to points [extent_h][extent_w]: G g G^T. columns: room for [extent_h][taps_w]. */
static inline void winograd_taps(int extent_h, int extent_w, int taps_h, int taps_w, const winograd_row *window,
                                 winograd_row *columns, winograd_row *points) {
  for (int s = 0; s < taps_w; s++) winograd_taps_axis(extent_h, taps_h, window + s, taps_w, columns + s, taps_w);
  for (int i = 0; i < extent_h; i++)
    winograd_taps_axis(extent_w, taps_w, columns + i * taps_w, 1, points + i * extent_w, 1);
}

#endif
