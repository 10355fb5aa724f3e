/* SPDX-License-Identifier: MIT */
/* clang-format off: the table */
/*
 * The vocabulary of products of 8-bit numbers, behind simd.h's. A `vint` is LANES i32. A step of a dot product
 * multiplies DOT bytes of the input, the same in every lane, by the DOT weights of each lane, and adds them to the
 * lane's sum. All ISAs give the same bits, and no value saturates on the way:
 *
 *   vint_zero() vint_set(x)        all lanes zero, or x
 *   vint_load(p) vint_store(p, v)  LANES i32 at p, of any alignment
 *   vint_load_n vint_store_n       the first n of LANES, 0 <= n <= LANES, as vload_n and vstore_n
 *   vint_add vint_sub vint_mul     modulo 2^32
 *   vint_min vint_max              signed
 *   vint_shift(v, n)               to the left by a constant n, modulo 2^32
 *   vint_shift_right(v, n)         to the right, of signed numbers: rounds down
 *   vint_hsum(v)                   across lanes, modulo 2^32
 *   vint_to_float(v)               -> vec, rounded to nearest
 *   vround_to_int(v)               vec -> vint, halves to even; |v| < 2^31
 *   vint_load_u8 vint_load_s8(p)   LANES bytes at p; _n(p, n): the first n, zero in the others, and reads no more
 *   vint_store_u8 vint_store_s8(p, v)   saturated to the type, LANES bytes; _n(p, v, n): the first n
 *   vint_store4_u8 vint_store4_s8(p, a, b, c, d)   the bytes of a, then those of b, c and d
 *
 *   vdot_broadcast(p, is_signed)   DOT bytes at p for every lane, u8 or s8; _n(p, n, is_signed): n of 1..DOT bytes,
 *                                  reads no more; the others count only where the weights are not zero
 *   vdot_load(p)                   weights: DOT * LANES s8 at p, DOT of lane 0, then those of lane 1, ...
 *   vdot(acc, input, weights, form)   acc[lane] + the sum over i of w[lane][i] * (u[i] - DOT_ZERO), where u is the byte
 *                                  of a u8 input, and that of a s8 input + 128. DOT_ZERO is 0 or 128, as the ISA
 *                                  multiplies u8 or s8 by s8
 *   form: DOT_ANY
 *         DOT_PAIRS   of the two weights 2i, 2i + 1 of a lane the positive ones add up to 128 at most, and so do the
 *                     negative ones: then both products together fit 16 bits
 *         DOT_SIGNS   no weight is -128: then |u - 128| and the weights with the signs of u - 128 are multiplied, and
 *                     DOT_SIGNS_ZERO, 128 where the form counts, else DOT_ZERO, stands for DOT_ZERO
 *
 *   vtile                          the sums of two rows, LANES columns each, in an order that the ISA likes
 *   vtile_zero()                   all zero
 *   vtile_inputs(p, q, is_signed)  2 * DOT bytes at p, of the first row, and at q, of the second: a vtile_input
 *   vtile_dot(tile, inputs, w, next)   adds each row's two dot products: of its first DOT bytes by the weights w,
 *                                      of the others by `next`. One instruction may do both.
 *   vtile_row(tile, i)             -> vint, the sums of row i, 0 or 1
 *   vtile_of_rows(a, b)            -> vtile, of which these are the sums
 *   vtile_inputs_beside(p, next, is_signed)   the first DOT bytes of the first row at p, of the second behind them; the
 *                                             others of both rows at next, in the same order
 *   vtile_inputs_between(p, next, distance, is_signed)   the same, the second row `distance` bytes behind the first,
 *                                             2 * DOT or more; may read what is between
 *   vtile_inputs_apart(p, p_next, q, q_next, is_signed)   DOT bytes at each: two of the first row, two of the second
 *   vtile_inputs_packed(p, is_signed)         2 * DOT bytes of the first row at p, those of the second behind them
 *   vtile_dot_packed(tile, inputs, left, right)   vtile_dot() with weights in the order of columns: 2 * DOT of each of
 *                                                 the first LANES / 2 columns, then of the others
 *
 *   vdot_nothing(is_signed)        -> the address of DOT bytes of an input that add nothing, by any weights
 *   vdot_zero(zero, is_signed)     the input's zero point as dot products count it: u - DOT_ZERO
 *
 * A vint may also hold 2 * LANES numbers of 16 bits, two to a lane:
 *
 *   vpair_inputs(p, q, is_signed)  LANES bytes at p, then LANES at q: those of u8 as they are, those of s8 + 128
 *   vpair_weights(p)               2 * LANES s8 at p
 *   vpair_add vpair_sub vpair_shift(v, n)   modulo 2^16; to the left by a constant n
 *   vpair_store_first(p, v)        the first LANES of the numbers; vint_store stores all
 *   vpair_dot(acc, a, b)           acc[lane] + the lane's two products, modulo 2^32, unless all four are -2^15
 *
 * DOT_NATIVE is 1 where vdot is one instruction, and form does not count. A template is specialised with plain.h, where
 * all three are 0: so they stand in headers only.
 */
/* clang-format on */
#ifndef SIMD_INT8_H
#define SIMD_INT8_H

#include "simd/simd.h"

enum { DOT = 4 };
enum { DOT_ANY, DOT_PAIRS, DOT_SIGNS };

typedef unsigned simd_word __attribute__((aligned(1), may_alias)); /* DOT bytes */

