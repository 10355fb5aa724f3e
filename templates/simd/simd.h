/* SPDX-License-Identifier: MIT */
/* clang-format off: the table */
/*
 * The SIMD vocabulary: all that kernels know of vectors. Each ISA has one header, which defines the same operations on
 * `vec`, LANES floats; the compiler defines one of SIMD_<ISA>. Raw intrinsics are in no other place. All ISAs give the
 * same bits for the same lanes, except where stated:
 *
 *   vzero() vset(x)             all lanes zero, or x
 *   vload(p) vstore(p, v)       LANES floats at p, of any alignment
 *   vload_n(p, n)               the first n of LANES, 0 <= n <= LANES, zero in the others; reads no byte beyond
 *   vstore_n(p, v, n)           the first n of LANES, 0 <= n <= LANES; writes no byte beyond
 *   vload_even(p)               every second of 2 LANES floats at p, beginning with the first
 *   vbroadcast_load(p)          all lanes *p
 *   vlane(v, i)                 all lanes lane i, a constant. LANE_OPERANDS, 0 or 1: does it cost nothing as an operand
 *                               of vfma, because a multiply-add takes a lane of a register? Then the ISA's header
 *                               defines SIMD_LANE_OPERANDS
 *   vadd vsub vmul vdiv vsqrt   IEEE, round to nearest
 *   vfma(acc, a, b)             acc + a * b in one rounding (plain, sse42: two where the CPU has no FMA)
 *   vfnma(acc, a, b)            acc - a * b, likewise. TWO_OPERANDS, 0 or 1: does a result take an operand's place,
 *                               so that a product needs a copy? Then the ISA's header defines SIMD_TWO_OPERANDS
 *   vmin(a, b) vmax(a, b)       NaN if either is NaN; the sign of min(-0, 0) is not defined
 *   vmin_bound vmax_bound(v, b) the same for a b that is not NaN: one instruction
 *   vneg vabs vcopysign(v, s)   change the sign bit only; vcopysign is |v| with the sign of s
 *   vfloor vceil vround         to an integer; vround takes halves to even; -0 stays -0
 *   vlt vle vgt vge veq vne     -> vmask; comparisons with NaN are false, except that vne is true
 *   visnan(v)                   -> vmask
 *   vand vor vnot               of masks
 *   vany(m)                     whether any lane is set
 *   vmask_first(n)              the first n lanes, 0 <= n <= LANES
 *   vselect(m, a, b)            a where m is set, else b
 *   vscale2(v, t)               v * 2^n, t = n + 1.5 * 2^23, where v and the result are normal numbers; else anything
 *   vexponent(v)                floor(log2 v) of a positive normal v; 128 for +inf
 *   vmantissa(v)                v / 2^vexponent(v), in [1, 2)
 *   vhsum vhmin vhmax(v)        across lanes, by halving the vector: lanes i and i + LANES/2 are combined first
 *   vzip_low(a, b)              a0 b0 a1 b1 ...: the first halves of a and b, in turns
 *   vzip_high(a, b)             the second halves, likewise
 *   vunzip_even(a, b)           a0 a2 ... b0 b2 ...: every second lane of a, then of b
 *   vunzip_odd(a, b)            the others: a1 a3 ... b1 b3 ...
 *   vreverse(v)                 the last lane first
 *   vtranspose(rows)            lane i of rows[j] and lane j of rows[i] change places, of LANES rows. An ISA whose
 *                               header has its own defines SIMD_TRANSPOSE
 *   vprefetch(p)                a hint
 *   vafter(p, v)                p, but the compiler reads nothing from it before it has v, on an ISA whose header has
 *                               its own and defines SIMD_AFTER
 *   FEW_REGISTERS               0 or 1: has the ISA 16 vector registers, not 32? Then its header defines
 *                               SIMD_FEW_REGISTERS
 *   vapart(p)                   p, but on x86 the compiler does not know what it was computed from
 *
 * Denormal operands and results may count as zero: kernels run with flush-to-zero on. NaN payloads are not defined.
 */
