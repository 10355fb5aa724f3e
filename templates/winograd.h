/* SPDX-License-Identifier: MIT */
/*
 * The one-dimensional transforms of Winograd convolution with three taps, F(2,3) and F(4,3) (Lavin and Gray, "Fast
 * Algorithms for Convolutional Neural Networks", 2015, sections 4.1 and 4.3): `tile` outputs from tile + 2 inputs, by a
 * product of sums of inputs with sums of taps. The points are 0, 1, -1, infinity, and 2 and -2 for F(4,3); in this
 * order: 0, 1, -1, (2, -2,) infinity. The transform of the taps, which belongs to the points, is the compiler's:
 * convolution/winograd_weights.c.
 *
 * `tile`, 2 or 4, must be a constant once inlined.
 */
#ifndef WINOGRAD_H
#define WINOGRAD_H

#include "simd/simd.h"

/* tile + 2 inputs to as many points: B^T d of the paper. */
SIMD_FUNCTION void winograd_input(vec *points, const vec *in, int tile) {
  if (tile == 2) {
    points[0] = vsub(in[0], in[2]);
    points[1] = vadd(in[1], in[2]);
    points[2] = vsub(in[2], in[1]);
    points[3] = vsub(in[1], in[3]);
    return;
  }
  vec two = vset(2), four = vset(4), five = vset(5);
  vec even = vfnma(in[4], four, in[2]), odd = vfnma(in[3], four, in[1]);
  vec even2 = vsub(in[4], in[2]), odd2 = vsub(in[3], in[1]);
  points[0] = vfma(vfnma(in[4], five, in[2]), four, in[0]);
  points[1] = vadd(even, odd);
  points[2] = vsub(even, odd);
  points[3] = vfma(even2, two, odd2);
  points[4] = vfnma(even2, two, odd2);
  points[5] = vfma(vfnma(in[5], five, in[3]), four, in[1]);
}

/* tile + 2 points to `tile` outputs: A^T m of the paper. The outputs all count point 1 once. */
SIMD_FUNCTION void winograd_output(vec *out, const vec *points, int tile) {
  vec even = vadd(points[1], points[2]), odd = vsub(points[1], points[2]);
  if (tile == 2) {
    out[0] = vadd(points[0], even);
    out[1] = vsub(odd, points[3]);
    return;
  }
  vec even2 = vadd(points[3], points[4]), odd2 = vsub(points[3], points[4]);
  out[0] = vadd(vadd(points[0], even), even2);
  out[1] = vfma(odd, vset(2), odd2);
  out[2] = vfma(even, vset(4), even2);
  out[3] = vadd(vfma(odd, vset(8), odd2), points[5]);
}

#endif
