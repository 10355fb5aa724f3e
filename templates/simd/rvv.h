/* SPDX-License-Identifier: MIT */
/*
 * The SIMD vocabulary for RISC-V's vectors (RVV 1.0) of one fixed width, RVV_BITS: a vec is one register. Arithmetic is
 * the compiler's own, so that a scalar operand needs no vector; clang is told the width. simd.h defines each operation.
 */
#ifndef SIMD_RVV_H
#define SIMD_RVV_H

#include <riscv_vector.h>

enum { LANES = RVV_BITS / 32 };
typedef vfloat32m1_t vec __attribute__((riscv_rvv_vector_bits(RVV_BITS)));
typedef vbool32_t vmask; /* no part of arrays or structs */
typedef float rvv_floats __attribute__((vector_size(RVV_BITS / 8)));
typedef rvv_floats rvv_unaligned __attribute__((aligned(4), may_alias));

SIMD_FUNCTION vec vset(float x) {
  rvv_floats v = x - (rvv_floats){0};
  return v;
}
SIMD_FUNCTION vec vzero(void) { return vset(0.0f); }
SIMD_FUNCTION vec vload(const float *p) {
  rvv_floats v = *(const rvv_unaligned *)p;
  return v;
}
SIMD_FUNCTION void vstore(float *p, vec v) { *(rvv_unaligned *)p = v; }
SIMD_FUNCTION vec vbroadcast_load(const float *p) { return vset(*p); }
SIMD_FUNCTION vmask vmask_first(int n) {
  return __riscv_vmsltu_vx_u32m1_b32(__riscv_vid_v_u32m1(LANES), (unsigned)n, LANES);
}
SIMD_FUNCTION vec vload_n(const float *p, int n) { return __riscv_vle32_v_f32m1_tu(vzero(), p, (size_t)n); }
SIMD_FUNCTION void vstore_n(float *p, vec v, int n) { __riscv_vse32_v_f32m1(p, v, (size_t)n); }
SIMD_FUNCTION vec vload_even(const float *p) { return __riscv_vlse32_v_f32m1(p, 2 * sizeof *p, LANES); }
SIMD_FUNCTION void vprefetch(const void *p) { __builtin_prefetch(p); }

SIMD_FUNCTION vec vadd(vec a, vec b) { return a + b; }
SIMD_FUNCTION vec vsub(vec a, vec b) { return a - b; }
SIMD_FUNCTION vec vmul(vec a, vec b) { return a * b; }
SIMD_FUNCTION vec vdiv(vec a, vec b) { return a / b; }
SIMD_FUNCTION vec vsqrt(vec v) { return __builtin_elementwise_sqrt(v); }
SIMD_FUNCTION vec vfma(vec acc, vec a, vec b) { return __builtin_elementwise_fma(a, b, acc); }
SIMD_FUNCTION vec vfnma(vec acc, vec a, vec b) { return __builtin_elementwise_fma(-a, b, acc); }

SIMD_FUNCTION vmask vlt(vec a, vec b) { return __riscv_vmflt_vv_f32m1_b32(a, b, LANES); }
SIMD_FUNCTION vmask vle(vec a, vec b) { return __riscv_vmfle_vv_f32m1_b32(a, b, LANES); }
SIMD_FUNCTION vmask vgt(vec a, vec b) { return __riscv_vmfgt_vv_f32m1_b32(a, b, LANES); }
SIMD_FUNCTION vmask vge(vec a, vec b) { return __riscv_vmfge_vv_f32m1_b32(a, b, LANES); }
SIMD_FUNCTION vmask veq(vec a, vec b) { return __riscv_vmfeq_vv_f32m1_b32(a, b, LANES); }
SIMD_FUNCTION vmask vne(vec a, vec b) { return __riscv_vmfne_vv_f32m1_b32(a, b, LANES); }
SIMD_FUNCTION vmask visnan(vec v) { return vne(v, v); }
SIMD_FUNCTION vmask vand(vmask a, vmask b) { return __riscv_vmand_mm_b32(a, b, LANES); }
SIMD_FUNCTION vmask vor(vmask a, vmask b) { return __riscv_vmor_mm_b32(a, b, LANES); }
SIMD_FUNCTION vmask vnot(vmask m) { return __riscv_vmnot_m_b32(m, LANES); }
SIMD_FUNCTION int vany(vmask m) { return __riscv_vfirst_m_b32(m, LANES) >= 0; }
SIMD_FUNCTION vec vselect(vmask m, vec a, vec b) { return __riscv_vmerge_vvm_f32m1(b, a, m, LANES); }

