/* SPDX-License-Identifier: MIT */
/* Loads of elements that are apart in memory. */
#ifndef STRIDED_H
#define STRIDED_H

#include "simd/simd.h"

/* Every stride-th element, from the first on; stride: a constant. Of 2, one beside the last is read, too. */
SIMD_FUNCTION vec load_strided(const float *p, int64_t stride) {
  if (stride == 1) return vload(p);
  if (stride == 2) return vload_even(p);
  float lanes[LANES];
  for (int i = 0; i < LANES; i++) lanes[i] = p[i * stride];
  return vload(lanes);
}

#endif
