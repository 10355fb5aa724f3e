/* SPDX-License-Identifier: MIT */
/* Products of 8-bit numbers for AArch64 NEON, with dot products or without. int8.h defines each operation. */
#ifndef SIMD_INT8_NEON_H
#define SIMD_INT8_NEON_H

typedef int32x4_t vint;

SIMD_FUNCTION vint vint_zero(void) { return vdupq_n_s32(0); }
SIMD_FUNCTION vint vint_set(int x) { return vdupq_n_s32(x); }
SIMD_FUNCTION vint vint_load(const void *p) { return vreinterpretq_s32_u8(vld1q_u8(p)); }
SIMD_FUNCTION void vint_store(void *p, vint v) { vst1q_u8(p, vreinterpretq_u8_s32(v)); }
SIMD_FUNCTION vint vint_load_n(const void *p, int n) { return vreinterpretq_s32_f32(vload_n(p, n)); }
SIMD_FUNCTION void vint_store_n(void *p, vint v, int n) { vstore_n(p, vreinterpretq_f32_s32(v), n); }
SIMD_FUNCTION vint vint_add(vint a, vint b) { return vaddq_s32(a, b); }
SIMD_FUNCTION vint vint_sub(vint a, vint b) { return vsubq_s32(a, b); }
SIMD_FUNCTION vint vint_mul(vint a, vint b) { return vmulq_s32(a, b); }
SIMD_FUNCTION vint vint_shift(vint v, int n) { return vshlq_s32(v, vdupq_n_s32(n)); }
SIMD_FUNCTION vint vint_shift_right(vint v, int n) { return vshlq_s32(v, vdupq_n_s32(-n)); }
SIMD_FUNCTION vint vint_min(vint a, vint b) { return vminq_s32(a, b); }
SIMD_FUNCTION vint vint_max(vint a, vint b) { return vmaxq_s32(a, b); }

SIMD_FUNCTION vec vint_to_float(vint v) { return vcvtq_f32_s32(v); }
SIMD_FUNCTION vint vround_to_int(vec v) { return vcvtnq_s32_f32(v); }

SIMD_FUNCTION vint simd_from_u8(unsigned word) {
  uint16x8_t wide = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(word)));
  return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(wide)));
}
SIMD_FUNCTION vint simd_from_s8(unsigned word) {
  return vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(word)))));
}
SIMD_FUNCTION vint vint_load_u8(const void *p) { return simd_from_u8(*(const simd_word *)p); }
SIMD_FUNCTION vint vint_load_s8(const void *p) { return simd_from_s8(*(const simd_word *)p); }
SIMD_FUNCTION vint vint_load_u8_n(const void *p, int n) { return simd_from_u8((unsigned)simd_bytes_load(p, n)); }
SIMD_FUNCTION vint vint_load_s8_n(const void *p, int n) { return simd_from_s8((unsigned)simd_bytes_load(p, n)); }
SIMD_FUNCTION unsigned simd_to_u8(vint v) {
  int16x4_t s16 = vqmovn_s32(v);
  return vget_lane_u32(vreinterpret_u32_u8(vqmovun_s16(vcombine_s16(s16, s16))), 0);
}
SIMD_FUNCTION unsigned simd_to_s8(vint v) {
  int16x4_t s16 = vqmovn_s32(v);
  return vget_lane_u32(vreinterpret_u32_s8(vqmovn_s16(vcombine_s16(s16, s16))), 0);
}
SIMD_FUNCTION void vint_store_u8(void *p, vint v) { *(simd_word *)p = simd_to_u8(v); }
SIMD_FUNCTION void vint_store_s8(void *p, vint v) { *(simd_word *)p = simd_to_s8(v); }
SIMD_FUNCTION void vint_store_u8_n(void *p, vint v, int n) { simd_bytes_store(p, simd_to_u8(v), n); }
SIMD_FUNCTION void vint_store_s8_n(void *p, vint v, int n) { simd_bytes_store(p, simd_to_s8(v), n); }
SIMD_FUNCTION int16x8_t simd_s16(vint a, vint b) { return vqmovn_high_s32(vqmovn_s32(a), b); }
SIMD_FUNCTION void vint_store4_u8(void *p, vint a, vint b, vint c, vint d) {
  vst1q_u8(p, vqmovun_high_s16(vqmovun_s16(simd_s16(a, b)), simd_s16(c, d)));
}
SIMD_FUNCTION void vint_store4_s8(void *p, vint a, vint b, vint c, vint d) {
  vst1q_u8(p, vreinterpretq_u8_s8(vqmovn_high_s16(vqmovn_s16(simd_s16(a, b)), simd_s16(c, d))));
}