/* The bytes of u8 as they are, those of s8 + 128. */
SIMD_FUNCTION unsigned simd_input_word(const void *p, int is_signed) {
  return *(const simd_word *)p ^ (is_signed ? 0x80808080u : 0);
}
SIMD_FUNCTION unsigned simd_input_word_n(const void *p, int n, int is_signed) {
  const unsigned char *bytes = p;
  unsigned word = 0;
  for (int i = 0; i < n; i++) word |= (unsigned)bytes[i] << (8 * i);
  return word ^ (is_signed ? 0x80808080u : 0);
}

/* Up to 8 bytes, of vectors that have no masked loads and stores of bytes. */
SIMD_FUNCTION unsigned long long simd_bytes_load(const void *p, int n) {
  const unsigned char *bytes = p;
  unsigned long long word = 0;
  for (int i = 0; i < n; i++) word |= (unsigned long long)bytes[i] << (8 * i);
  return word;
}
SIMD_FUNCTION void simd_bytes_store(void *p, unsigned long long word, int n) {
  unsigned char *bytes = p;
  for (int i = 0; i < n; i++) bytes[i] = (unsigned char)(word >> (8 * i));
}

#if defined SIMD_AVX512
#include "simd/int8_avx512.h"
#elif defined SIMD_AVX2
#include "simd/int8_avx2.h"
#elif defined SIMD_SSE42
#include "simd/int8_sse42.h"
#elif defined SIMD_NEON
#include "simd/int8_neon.h"
#elif defined SIMD_SVE_H
#include "simd/int8_sve.h"
#else
#include "simd/int8_plain.h"
#endif

SIMD_FUNCTION vint vdot_broadcast(const void *p, int is_signed) {
  return vint_set((int)(simd_input_word(p, is_signed) ^ (DOT_ZERO ? 0x80808080u : 0)));
}
SIMD_FUNCTION vint vdot_broadcast_n(const void *p, int n, int is_signed) {
  return vint_set((int)(simd_input_word_n(p, n, is_signed) ^ (DOT_ZERO ? 0x80808080u : 0)));
}

#ifndef SIMD_TILES
typedef struct vtile {
  vint row[2];
} vtile;
typedef struct vtile_input {
  vint row[2][2];
} vtile_input;
SIMD_FUNCTION vtile vtile_zero(void) { return (vtile){{vint_zero(), vint_zero()}}; }
SIMD_FUNCTION vtile_input vtile_inputs(const void *p, const void *q, int is_signed) {
  const char *first = p, *second = q;
  return (vtile_input){{{vdot_broadcast(first, is_signed), vdot_broadcast(first + DOT, is_signed)},
                        {vdot_broadcast(second, is_signed), vdot_broadcast(second + DOT, is_signed)}}};
}
SIMD_FUNCTION vtile vtile_dot(vtile tile, vtile_input inputs, vint w, vint next) {
#pragma clang loop unroll(full)
  for (int i = 0; i < 2; i++)
    tile.row[i] = vdot(vdot(tile.row[i], inputs.row[i][0], w, DOT_ANY), inputs.row[i][1], next, DOT_ANY);
  return tile;
}
SIMD_FUNCTION vint vtile_row(vtile tile, int i) { return tile.row[i]; }
SIMD_FUNCTION vtile vtile_of_rows(vint a, vint b) { return (vtile){{a, b}}; }
SIMD_FUNCTION vtile_input vtile_inputs_apart(const void *p, const void *p_next, const void *q, const void *q_next,
                                             int is_signed) {
  return (vtile_input){{{vdot_broadcast(p, is_signed), vdot_broadcast(p_next, is_signed)},
                        {vdot_broadcast(q, is_signed), vdot_broadcast(q_next, is_signed)}}};
}
SIMD_FUNCTION vtile_input vtile_inputs_between(const void *p, const void *next, int distance, int is_signed) {
  return vtile_inputs_apart(p, next, (const char *)p + distance, (const char *)next + distance, is_signed);
}
SIMD_FUNCTION vtile_input vtile_inputs_beside(const void *p, const void *next, int is_signed) {
  return vtile_inputs_between(p, next, DOT, is_signed);
}
SIMD_FUNCTION vtile_input vtile_inputs_packed(const void *p, int is_signed) {
  return vtile_inputs(p, (const char *)p + 2 * DOT, is_signed);
}
SIMD_FUNCTION vtile vtile_dot_packed(vtile tile, vtile_input inputs, vint left, vint right) {
  int packed[2 * LANES], first[LANES], next[LANES];
  vint_store(packed, left);
  vint_store(packed + LANES, right);
#pragma clang loop unroll(full)
  for (int i = 0; i < LANES; i++) {
    first[i] = packed[2 * i];
    next[i] = packed[2 * i + 1];
  }
  return vtile_dot(tile, inputs, vint_load(first), vint_load(next));
}
#endif

SIMD_FUNCTION int vdot_zero(int zero, int is_signed) { return zero + (is_signed ? 128 : 0) - DOT_ZERO; }
SIMD_FUNCTION const unsigned char *vdot_nothing(int is_signed) {
  enum { OF_U8 = DOT_ZERO, OF_S8 = DOT_ZERO ^ 128 };
  static const unsigned char bytes[2][DOT] = {{OF_U8, OF_U8, OF_U8, OF_U8}, {OF_S8, OF_S8, OF_S8, OF_S8}};
  return bytes[is_signed];
}
SIMD_FUNCTION vint vdot_load(const void *p) { return vint_load(p); }

SIMD_FUNCTION int vint_hsum(vint v) {
  int lane[LANES];
  unsigned sum = 0;
  vint_store(lane, v);
#pragma clang loop unroll(full)
  for (int i = 0; i < LANES; i++) sum += (unsigned)lane[i];
  return (int)sum;
}

#endif
