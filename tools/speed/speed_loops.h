/* SPDX-License-Identifier: MIT */
/* The two loops of speed.c for one instruction set: included once for each, with ISA, the attribute TARGET and
 * VECTOR_BYTES defined, which it undefines. */
#define JOIN_NAMES(a, b) a##_##b
#define JOIN(a, b) JOIN_NAMES(a, b)
#define Vector JOIN(Vector, ISA)

typedef float Vector __attribute__((vector_size(VECTOR_BYTES)));

/* Reads blocks of 8 vectors, forward; every second pass backward if they alternate. Data is aligned to a cache line. */
TARGET static float JOIN(read, ISA)(const float *data, size_t bytes, long passes, bool alternate) {
  const Vector *vectors = (const Vector *)data;
  size_t blocks = bytes / (8 * VECTOR_BYTES);
  Vector sums[8] = {0};
  for (long pass = 0; pass < passes; pass++)
    for (size_t i = 0; i < blocks; i++) {
      const Vector *block = vectors + 8 * (alternate && (pass & 1) ? blocks - 1 - i : i);
      for (int k = 0; k < 8; k++) sums[k] += block[k];
    }
  for (int k = 1; k < 8; k++) sums[0] += sums[k];
  return sums[0][0];
}

/* CHAINS multiply-adds a step. Values stay finite: x = x / 2 + 1. Where clang knew that one begins with 2, which stays
 * 2, it would leave that chain out. */
TARGET static float JOIN(multiply_add, ISA)(long steps) {
  Vector sums[CHAINS], half = {0}, one = {0};
  half += 0.5f;
  one += 1.0f;
  volatile float first = 0;
  for (int k = 0; k < CHAINS; k++) sums[k] = one * (first + (float)k);
  for (long step = 0; step < steps; step++) {
#pragma clang loop unroll(full)
    for (int k = 0; k < CHAINS; k++) sums[k] = sums[k] * half + one;
  }
  for (int k = 1; k < CHAINS; k++) sums[0] += sums[k];
  return sums[0][0];
}

#undef Vector
#undef JOIN
#undef JOIN_NAMES
#undef ISA
#undef TARGET
#undef VECTOR_BYTES
