/* SPDX-License-Identifier: MIT */
/*
 * Products of 8-bit numbers in plain C with the compilers' vector types, for plain.h and for RISC-V's vectors of fixed
 * width. int8.h defines each operation.
 */
#ifndef SIMD_INT8_PLAIN_H
#define SIMD_INT8_PLAIN_H

enum { DOT_ZERO = 0, DOT_NATIVE = 0, DOT_SIGNS_ZERO = DOT_ZERO };
typedef int vint __attribute__((vector_size(4 * LANES)));
typedef vint vint_unaligned __attribute__((aligned(1), may_alias));

SIMD_FUNCTION vint vint_zero(void) { return (vint){0}; }
SIMD_FUNCTION vint vint_set(int x) { return x - (vint){0}; }
SIMD_FUNCTION vint vint_load(const void *p) { return *(const vint_unaligned *)p; }
SIMD_FUNCTION void vint_store(void *p, vint v) { *(vint_unaligned *)p = v; }
SIMD_FUNCTION vint vint_load_n(const void *p, int n) {
  vint v = {0};
  for (int i = 0; i < n; i++) v[i] = (int)((const simd_word *)p)[i];
  return v;
}
SIMD_FUNCTION void vint_store_n(void *p, vint v, int n) {
  for (int i = 0; i < n; i++) ((simd_word *)p)[i] = (unsigned)v[i];
}
/* Sums wrap: kernels are compiled with -fwrapv or without, so signed ones are not enough. */
typedef unsigned simd_unsigned __attribute__((vector_size(4 * LANES)));
SIMD_FUNCTION vint vint_add(vint a, vint b) { return (vint)((simd_unsigned)a + (simd_unsigned)b); }
SIMD_FUNCTION vint vint_sub(vint a, vint b) { return (vint)((simd_unsigned)a - (simd_unsigned)b); }
SIMD_FUNCTION vint vint_mul(vint a, vint b) { return (vint)((simd_unsigned)a * (simd_unsigned)b); }
SIMD_FUNCTION vint vint_shift(vint v, int n) { return (vint)((simd_unsigned)v << (unsigned)n); }
SIMD_FUNCTION vint vint_shift_right(vint v, int n) { return v >> n; }
SIMD_FUNCTION vint vint_min(vint a, vint b) {
  vint less = a < b;
  return (a & less) | (b & ~less);
}
SIMD_FUNCTION vint vint_max(vint a, vint b) {
  vint less = a < b;
  return (b & less) | (a & ~less);
}

typedef float simd_lanes __attribute__((vector_size(4 * LANES)));
SIMD_FUNCTION vec vint_to_float(vint v) {
  simd_lanes lanes = __builtin_convertvector(v, simd_lanes);
  return lanes;
}
#ifdef SIMD_RVV_H
typedef vint32m1_t rvv_ints __attribute__((riscv_rvv_vector_bits(RVV_BITS)));
/* By the rounding mode of a run, which is to nearest, in one instruction. */
SIMD_FUNCTION vint vround_to_int(vec v) {
  rvv_ints rounded = __riscv_vfcvt_x_f_v_i32m1(v, LANES);
  return rounded;
}
#else
SIMD_FUNCTION vint vround_to_int(vec v) {
  simd_lanes rounded = vround(v);
  return __builtin_convertvector(rounded, vint);
}
#endif