SIMD_FUNCTION vint vpair_inputs(const void *p, const void *q, int is_signed) {
  uint32x2_t words = vset_lane_u32(*(const simd_word *)q, vdup_n_u32(*(const simd_word *)p), 1);
  uint8x8_t bytes = vreinterpret_u8_u32(words);
  return vreinterpretq_s32_u16(vmovl_u8(is_signed ? veor_u8(bytes, vdup_n_u8(128)) : bytes));
}
SIMD_FUNCTION vint vpair_weights(const void *p) { return vreinterpretq_s32_s16(vmovl_s8(vld1_s8(p))); }
SIMD_FUNCTION int16x8_t simd_pairs(vint v) { return vreinterpretq_s16_s32(v); }
SIMD_FUNCTION vint vpair_add(vint a, vint b) { return vreinterpretq_s32_s16(vaddq_s16(simd_pairs(a), simd_pairs(b))); }
SIMD_FUNCTION vint vpair_sub(vint a, vint b) { return vreinterpretq_s32_s16(vsubq_s16(simd_pairs(a), simd_pairs(b))); }
SIMD_FUNCTION vint vpair_shift(vint v, int n) {
  return vreinterpretq_s32_s16(vshlq_s16(simd_pairs(v), vdupq_n_s16((short)n)));
}
SIMD_FUNCTION void vpair_store_first(void *p, vint v) { vst1_u8(p, vreinterpret_u8_s32(vget_low_s32(v))); }
SIMD_FUNCTION vint vpair_dot(vint acc, vint a, vint b) {
  acc = vmlal_s16(acc, vmovn_s32(a), vmovn_s32(b));
  return vmlal_s16(acc, vshrn_n_s32(a, 16), vshrn_n_s32(b, 16));
}

#ifdef __ARM_FEATURE_DOTPROD
enum { DOT_ZERO = 128, DOT_NATIVE = 1, DOT_SIGNS_ZERO = DOT_ZERO };
SIMD_FUNCTION vint vdot(vint acc, vint input, vint weights, int form) {
  (void)form;
  return vdotq_s32(acc, vreinterpretq_s8_s32(weights), vreinterpretq_s8_s32(input));
}
#else
/* The first weights of the four lanes come together, then the second ones, ..., and are multiplied by an element each
 * of the input. */
enum { DOT_ZERO = 0, DOT_NATIVE = 0, DOT_SIGNS_ZERO = DOT_ZERO };
SIMD_FUNCTION vint vdot(vint acc, vint input, vint weights, int form) {
  (void)form;
  const uint8x16_t turn = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  int8x16_t turned = vqtbl1q_s8(vreinterpretq_s8_s32(weights), turn);
  int16x8_t first = vmovl_s8(vget_low_s8(turned)), last = vmovl_high_s8(turned);
  int16x4_t bytes = vreinterpret_s16_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_s32(vget_low_s32(input)))));
  acc = vmlal_lane_s16(acc, vget_low_s16(first), bytes, 0);
  acc = vmlal_high_lane_s16(acc, first, bytes, 1);
  acc = vmlal_lane_s16(acc, vget_low_s16(last), bytes, 2);
  return vmlal_high_lane_s16(acc, last, bytes, 3);
}
#endif

