/* SPDX-License-Identifier: MIT */
/*
 * The transforms of winograd.h in integers, for F(4,3), F(2,3) and F(1,1). The taps' transform is winograd.h's times
 * WINOGRAD_SCALE, 24 or 2, of which the input's has nothing, so that all numbers are whole, and outputs are so many
 * times those of the convolution. A factor of 2 of F(4,3)'s point at infinity is in the output's transform.
 *
 * Bounds, by the sums of the factors' magnitudes, along both axes: inputs of u8 become at most 255 * 68 (F(4,3): a row
 * [0 -4 -4 1 1 0] has sums of factors -8 and 2; 8 * 8 + 2 * 2) or 255 * 4; taps of s8 at most 128 * 12 * 12. So both
 * fit 16 bits.
 *
 * `extent` and `point` must be constants once inlined.
 */
#ifndef WINOGRAD_INT8_H
#define WINOGRAD_INT8_H

#include "simd/int8.h"
#include "simd/simd.h"

/* The inverse of 3 modulo 2^32, and how often 2 divides the scale of an axis. */
enum { WINOGRAD_THIRD = -1431655765 };
#define WINOGRAD_TWOS(extent) ((extent) == 6 ? 3 : (extent) == 4 ? 1 : 0)

/* ---- numbers of 16 bits ---- */

SIMD_FUNCTION void winograd_pairs_input4(vint *points, const vint *in) {
  points[0] = vpair_sub(in[0], in[2]);
  points[1] = vpair_add(in[1], in[2]);
  points[2] = vpair_sub(in[2], in[1]);
  points[3] = vpair_sub(in[1], in[3]);
}

SIMD_FUNCTION void winograd_pairs_input6(vint *points, const vint *in) {
  vint even2 = vpair_sub(in[4], in[2]), odd2 = vpair_sub(in[3], in[1]), two = vpair_shift(odd2, 1);
  vint even = vpair_sub(in[4], vpair_shift(in[2], 2)), odd = vpair_sub(in[3], vpair_shift(in[1], 2));
  points[0] = vpair_add(even2, vpair_shift(vpair_sub(in[0], in[2]), 2));
  points[1] = vpair_add(even, odd);
  points[2] = vpair_sub(even, odd);
  points[3] = vpair_add(even2, two);
  points[4] = vpair_sub(even2, two);
  points[5] = vpair_sub(vpair_sub(in[5], in[3]), vpair_shift(two, 1));
}

/* `extent` inputs to as many points. */
SIMD_FUNCTION void winograd_pairs_input(vint *points, const vint *in, int extent) {
  if (extent == 1) points[0] = in[0];
  if (extent == 4) winograd_pairs_input4(points, in);
  if (extent == 6) winograd_pairs_input6(points, in);
}

/* -4 x */
SIMD_FUNCTION vint winograd_minus_four(vint x) { return vpair_sub(vint_zero(), vpair_shift(x, 2)); }

/* Three taps, or one, at one of `extent` points. */
SIMD_FUNCTION vint winograd_pairs_tap(const vint *taps, int extent, int point) {
  if (extent == 1) return taps[0];
  vint even = vpair_add(taps[0], taps[2]);
  if (extent == 4) {
    if (point == 0) return vpair_shift(taps[0], 1);
    if (point == 3) return vpair_shift(taps[2], 1);
    return point == 1 ? vpair_add(even, taps[1]) : vpair_sub(even, taps[1]);
  }
  vint even2 = vpair_add(taps[0], vpair_shift(taps[2], 2)), odd2 = vpair_shift(taps[1], 1);
  if (point == 0) return vpair_add(vpair_shift(taps[0], 2), vpair_shift(taps[0], 1));
  if (point == 1) return winograd_minus_four(vpair_add(even, taps[1]));
  if (point == 2) return winograd_minus_four(vpair_sub(even, taps[1]));
  if (point == 3) return vpair_add(even2, odd2);
  if (point == 4) return vpair_sub(even2, odd2);
  return vpair_add(vpair_shift(taps[2], 3), vpair_shift(taps[2], 2));
}

/* ---- sums ---- */

/* `extent` points to the outputs of a tile, modulo 2^32. */
SIMD_FUNCTION void winograd_sums_output(vint *out, const vint *points, int extent) {
  if (extent == 1) {
    out[0] = points[0];
    return;
  }
  vint even = vint_add(points[1], points[2]), odd = vint_sub(points[1], points[2]);
  if (extent == 4) {
    out[0] = vint_add(points[0], even);
    out[1] = vint_sub(odd, points[3]);
    return;
  }
  vint even2 = vint_add(points[3], points[4]), odd2 = vint_sub(points[3], points[4]), two = vint_shift(odd2, 1);
  out[0] = vint_add(vint_add(points[0], even), even2);
  out[1] = vint_add(odd, two);
  out[2] = vint_add(even, vint_shift(even2, 2));
  out[3] = vint_add(vint_add(odd, vint_shift(two, 2)), vint_shift(points[5], 1));
}

#endif
