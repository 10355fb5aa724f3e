/* SPDX-License-Identifier: MIT */
/* The loop of peak.c for one vector length: included once for each, with NAME, LANES and TARGET (an attribute, or
 * nothing) defined, which it undefines. */
#define JOIN_NAMES(a, b) a##_##b
#define JOIN(a, b) JOIN_NAMES(a, b)
#define Vector JOIN(Vector, LANES)

typedef float Vector __attribute__((vector_size(4 * LANES)));

/* CHAINS multiply-adds a step. Values stay finite: x = x / 2 + 1. Where clang knew that one begins with 2, which stays
 * 2, it would leave that chain out. */
TARGET static void NAME(long steps) {
  Vector x[CHAINS], half = {0}, one = {0};
  half += 0.5F;
  one += 1.0F;
  volatile float first = 0;
  for (int k = 0; k < CHAINS; k++) x[k] = one * (first + (float)k);
  for (long step = 0; step < steps; step++) {
#pragma clang loop unroll(full)
    for (int k = 0; k < CHAINS; k++) x[k] = x[k] * half + one;
  }
  for (int k = 1; k < CHAINS; k++) x[0] += x[k];
  volatile float kept = x[0][0]; /* or all of it would be for nothing, and left out */
  (void)kept;
}

#undef Vector
#undef JOIN
#undef JOIN_NAMES
#undef NAME
#undef LANES
#undef TARGET