/* Two rows of eight bytes by two columns of eight weights. */
#ifdef __ARM_FEATURE_MATMUL_INT8
#define SIMD_TILES
typedef struct vtile {
  vint columns[2]; /* of each half: both columns of the first row, then those of the second */
} vtile;
typedef uint8x16_t vtile_input;
SIMD_FUNCTION vtile vtile_zero(void) { return (vtile){{vint_zero(), vint_zero()}}; }
SIMD_FUNCTION vtile vtile_of_rows(vint a, vint b) {
  int64x2_t p = vreinterpretq_s64_s32(a), q = vreinterpretq_s64_s32(b);
  return (vtile){{vreinterpretq_s32_s64(vzip1q_s64(p, q)), vreinterpretq_s32_s64(vzip2q_s64(p, q))}};
}
SIMD_FUNCTION vtile_input simd_tile_input(uint8x16_t bytes, int is_signed) {
  return is_signed != (DOT_ZERO == 128) ? veorq_u8(bytes, vdupq_n_u8(128)) : bytes;
}
SIMD_FUNCTION vtile_input vtile_inputs(const void *p, const void *q, int is_signed) {
  return simd_tile_input(vcombine_u8(vld1_u8(p), vld1_u8(q)), is_signed);
}
/* The two words at p and the two at q, in turn. */
SIMD_FUNCTION uint32x4_t simd_words_in_turn(const void *p, const void *q) {
  const uint8x8_t none = vdup_n_u8(0);
  return vzip1q_u32(vreinterpretq_u32_u8(vcombine_u8(vld1_u8(p), none)),
                    vreinterpretq_u32_u8(vcombine_u8(vld1_u8(q), none)));
}
SIMD_FUNCTION vtile_input vtile_inputs_beside(const void *p, const void *next, int is_signed) {
  return simd_tile_input(vreinterpretq_u8_u32(simd_words_in_turn(p, next)), is_signed);
}
/* By halves of vectors: of words one by one clang makes loads of elements, which wait for each other. */
SIMD_FUNCTION vtile_input vtile_inputs_between(const void *p, const void *next, int distance, int is_signed) {
  const char *q = (const char *)p + distance - DOT, *q_next = (const char *)next + distance - DOT;
  uint32x4_t first = simd_words_in_turn(p, next), second = simd_words_in_turn(q, q_next);
  return simd_tile_input(vreinterpretq_u8_u32(vcombine_u32(vget_low_u32(first), vget_high_u32(second))), is_signed);
}
SIMD_FUNCTION vtile_input vtile_inputs_apart(const void *p, const void *p_next, const void *q, const void *q_next,
                                             int is_signed) {
  const void *at[4] = {p, p_next, q, q_next};
  uint32_t words[4];
#pragma clang loop unroll(full)
  for (int i = 0; i < 4; i++) words[i] = *(const simd_word *)at[i];
  return simd_tile_input(vreinterpretq_u8_u32(vld1q_u32(words)), is_signed);
}
SIMD_FUNCTION vtile_input vtile_inputs_packed(const void *p, int is_signed) {
  return simd_tile_input(vld1q_u8(p), is_signed);
}
SIMD_FUNCTION vint simd_tile(vint acc, vtile_input rows, vint columns) {
  int8x16_t weights = vreinterpretq_s8_s32(columns);
  return DOT_ZERO ? vmmlaq_s32(acc, vreinterpretq_s8_u8(rows), weights) : vusmmlaq_s32(acc, rows, weights);
}
SIMD_FUNCTION vtile vtile_dot(vtile tile, vtile_input inputs, vint w, vint next) {
  tile.columns[0] = simd_tile(tile.columns[0], inputs, vzip1q_s32(w, next));
  tile.columns[1] = simd_tile(tile.columns[1], inputs, vzip2q_s32(w, next));
  return tile;
}
SIMD_FUNCTION vtile vtile_dot_packed(vtile tile, vtile_input inputs, vint left, vint right) {
  tile.columns[0] = simd_tile(tile.columns[0], inputs, left);
  tile.columns[1] = simd_tile(tile.columns[1], inputs, right);
  return tile;
}
SIMD_FUNCTION vint vtile_row(vtile tile, int i) {
  int64x2_t a = vreinterpretq_s64_s32(tile.columns[0]), b = vreinterpretq_s64_s32(tile.columns[1]);
  return vreinterpretq_s32_s64(i ? vzip2q_s64(a, b) : vzip1q_s64(a, b));
}
#endif

#endif
