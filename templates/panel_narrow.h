/* SPDX-License-Identifier: MIT */
/*
 * Panels of weights that are stored in fewer bits than they are multiplied in: where memory holds a product up, half to
 * an eighth of the bytes is what counts. An element becomes f32 in a register, exactly; products and sums are of f32.
 *
 *   WEIGHTS_BF16  the upper half of an f32
 *   WEIGHTS_F16   IEEE 754 binary16
 *   WEIGHTS_I8    s8: an integer times a scale
 *   WEIGHTS_I4    the same of 4 bits, -8..7
 *   WEIGHTS_BF16_TILES  as WEIGHTS_BF16, but products are of bf16, too: panel_bf16.h has them
 *
 * Of floats the sums are bit for bit those of a panel of the same numbers in f32 (panel.h). Of integers the steps of
 * the depth that share a scale, `group` of them, are summed up first, from 0 and in order; one multiply-add by their
 * scale then adds that sum. So the result depends on no blocking of rows and panels, either; and an element costs no
 * multiplication by its scale.
 *
 * A panel is [depth / steps][vectors][LANES] words of 32 bits with that many consecutive steps of a column in each, the
 * first one in the lowest bits: of bf16 two, which cost a load and an instruction each, of I4 eight. F16 and I8 are
 * [depth][vectors][LANES], because CPUs widen those as they load them; of BF16_TILES a word has BF16_DEPTH steps. It is
 * passed as a pointer to floats. Its scales are [groups][vectors][LANES] floats.
 *
 * `type`, `group`, `rows`, `vectors` and `parts` must be constants once inlined.
 */
#ifndef PANEL_NARROW_H
#define PANEL_NARROW_H

#include "half.h"
#include "panel.h"
#include "panel_bf16.h"

enum { WEIGHTS_F32, WEIGHTS_BF16, WEIGHTS_F16, WEIGHTS_I8, WEIGHTS_I4, WEIGHTS_BF16_TILES };

/* Steps of the depth that share a word. A slice of a panel begins with a word. */
enum { NARROW_STEPS = 8 }; /* the most */
static inline int narrow_steps(int type) {
  if (type == WEIGHTS_BF16_TILES) return BF16_DEPTH;
  return type == WEIGHTS_BF16 ? 2 : type == WEIGHTS_I4 ? NARROW_STEPS : 1;
}

/* Floats that `depth` steps of a panel take; LANES is a multiple of 4. */
static inline int64_t narrow_floats(int type, int64_t depth, int64_t vectors) {
  int64_t words = ceil_div(depth, narrow_steps(type)) * vectors * LANES;
  if (type == WEIGHTS_BF16_TILES) return BF16_DEPTH / 2 * words;
  return type == WEIGHTS_F16 ? words / 2 : type == WEIGHTS_I8 ? words / 4 : words;
}

static inline bool narrow_is_scaled(int type) { return type == WEIGHTS_I8 || type == WEIGHTS_I4; }

/* Floats of a panel's scales. group: 0: all of the depth has one. */
static inline int64_t narrow_scale_floats(int group, int64_t depth, int64_t vectors) {
  return (group ? ceil_div(depth, group) : 1) * vectors * LANES;
}

typedef uint8_t narrow_bytes __attribute__((vector_size(LANES), aligned(1), may_alias));
typedef int8_t narrow_signed __attribute__((vector_size(LANES)));
typedef uint16_t narrow_halves __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
#ifdef HALF_CONVERTS
typedef _Float16 narrow_f16 __attribute__((vector_size(2 * LANES)));
#endif
typedef uint32_t narrow_words __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t narrow_integers __attribute__((vector_size(4 * LANES)));
typedef float narrow_floats_of __attribute__((vector_size(4 * LANES)));

SIMD_FUNCTION vec widen_bf16(const float *p, int64_t i) {
  narrow_words words = *(const narrow_words *)p;
  if (i) return (narrow_floats_of)(words & 0xffff0000u);
  return (narrow_floats_of)(words << 16);
}

