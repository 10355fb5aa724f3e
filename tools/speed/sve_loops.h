/* SPDX-License-Identifier: MIT */
/* The loops of speed.c in SVE's vectors, whatever their size: clang's generic vectors would be NEON's. */
#ifndef SPEED_SVE_LOOPS_H
#define SPEED_SVE_LOOPS_H

#include <arm_sve.h>
#include <stdbool.h>
#include <stddef.h>

#define SVE_LOOP __attribute__((target("sve"))) static float

/* Vectors of SVE are no part of arrays. */
SVE_LOOP read_sve(const float *data, size_t bytes, long passes, bool alternate) {
  enum { VECTORS = 8 };
  size_t lanes = svcntw(), block_floats = VECTORS * lanes, blocks = bytes / sizeof *data / block_floats;
  svbool_t all = svptrue_b32();
  svfloat32_t s0 = svdup_n_f32(0), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
  for (long pass = 0; pass < passes; pass++)
    for (size_t i = 0; i < blocks; i++) {
      const float *block = data + block_floats * (alternate && (pass & 1) ? blocks - 1 - i : i);
      s0 = svadd_f32_x(all, s0, svld1_f32(all, block));
      s1 = svadd_f32_x(all, s1, svld1_f32(all, block + lanes));
      s2 = svadd_f32_x(all, s2, svld1_f32(all, block + 2 * lanes));
      s3 = svadd_f32_x(all, s3, svld1_f32(all, block + 3 * lanes));
      s4 = svadd_f32_x(all, s4, svld1_f32(all, block + 4 * lanes));
      s5 = svadd_f32_x(all, s5, svld1_f32(all, block + 5 * lanes));
      s6 = svadd_f32_x(all, s6, svld1_f32(all, block + 6 * lanes));
      s7 = svadd_f32_x(all, s7, svld1_f32(all, block + 7 * lanes));
    }
  s0 = svadd_f32_x(all, svadd_f32_x(all, s0, s1), svadd_f32_x(all, s2, s3));
  s4 = svadd_f32_x(all, svadd_f32_x(all, s4, s5), svadd_f32_x(all, s6, s7));
  return svaddv_f32(all, svadd_f32_x(all, s0, s4));
}

/* 12 multiply-adds of vectors a step: x = x / 2 + 1. */
SVE_LOOP multiply_add_sve(long steps) {
  static volatile float first;
  svbool_t all = svptrue_b32();
  svfloat32_t half = svdup_n_f32(0.5f), one = svdup_n_f32(1);
#define CHAIN(x) svmad_f32_x(all, x, half, one)
#define BEGIN(n) svdup_n_f32(first + n)
  svfloat32_t a = BEGIN(0), b = BEGIN(1), c = BEGIN(2), d = BEGIN(3), e = BEGIN(4), f = BEGIN(5);
  svfloat32_t g = BEGIN(6), h = BEGIN(7), i = BEGIN(8), j = BEGIN(9), k = BEGIN(10), l = BEGIN(11);
  for (long step = 0; step < steps; step++) {
    a = CHAIN(a), b = CHAIN(b), c = CHAIN(c), d = CHAIN(d), e = CHAIN(e), f = CHAIN(f);
    g = CHAIN(g), h = CHAIN(h), i = CHAIN(i), j = CHAIN(j), k = CHAIN(k), l = CHAIN(l);
  }
#define SUM(x, y) svadd_f32_x(all, x, y)
  svfloat32_t sums = SUM(SUM(SUM(a, b), SUM(c, d)), SUM(SUM(e, f), SUM(g, h)));
  return svaddv_f32(all, SUM(sums, SUM(SUM(i, j), SUM(k, l))));
#undef CHAIN
#undef BEGIN
#undef SUM
}

#endif
