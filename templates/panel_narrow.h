/* SPDX-License-Identifier: MIT */
/*
 * Panels of weights that are stored in fewer bits than they are multiplied in: where memory holds a product up, half or
 * a quarter of the bytes is what counts. An element is widened to the f32 number that it stands for, in the register
 * that a load would have filled, so sums are bit for bit those of a panel of these f32 numbers (panel.h).
 *
 *   WEIGHTS_BF16  the upper half of an f32
 *   WEIGHTS_F16   IEEE 754 binary16
 *   WEIGHTS_I8    s8, times the scale of its column, rounded once
 *
 * A panel is passed as a pointer to floats: a vector of weights takes `weight_floats` floats. `type`, `rows`, `vectors`
 * and `parts` must be constants once inlined.
 */
#ifndef PANEL_NARROW_H
#define PANEL_NARROW_H

#include "half.h"
#include "panel.h"

enum { WEIGHTS_F32, WEIGHTS_BF16, WEIGHTS_F16, WEIGHTS_I8 };

/* Floats that a vector of weights takes; LANES is a multiple of 4. */
static inline int64_t weight_floats(int type) {
  return type == WEIGHTS_F32 ? LANES : type == WEIGHTS_I8 ? LANES / 4 : LANES / 2;
}

typedef uint8_t narrow_bytes __attribute__((vector_size(LANES), aligned(1), may_alias));
typedef int8_t narrow_signed __attribute__((vector_size(LANES)));
typedef uint16_t narrow_halves __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
typedef uint32_t narrow_words __attribute__((vector_size(4 * LANES)));
typedef int32_t narrow_integers __attribute__((vector_size(4 * LANES)));
typedef float narrow_floats __attribute__((vector_size(4 * LANES)));

SIMD_FUNCTION vec widen_bf16(const void *p) {
  narrow_words wide = __builtin_convertvector(*(const narrow_halves *)p, narrow_words) << 16;
  return (narrow_floats)wide;
}

/* Compilers know the loop as an instruction where the CPU has one. */
SIMD_FUNCTION vec widen_f16(const void *p) {
  narrow_halves halves = *(const narrow_halves *)p;
  narrow_floats wide = {0};
#pragma clang loop unroll(full)
  for (int i = 0; i < LANES; i++) wide[i] = f16_to_f32(halves[i]);
  return wide;
}

SIMD_FUNCTION vec widen_i8(const void *p) {
  narrow_signed bytes = (narrow_signed)(*(const narrow_bytes *)p);
  return __builtin_convertvector(__builtin_convertvector(bytes, narrow_integers), narrow_floats);
}

/* Vector `at` of a panel. scale: of its columns, of WEIGHTS_I8. */
SIMD_FUNCTION vec narrow_load(int type, const float *panel, int64_t at, vec scale) {
  const float *p = panel + at * weight_floats(type);
  if (type == WEIGHTS_BF16) return widen_bf16(p);
  if (type == WEIGHTS_F16) return widen_f16(p);
  return vmul(widen_i8(p), scale);
}

SIMD_FUNCTION void narrow_scales(int type, vec *scale, const float *scales, int vectors) {
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) scale[v] = type == WEIGHTS_I8 ? vload(scales + v * LANES) : vzero();
}

/* As panel_multiply(). scales: [vectors][LANES] of the panel, of WEIGHTS_I8. */
SIMD_FUNCTION void narrow_multiply(int type, PanelRow *sums, int rows, int vectors, const float *a, int64_t a_row,
                                   int64_t a_depth, const float *panel, const float *scales, int64_t depth) {
  PanelRow scale;
  narrow_scales(type, scale, scales, vectors);
  const float *at[PANEL_ROWS];
  panel_rows_at(at, rows, a, a_row);
#pragma clang loop unroll_count(DEPTH_STEPS)
  for (int64_t k = 0; k < depth; k++) {
    PanelRow b;
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) b[v] = narrow_load(type, panel, k * vectors + v, scale[v]);
#pragma clang loop unroll(full)
    for (int m = 0; m < rows; m++) {
      vec x = vbroadcast_load(at[m] + k * a_depth);
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++) sums[m][v] = vfma(sums[m][v], x, b[v]);
    }
  }
}

/* As panel_multiply_row(): the scales of the panels follow each other. panel_stride: in vectors. */
SIMD_FUNCTION void narrow_multiply_row(int type, PanelRow *sums, int panels, int vectors, const float *a,
                                       int64_t a_depth, const float *panel, int64_t panel_stride, const float *scales,
                                       int64_t depth) {
#pragma clang loop unroll_count(TWO_OPERANDS ? 1 : 2)
  for (int64_t k = 0; k < depth; k++) {
    vec x = vbroadcast_load(a + k * a_depth);
#pragma clang loop unroll(full)
    for (int p = 0; p < panels; p++) {
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++) {
        vec scale = type == WEIGHTS_I8 ? vload(scales + (p * vectors + v) * LANES) : vzero();
        sums[p][v] = vfma(sums[p][v], x, narrow_load(type, panel, p * panel_stride + k * vectors + v, scale));
      }
    }
  }
}

/* As panel_multiply_split(). */
SIMD_FUNCTION void narrow_multiply_split(int type, vec *sums, int parts, int vectors, const float *a,
                                         const float *panel, const float *scales, int64_t depth) {
  PanelRow partial[PANEL_ROWS], scale;
  narrow_scales(type, scale, scales, vectors);
#pragma clang loop unroll(full)
  for (int i = 0; i < parts; i++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) partial[i][v] = i ? vzero() : sums[v];
  }
  int64_t whole = depth / parts * parts;
  for (int64_t k = 0; k < whole; k += parts) {
#pragma clang loop unroll(full)
    for (int i = 0; i < parts; i++) {
      vec x = panel_element(a + k, i, parts);
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++)
        partial[i][v] = vfma(partial[i][v], x, narrow_load(type, panel, (k + i) * vectors + v, scale[v]));
    }
  }
  const float *rest = panel + whole * vectors * weight_floats(type);
  narrow_multiply(type, partial, 1, vectors, a + whole, 0, 1, rest, scales, depth - whole);
  panel_add_parts(sums, partial, parts, vectors);
}

#endif
