/* SPDX-License-Identifier: MIT */
/*
 * The SIMD vocabulary in plain C with the compilers' vector types. It serves CPUs without a header of their own, and it
 * replaces the target's header, with as many lanes, while templates are parsed. It includes nothing and calls nothing,
 * not even libm. simd.h defines each operation.
 */
#ifndef SIMD_PLAIN_H
#define SIMD_PLAIN_H

#ifndef SIMD_PLAIN_LANES
#define SIMD_PLAIN_LANES 4
#endif

#if defined __clang__ && defined __ALTIVEC__ /* comparisons of AltiVec's own vector types will change */
#pragma clang diagnostic ignored "-Wdeprecated-altivec-src-compat"
#endif

#if defined __SSE__ && !defined __AVX__
#define SIMD_TWO_OPERANDS
#endif
#ifdef __x86_64__
#define SIMD_FEW_REGISTERS
#endif

enum { LANES = SIMD_PLAIN_LANES };
typedef float vec __attribute__((vector_size(4 * SIMD_PLAIN_LANES)));
typedef int vmask __attribute__((vector_size(4 * SIMD_PLAIN_LANES))); /* a lane is 0 or -1 */
typedef vec vec_unaligned __attribute__((aligned(4), may_alias));

SIMD_FUNCTION vec vset(float x) { return x - (vec){0}; }
SIMD_FUNCTION vec vzero(void) { return (vec){0}; }
SIMD_FUNCTION vec vload(const float *p) { return *(const vec_unaligned *)p; }
SIMD_FUNCTION void vstore(float *p, vec v) { *(vec_unaligned *)p = v; }
SIMD_FUNCTION vec vbroadcast_load(const float *p) { return vset(*p); }
SIMD_FUNCTION vmask vmask_first(int n) {
  vmask m = {0};
  for (int i = 0; i < n; i++) m[i] = -1;
  return m;
}
SIMD_FUNCTION vec vload_n(const float *p, int n) {
  vec v = {0};
  for (int i = 0; i < n; i++) v[i] = p[i];
  return v;
}
SIMD_FUNCTION void vstore_n(float *p, vec v, int n) {
  for (int i = 0; i < n; i++) p[i] = v[i];
}
SIMD_FUNCTION vec vload_even(const float *p) {
  vec v;
  for (int i = 0; i < LANES; i++) v[i] = p[2 * i];
  return v;
}
SIMD_FUNCTION void vprefetch(const void *p) { __builtin_prefetch(p); }

SIMD_FUNCTION vec vadd(vec a, vec b) { return a + b; }
SIMD_FUNCTION vec vsub(vec a, vec b) { return a - b; }
SIMD_FUNCTION vec vmul(vec a, vec b) { return a * b; }
SIMD_FUNCTION vec vdiv(vec a, vec b) { return a / b; }
#if defined __clang__ && __clang_major__ >= 17
SIMD_FUNCTION vec vsqrt(vec v) { return __builtin_elementwise_sqrt(v); }
#else
SIMD_FUNCTION vec vsqrt(vec v) {
  for (int i = 0; i < LANES; i++) v[i] = __builtin_sqrtf(v[i]);
  return v;
}
#endif
/* The compiler turns these two into FMA instructions if the CPU has them. */
SIMD_FUNCTION vec vfma(vec acc, vec a, vec b) { return acc + a * b; }
SIMD_FUNCTION vec vfnma(vec acc, vec a, vec b) { return acc - a * b; }

SIMD_FUNCTION vmask vlt(vec a, vec b) { return a < b; }
SIMD_FUNCTION vmask vle(vec a, vec b) { return a <= b; }
SIMD_FUNCTION vmask vgt(vec a, vec b) { return a > b; }
SIMD_FUNCTION vmask vge(vec a, vec b) { return a >= b; }
SIMD_FUNCTION vmask veq(vec a, vec b) { return a == b; }
SIMD_FUNCTION vmask vne(vec a, vec b) { return a != b; }
SIMD_FUNCTION vmask visnan(vec v) { return v != v; }
SIMD_FUNCTION vmask vand(vmask a, vmask b) { return a & b; }
SIMD_FUNCTION vmask vor(vmask a, vmask b) { return a | b; }
SIMD_FUNCTION vmask vnot(vmask m) { return ~m; }
SIMD_FUNCTION int vany(vmask m) {
  int any = 0;
  for (int i = 0; i < LANES; i++) any |= m[i];
  return any != 0;
}
SIMD_FUNCTION vec vselect(vmask m, vec a, vec b) { return (vec)(((vmask)a & m) | ((vmask)b & ~m)); }

SIMD_FUNCTION vec vmin_bound(vec v, vec bound) { return vselect(bound < v, bound, v); }
SIMD_FUNCTION vec vmax_bound(vec v, vec bound) { return vselect(bound > v, bound, v); }
SIMD_FUNCTION vec vmin(vec a, vec b) { return vselect((a < b) | (a != a), a, b); }
SIMD_FUNCTION vec vmax(vec a, vec b) { return vselect((a > b) | (a != a), a, b); }

SIMD_FUNCTION vmask plain_sign_bit(void) { return (vmask)vset(-0.0f); }
SIMD_FUNCTION vec vneg(vec v) { return (vec)((vmask)v ^ plain_sign_bit()); }
SIMD_FUNCTION vec vabs(vec v) { return (vec)((vmask)v & ~plain_sign_bit()); }
SIMD_FUNCTION vec vcopysign(vec v, vec s) { return vselect(plain_sign_bit(), s, v); }

/* Adding 2^23 rounds off the fraction. Floats from 2^23 on are integers already. */
SIMD_FUNCTION vec vround(vec v) {
  vec magnitude = vabs(v), rounded = (magnitude + 0x1p23f) - 0x1p23f;
  return vcopysign(vselect(magnitude < 0x1p23f, rounded, magnitude), v);
}
SIMD_FUNCTION vec vfloor(vec v) {
  vec rounded = vround(v);
  return vcopysign(vselect(rounded > v, rounded - 1.0f, rounded), v);
}
SIMD_FUNCTION vec vceil(vec v) {
  vec rounded = vround(v);
  return vcopysign(vselect(rounded < v, rounded + 1.0f, rounded), v);
}

/* n + 1.5 * 2^23 has n in its low mantissa bits; the shift moves it to the exponent's place. */
SIMD_FUNCTION vec vscale2(vec v, vec t) {
  typedef unsigned bits __attribute__((vector_size(4 * SIMD_PLAIN_LANES)));
  return (vec)((bits)v + ((bits)t << 23));
}
SIMD_FUNCTION vec vexponent(vec v) { return __builtin_convertvector(((vmask)v >> 23) - 127, vec); }
SIMD_FUNCTION vec vmantissa(vec v) { return (vec)(((vmask)v & 0x007fffff) | 0x3f800000); }

SIMD_FUNCTION float vhsum(vec v) {
  for (int half = LANES / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) v[i] += v[i + half];
  return v[0];
}
SIMD_FUNCTION float vhmin(vec v) {
  for (int i = 1; i < LANES; i++) v[0] = v[i] < v[0] || v[i] != v[i] ? v[i] : v[0];
  return v[0];
}
SIMD_FUNCTION float vhmax(vec v) {
  for (int i = 1; i < LANES; i++) v[0] = v[i] > v[0] || v[i] != v[i] ? v[i] : v[0];
  return v[0];
}

#endif