/* One instruction where the CPU converts a whole vector; of the loop clang makes several, of four elements each. */
SIMD_FUNCTION vec widen_f16(const float *p) {
  narrow_halves halves = *(const narrow_halves *)(const void *)p;
#ifdef HALF_CONVERTS
  return __builtin_convertvector((narrow_f16)halves, narrow_floats_of);
#else
  narrow_floats_of wide = {0};
#pragma clang loop unroll(full)
  for (int i = 0; i < LANES; i++) wide[i] = f16_to_f32(halves[i]);
  return wide;
#endif
}

SIMD_FUNCTION vec widen_i8(const float *p) {
  narrow_signed bytes = (narrow_signed)(*(const narrow_bytes *)(const void *)p);
  return __builtin_convertvector(__builtin_convertvector(bytes, narrow_integers), narrow_floats_of);
}

SIMD_FUNCTION vec widen_i4(const float *p, int64_t i) {
  narrow_integers up = (narrow_integers)(*(const narrow_words *)p << (uint32_t)(28 - 4 * i));
  return __builtin_convertvector(up >> 28, narrow_floats_of);
}

/* Vector v of step i of the words at p. */
SIMD_FUNCTION vec narrow_load(int type, const float *p, int64_t i, int v) {
  if (type == WEIGHTS_BF16) return widen_bf16(p + v * LANES, i);
  if (type == WEIGHTS_I4) return widen_i4(p + v * LANES, i);
  return type == WEIGHTS_F16 ? widen_f16(p + v * LANES / 2) : widen_i8(p + v * LANES / 4);
}

/* ---- sums of unscaled elements ---- */

/* Step i of the words at p, which is step k of A. With several rows the registers are full of sums, so words are loaded
 * again for each step: from addresses that the compiler does not know to be the same. */
SIMD_FUNCTION void narrow_step(int type, PanelRow *sums, int rows, int vectors, const float *const *at, int64_t k,
                               int64_t a_depth, const float *p, int64_t i) {
  PanelRow b;
  if (rows > 1 && narrow_steps(type) > 1) p = vapart(p + i) - i;
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) b[v] = narrow_load(type, p, i, v);
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
    vec x = vbroadcast_load(at[m] + (k + i) * a_depth);
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) sums[m][v] = vfma(sums[m][v], x, b[v]);
  }
}

/* Steps of a last word that is not full: the compiler shall see that of two there is at most one. */
static inline int64_t narrow_left(int type, int64_t left) {
  return narrow_steps(type) == 1 ? 0 : narrow_steps(type) == 2 ? left == 1 : left;
}

/* The steps of one word, from k on. */
SIMD_FUNCTION void narrow_word(int type, PanelRow *sums, int rows, int vectors, const float *const *at, int64_t k,
                               int64_t a_depth, const float *panel) {
  const int steps = narrow_steps(type);
  const float *p = panel + narrow_floats(type, k, vectors);
  if (rows > 1 && steps > 2) { /* eight steps of all heights of blocks would be most of a small module */
#pragma clang loop unroll(disable)
    for (int i = 0; i < steps; i++) narrow_step(type, sums, rows, vectors, at, k, a_depth, p, i);
    return;
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < steps; i++) narrow_step(type, sums, rows, vectors, at, k, a_depth, p, i);
}

/* Words in a turn of a loop. With DEPTH_STEPS of them clang loads elements ahead where registers are few, and spills
 * sums. */
enum { NARROW_WORDS = LANE_OPERANDS || TWO_OPERANDS ? 1 : 2 };