/* VFMIN and VFMAX return the other operand if one is NaN. */
SIMD_FUNCTION vec vmin_bound(vec v, vec bound) { return vselect(vlt(bound, v), bound, v); }
SIMD_FUNCTION vec vmax_bound(vec v, vec bound) { return vselect(vgt(bound, v), bound, v); }
SIMD_FUNCTION vec vmin(vec a, vec b) { return vselect(vor(vlt(a, b), visnan(a)), a, b); }
SIMD_FUNCTION vec vmax(vec a, vec b) { return vselect(vor(vgt(a, b), visnan(a)), a, b); }

SIMD_FUNCTION vec vneg(vec v) { return -v; }
SIMD_FUNCTION vec vabs(vec v) { return __builtin_elementwise_abs(v); }
SIMD_FUNCTION vec vcopysign(vec v, vec s) { return __builtin_elementwise_copysign(v, s); }

SIMD_FUNCTION vec vfloor(vec v) { return __builtin_elementwise_floor(v); }
SIMD_FUNCTION vec vceil(vec v) { return __builtin_elementwise_ceil(v); }
SIMD_FUNCTION vec vround(vec v) { return __builtin_elementwise_roundeven(v); }

/* n + 1.5 * 2^23 has n in its low mantissa bits; the shift moves it to the exponent's place. */
SIMD_FUNCTION vec vscale2(vec v, vec t) {
  vuint32m1_t bits = __riscv_vreinterpret_v_f32m1_u32m1(t);
  vuint32m1_t exponent = __riscv_vsll_vx_u32m1(bits, 23, LANES);
  vuint32m1_t sum = __riscv_vadd_vv_u32m1(__riscv_vreinterpret_v_f32m1_u32m1(v), exponent, LANES);
  return __riscv_vreinterpret_v_u32m1_f32m1(sum);
}
SIMD_FUNCTION vec vexponent(vec v) {
  vint32m1_t biased = __riscv_vsra_vx_i32m1(__riscv_vreinterpret_v_f32m1_i32m1(v), 23, LANES);
  return __riscv_vfcvt_f_x_v_f32m1(__riscv_vsub_vx_i32m1(biased, 127, LANES), LANES);
}
SIMD_FUNCTION vec vmantissa(vec v) {
  vuint32m1_t fraction = __riscv_vand_vx_u32m1(__riscv_vreinterpret_v_f32m1_u32m1(v), 0x007fffff, LANES);
  return __riscv_vreinterpret_v_u32m1_f32m1(__riscv_vor_vx_u32m1(fraction, 0x3f800000, LANES));
}

SIMD_FUNCTION float vhsum(vec v) {
  for (size_t half = LANES / 2; half > 0; half /= 2) v = vadd(v, __riscv_vslidedown_vx_f32m1(v, half, LANES));
  return __riscv_vfmv_f_s_f32m1_f32(v);
}
SIMD_FUNCTION float vhmin(vec v) {
  if (vany(visnan(v))) return __builtin_nanf("");
  return __riscv_vfmv_f_s_f32m1_f32(__riscv_vfredmin_vs_f32m1_f32m1(v, v, LANES));
}
SIMD_FUNCTION float vhmax(vec v) {
  if (vany(visnan(v))) return __builtin_nanf("");
  return __riscv_vfmv_f_s_f32m1_f32(__riscv_vfredmax_vs_f32m1_f32m1(v, v, LANES));
}

#endif