/* clang-format on */
#ifndef SIMD_SIMD_H
#define SIMD_SIMD_H

#define SIMD_FUNCTION static inline __attribute__((always_inline, unused))

#if defined SIMD_AVX512
#include "simd/avx512.h"
#elif defined SIMD_AVX2
#include "simd/avx2.h"
#elif defined SIMD_SSE42
#include "simd/sse42.h"
#elif defined SIMD_NEON
#include "simd/neon.h"
#elif defined SIMD_SVE128
#include "simd/sve128.h"
#elif defined SIMD_SVE256
#include "simd/sve256.h"
#elif defined SIMD_SVE512
#include "simd/sve512.h"
#elif defined SIMD_RVV128
#include "simd/rvv128.h"
#elif defined SIMD_RVV256
#include "simd/rvv256.h"
#elif defined SIMD_PLAIN
#include "simd/plain.h"
#else
#error "define SIMD_<ISA> of one of the headers above"
#endif

#ifdef SIMD_LANE_OPERANDS
enum { LANE_OPERANDS = 1 };
#else
enum { LANE_OPERANDS = 0 };
#endif

#ifdef SIMD_TWO_OPERANDS
enum { TWO_OPERANDS = 1 };
#else
enum { TWO_OPERANDS = 0 };
#endif

#ifdef SIMD_FEW_REGISTERS
enum { FEW_REGISTERS = 1 };
#else
enum { FEW_REGISTERS = 0 };
#endif

SIMD_FUNCTION vec vlane(vec v, int i) { return vset(v[i]); }

/* Compilers know these loops as an instruction or two. */
typedef float simd_floats __attribute__((vector_size(4 * LANES)));
SIMD_FUNCTION vec simd_zip(simd_floats a, simd_floats b, int first) {
  simd_floats zipped = {0};
#pragma clang loop unroll(full)
  for (int i = 0; i < LANES / 2; i++) {
    zipped[2 * i] = a[first + i];
    zipped[2 * i + 1] = b[first + i];
  }
  return zipped;
}
SIMD_FUNCTION vec vzip_low(vec a, vec b) { return simd_zip(a, b, 0); }
SIMD_FUNCTION vec vzip_high(vec a, vec b) { return simd_zip(a, b, LANES / 2); }

SIMD_FUNCTION vec simd_every_second(simd_floats a, simd_floats b, int first) {
  simd_floats chosen = {0};
#pragma clang loop unroll(full)
  for (int i = 0; i < LANES / 2; i++) {
    chosen[i] = a[first + 2 * i];
    chosen[LANES / 2 + i] = b[first + 2 * i];
  }
  return chosen;
}
SIMD_FUNCTION vec vunzip_even(vec a, vec b) { return simd_every_second(a, b, 0); }
SIMD_FUNCTION vec vunzip_odd(vec a, vec b) { return simd_every_second(a, b, 1); }

SIMD_FUNCTION vec vreverse(vec v) {
  simd_floats from = v, to = {0};
#pragma clang loop unroll(full)
  for (int i = 0; i < LANES; i++) to[i] = from[LANES - 1 - i];
  return to;
}

#ifndef SIMD_TRANSPOSE
SIMD_FUNCTION void vtranspose(vec rows[LANES]) {
#pragma clang loop unroll(full)
  for (int step = 1; step < LANES; step *= 2) {
    vec zipped[LANES];
#pragma clang loop unroll(full)
    for (int i = 0; i < LANES / 2; i++) {
      zipped[2 * i] = vzip_low(rows[i], rows[i + LANES / 2]);
      zipped[2 * i + 1] = vzip_high(rows[i], rows[i + LANES / 2]);
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < LANES; i++) rows[i] = zipped[i];
  }
}
#endif

#ifndef SIMD_AFTER
SIMD_FUNCTION const float *vafter(const float *p, vec v) {
  (void)v;
  return p;
}
#endif

SIMD_FUNCTION const float *vapart(const float *p) {
#ifdef __x86_64__
  __asm__("" : "+r"(p));
#endif
  return p;
}

#endif