SIMD_FUNCTION void narrow_sums(int type, PanelRow *sums, int rows, int vectors, const float *a, int64_t a_row,
                               int64_t a_depth, const float *panel, int64_t depth) {
  const int steps = narrow_steps(type);
  const float *at[PANEL_ROWS];
  panel_rows_at(at, rows, a, a_row);
  int64_t whole = depth / steps * steps;
  if (FEW_REGISTERS && type == WEIGHTS_F16) { /* in two steps a GRU's tile, which fills the registers, spills sums */
#pragma clang loop unroll(disable)
    for (int64_t k = 0; k < whole; k += steps) narrow_word(type, sums, rows, vectors, at, k, a_depth, panel);
  } else {
#pragma clang loop unroll_count(NARROW_WORDS)
    for (int64_t k = 0; k < whole; k += steps) narrow_word(type, sums, rows, vectors, at, k, a_depth, panel);
  }
  const float *last = panel + narrow_floats(type, whole, vectors);
  for (int64_t i = 0; i < narrow_left(type, depth - whole); i++)
    narrow_step(type, sums, rows, vectors, at, whole, a_depth, last, steps == 2 ? 0 : i);
}

/* One row against several panels at once; panel_stride: in floats. */
SIMD_FUNCTION void narrow_sums_row(int type, PanelRow *sums, int panels, int vectors, const float *a, int64_t a_depth,
                                   const float *panel, int64_t panel_stride, int64_t depth) {
  const int steps = narrow_steps(type);
  int64_t whole = depth / steps * steps;
#pragma clang loop unroll_count(TWO_OPERANDS ? 1 : 2)
  for (int64_t k = 0; k < whole; k += steps) {
    const float *p = panel + narrow_floats(type, k, vectors);
#pragma clang loop unroll(full)
    for (int i = 0; i < steps; i++) {
#pragma clang loop unroll(full)
      for (int q = 0; q < panels; q++) narrow_step(type, sums + q, 1, vectors, &a, k, a_depth, p + q * panel_stride, i);
    }
  }
  const float *last = panel + narrow_floats(type, whole, vectors);
  for (int64_t i = 0; i < narrow_left(type, depth - whole); i++) {
#pragma clang loop unroll(full)
    for (int q = 0; q < panels; q++)
      narrow_step(type, sums + q, 1, vectors, &a, whole, a_depth, last + q * panel_stride, steps == 2 ? 0 : i);
  }
}

/* Do so many sums and words leave registers for an input and what a word becomes? */
enum { SUMS_BESIDE_WORDS = 10 };
static inline bool narrow_words_wait(int sums, int type) {
  return narrow_steps(type) > 1 && !(FEW_REGISTERS && sums > SUMS_BESIDE_WORDS);
}

/* As panel_multiply_split(), without adding the parts up. Where words cannot wait in registers, they are loaded again
 * for each step. */
SIMD_FUNCTION void narrow_sums_split(int type, PanelRow *partial, int parts, int vectors, const float *a,
                                     const float *panel, int64_t depth) {
  const int steps = narrow_steps(type) > parts ? narrow_steps(type) : parts;
  int64_t whole = depth / steps * steps;
  for (int64_t k = 0; k < whole; k += steps) {
#pragma clang loop unroll(full)
    for (int i = 0; i < steps; i++) {
      vec x = panel_element(a + k, i, steps);
      const int within = i % narrow_steps(type);
      const float *p = panel + narrow_floats(type, k + i - within, vectors);
      if (within && !narrow_words_wait(parts * vectors, type)) p = vapart(p + within) - within;
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++)
        partial[i % parts][v] = vfma(partial[i % parts][v], x, narrow_load(type, p, within, v));
    }
  }
  const float *rest = panel + narrow_floats(type, whole, vectors);
  narrow_sums(type, partial, 1, vectors, a + whole, 0, 1, rest, depth - whole);
}

/* ---- products ---- */

SIMD_FUNCTION void narrow_zeros(PanelRow *sums, int rows, int vectors) {
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) sums[m][v] = vzero();
  }
}

/* sums += scale * group's */
SIMD_FUNCTION void narrow_add_scaled(PanelRow *sums, const PanelRow *of_group, int rows, int vectors,
                                     const float *scales, int64_t scales_row) {
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++)
      sums[m][v] = vfma(sums[m][v], of_group[m][v], vload(scales + m * scales_row + v * LANES));
  }
}

