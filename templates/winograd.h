/* SPDX-License-Identifier: MIT */
/*
 * The one-dimensional transforms of Winograd convolution, F(tile, taps) (Lavin and Gray, "Fast Algorithms for
 * Convolutional Neural Networks", 2015, section 4): `tile` outputs from extent = tile + taps - 1 inputs, by a product
 * of sums of inputs with sums of taps. It is a product of polynomials, which is determined by its values at extent - 1
 * points and by its first coefficient, "the point infinity". The points are, in this order,
 *
 *   extent 4   0 1 -1 infinity                  F(2,3)
 *   extent 6   0 1 -1 2 -2 infinity             F(4,3) F(2,5)
 *   extent 8   0 1 -1 2 -2 1/2 -1/2 infinity    F(6,3) F(2,7)
 *   extent 1   the input itself                 F(1,1)
 *
 * The input's transform depends on the points alone. The taps' transform, winograd_taps.h, has the factors that would
 * be fractions here.
 *
 * `extent` and `tile` must be constants once inlined.
 */
#ifndef WINOGRAD_H
#define WINOGRAD_H

#include "simd/simd.h"

SIMD_FUNCTION void winograd_input4(vec *points, const vec *in) {
  points[0] = vsub(in[0], in[2]);
  points[1] = vadd(in[1], in[2]);
  points[2] = vsub(in[2], in[1]);
  points[3] = vsub(in[1], in[3]);
}

/* As many additions as multiply-adds: CPUs have units for each. */
SIMD_FUNCTION void winograd_input6(vec *points, const vec *in) {
  vec two = vset(2), four = vset(4);
  vec even = vfnma(in[4], four, in[2]), odd = vfnma(in[3], four, in[1]);
  vec even2 = vsub(in[4], in[2]), odd2 = vsub(in[3], in[1]);
  points[0] = vfma(even2, four, vsub(in[0], in[2]));
  points[1] = vadd(even, odd);
  points[2] = vsub(even, odd);
  points[3] = vfma(even2, two, odd2);
  points[4] = vfnma(even2, two, odd2);
  points[5] = vfnma(vsub(in[5], in[3]), four, odd2);
}

/* The polynomials whose roots are all points but one: each pair of points has an even and an odd part. */
SIMD_FUNCTION void winograd_input8(vec *points, const vec *in) {
  vec two = vset(2), half = vset(0.5F), quarter = vset(0.25F), four = vset(4);
  vec a = vset(4.25F), b = vset(1.25F), c = vset(5.25F);
  vec even = vfnma(vadd(in[6], in[2]), a, in[4]), odd = vfnma(vadd(in[5], in[1]), a, in[3]);
  vec even2 = vfnma(vfma(in[6], quarter, in[2]), b, in[4]);
  vec odd2 = vfma(vmul(in[5], two), half, vfnma(in[1], vset(5), in[3]));
  vec even3 = vfma(in[6], four, vfnma(in[2], b, in[4]));
  vec odd3 = vfma(vmul(in[1], two), half, vfnma(in[5], vset(5), in[3]));
  points[0] = vfma(vsub(in[0], in[6]), c, vsub(in[4], in[2]));
  points[1] = vadd(even, odd);
  points[2] = vsub(even, odd);
  points[3] = vadd(even2, odd2);
  points[4] = vsub(even2, odd2);
  points[5] = vadd(even3, odd3);
  points[6] = vsub(even3, odd3);
  points[7] = vfma(vsub(in[7], in[1]), c, vsub(in[3], in[5]));
}

/* `extent` inputs to as many points: B^T d of the paper. */
SIMD_FUNCTION void winograd_input(vec *points, const vec *in, int extent) {
  if (extent == 1) points[0] = in[0];
  if (extent == 4) winograd_input4(points, in);
  if (extent == 6) winograd_input6(points, in);
  if (extent == 8) winograd_input8(points, in);
}

/* `extent` points to `tile` outputs, A^T m of the paper: output i is the sum over the points of the point's value times
 * the i-th power of the point. The last output also adds infinity, or subtracts it if extent is 4. Every output has
 * point 1 with the factor 1. */
SIMD_FUNCTION void winograd_output(vec *out, const vec *points, int tile, int extent) {
  if (extent == 1) {
    out[0] = points[0];
    return;
  }
  vec even = vadd(points[1], points[2]), odd = vsub(points[1], points[2]);
  if (extent == 4) {
    out[0] = vadd(points[0], even);
    out[1] = vsub(odd, points[3]);
    return;
  }
  vec even2 = vadd(points[3], points[4]), odd2 = vsub(points[3], points[4]);
  out[0] = vadd(vadd(points[0], even), even2);
  out[1] = vfma(odd, vset(2), odd2);
  if (tile >= 4) {
    out[2] = vfma(even, vset(4), even2);
    out[3] = vfma(odd, vset(8), odd2);
  }
  if (extent == 8) {
    vec even3 = vadd(points[5], points[6]), odd3 = vsub(points[5], points[6]);
    out[0] = vadd(out[0], even3);
    out[1] = vfma(out[1], vset(0.5F), odd3);
    if (tile == 6) {
      out[2] = vfma(out[2], vset(0.25F), even3);
      out[3] = vfma(out[3], vset(0.125F), odd3);
      out[4] = vfma(vfma(even, vset(16), even2), vset(0.0625F), even3);
      out[5] = vfma(vfma(odd, vset(32), odd2), vset(0.03125F), odd3);
    }
  }
  out[tile - 1] = vadd(out[tile - 1], points[extent - 1]);
}

#endif