typedef unsigned char simd_u8 __attribute__((vector_size(LANES), aligned(1), may_alias));
typedef signed char simd_s8 __attribute__((vector_size(LANES), aligned(1), may_alias));
SIMD_FUNCTION vint vint_load_u8(const void *p) { return __builtin_convertvector(*(const simd_u8 *)p, vint); }
SIMD_FUNCTION vint vint_load_s8(const void *p) { return __builtin_convertvector(*(const simd_s8 *)p, vint); }
SIMD_FUNCTION vint vint_load_u8_n(const void *p, int n) {
  vint v = {0};
  for (int i = 0; i < n; i++) v[i] = ((const unsigned char *)p)[i];
  return v;
}
SIMD_FUNCTION vint vint_load_s8_n(const void *p, int n) {
  vint v = {0};
  for (int i = 0; i < n; i++) v[i] = ((const signed char *)p)[i];
  return v;
}
SIMD_FUNCTION vint simd_between(vint v, int low, int high) {
  return vint_min(vint_max(v, vint_set(low)), vint_set(high));
}
SIMD_FUNCTION void vint_store_u8(void *p, vint v) {
  *(simd_u8 *)p = __builtin_convertvector(simd_between(v, 0, 255), simd_u8);
}
SIMD_FUNCTION void vint_store_s8(void *p, vint v) {
  *(simd_s8 *)p = __builtin_convertvector(simd_between(v, -128, 127), simd_s8);
}
SIMD_FUNCTION void vint_store_u8_n(void *p, vint v, int n) {
  v = simd_between(v, 0, 255);
  for (int i = 0; i < n; i++) ((unsigned char *)p)[i] = (unsigned char)v[i];
}
SIMD_FUNCTION void vint_store_s8_n(void *p, vint v, int n) {
  v = simd_between(v, -128, 127);
  for (int i = 0; i < n; i++) ((signed char *)p)[i] = (signed char)v[i];
}

SIMD_FUNCTION void vint_store4_u8(void *p, vint a, vint b, vint c, vint d) {
  vint_store_u8(p, a);
  vint_store_u8((char *)p + LANES, b);
  vint_store_u8((char *)p + 2 * LANES, c);
  vint_store_u8((char *)p + 3 * LANES, d);
}
SIMD_FUNCTION void vint_store4_s8(void *p, vint a, vint b, vint c, vint d) {
  vint_store_s8(p, a);
  vint_store_s8((char *)p + LANES, b);
  vint_store_s8((char *)p + 2 * LANES, c);
  vint_store_s8((char *)p + 3 * LANES, d);
}

typedef unsigned char simd_u8_pairs __attribute__((vector_size(2 * LANES), aligned(1), may_alias));
typedef signed char simd_s8_pairs __attribute__((vector_size(2 * LANES), aligned(1), may_alias));
typedef unsigned short simd_pairs __attribute__((vector_size(4 * LANES)));
typedef short simd_signed_pairs __attribute__((vector_size(4 * LANES)));
SIMD_FUNCTION vint vpair_inputs(const void *p, const void *q, int is_signed) {
  simd_u8_pairs bytes;
  __builtin_memcpy(&bytes, p, LANES);
  __builtin_memcpy((char *)&bytes + LANES, q, LANES);
  return (vint)(__builtin_convertvector(bytes, simd_pairs) ^ (unsigned short)(is_signed ? 128 : 0));
}
SIMD_FUNCTION vint vpair_weights(const void *p) {
  return (vint) __builtin_convertvector(*(const simd_s8_pairs *)p, simd_signed_pairs);
}
SIMD_FUNCTION vint vpair_add(vint a, vint b) { return (vint)((simd_pairs)a + (simd_pairs)b); }
SIMD_FUNCTION vint vpair_sub(vint a, vint b) { return (vint)((simd_pairs)a - (simd_pairs)b); }
SIMD_FUNCTION vint vpair_shift(vint v, int n) { return (vint)((simd_pairs)v << (unsigned short)n); }
SIMD_FUNCTION void vpair_store_first(void *p, vint v) { __builtin_memcpy(p, &v, 2 * LANES); }
SIMD_FUNCTION vint vpair_dot(vint acc, vint a, vint b) {
  acc = vint_add(acc, vint_mul(vint_shift_right(vint_shift(a, 16), 16), vint_shift_right(vint_shift(b, 16), 16)));
  return vint_add(acc, vint_mul(vint_shift_right(a, 16), vint_shift_right(b, 16)));
}

/* Compilers know that both factors have 16 bits. */
SIMD_FUNCTION vint vdot(vint acc, vint input, vint weights, int form) {
  (void)form;
#pragma clang loop unroll(full)
  for (int i = 0; i < DOT; i++) {
    vint byte = (vint)((simd_unsigned)input << (24 - 8 * i) >> 24);
    vint weight = (vint)((simd_unsigned)weights << (24 - 8 * i)) >> 24;
    acc = vint_add(acc, byte * weight);
  }
  return acc;
}

#endif