/* Steps of the group that begins at step k. */
static inline int64_t narrow_group(int group, int64_t k, int64_t depth) {
  return group ? min_i64(group, depth - k) : depth;
}

/* As panel_multiply(). */
SIMD_FUNCTION void narrow_multiply(int type, int group, PanelRow *sums, int rows, int vectors, const float *a,
                                   int64_t a_row, int64_t a_depth, const float *panel, const float *scales,
                                   int64_t depth) {
  if (type == WEIGHTS_BF16_TILES) {
    bf16_multiply(sums, rows, vectors, a, a_row, a_depth, panel, depth);
    return;
  }
  if (!narrow_is_scaled(type)) {
    narrow_sums(type, sums, rows, vectors, a, a_row, a_depth, panel, depth);
    return;
  }
  for (int64_t k = 0, count; k < depth; k += count, scales += vectors * LANES) {
    PanelRow of_group[PANEL_ROWS];
    count = narrow_group(group, k, depth);
    narrow_zeros(of_group, rows, vectors);
    narrow_sums(type, of_group, rows, vectors, a + k * a_depth, a_row, a_depth, panel + narrow_floats(type, k, vectors),
                count);
    narrow_add_scaled(sums, of_group, rows, vectors, scales, 0);
  }
}

/* As panel_multiply_row(): panels follow each other, panel_depth steps each, and so do their scales. */
SIMD_FUNCTION void narrow_multiply_row(int type, int group, PanelRow *sums, int panels, int vectors, const float *a,
                                       int64_t a_depth, const float *panel, const float *scales, int64_t depth) {
  int64_t stride = narrow_floats(type, depth, vectors), scales_stride = narrow_scale_floats(group, depth, vectors);
  if (type == WEIGHTS_BF16_TILES) { /* of each by itself, in as many sums as hide their latency */
#pragma clang loop unroll(disable)
    for (int q = 0; q < panels; q++) bf16_multiply(sums + q, 1, vectors, a, 0, a_depth, panel + q * stride, depth);
    return;
  }
  if (!narrow_is_scaled(type)) {
    narrow_sums_row(type, sums, panels, vectors, a, a_depth, panel, stride, depth);
    return;
  }
  for (int64_t k = 0, count; k < depth; k += count, scales += vectors * LANES) {
    PanelRow of_group[PANEL_ROWS];
    count = narrow_group(group, k, depth);
    narrow_zeros(of_group, panels, vectors);
    narrow_sums_row(type, of_group, panels, vectors, a + k * a_depth, a_depth, panel + narrow_floats(type, k, vectors),
                    stride, count);
    narrow_add_scaled(sums, of_group, panels, vectors, scales, scales_stride);
  }
}

/* As panel_multiply_split(); of integers each group has its partial sums. */
SIMD_FUNCTION void narrow_multiply_split(int type, int group, vec *sums, int parts, int vectors, const float *a,
                                         const float *panel, const float *scales, int64_t depth) {
  if (type == WEIGHTS_BF16_TILES) { /* a row has the same sums as among others */
    bf16_multiply((PanelRow *)sums, 1, vectors, a, 0, 1, panel, depth);
    return;
  }
  const bool scaled = narrow_is_scaled(type);
  for (int64_t k = 0, count; k < depth; k += count, scales += scaled ? vectors * LANES : 0) {
    PanelRow partial[PANEL_ROWS], total;
    count = scaled ? narrow_group(group, k, depth) : depth;
    narrow_zeros(partial, parts, vectors);
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors && !scaled; v++) partial[0][v] = sums[v];
    narrow_sums_split(type, partial, parts, vectors, a + k, panel + narrow_floats(type, k, vectors), count);
    panel_add_parts(total, partial, parts, vectors);
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) sums[v] = scaled ? vfma(sums[v], total[v], vload(scales + v * LANES)) : total[v];
  }
}

#endif
