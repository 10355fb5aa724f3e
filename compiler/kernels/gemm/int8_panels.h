/* SPDX-License-Identifier: MIT */
/*
 * Packed matrices of s8 for dot products (templates/gemm_int8.c): panels of `vectors` * lanes columns,
 * [group][vectors][lanes][DOT]. Group 0 is the sum of each column in i32; the others have DOT depths each, zero past
 * the last. In tiles each two groups of 2 * DOT depths are one, [vectors][lanes][2 * DOT]. For matrices in registers
 * there are as many groups of zeros at the end as make the depth a multiple of MATRIX_BYTES.
 */
#ifndef RNNCC_INT8_PANELS_H
#define RNNCC_INT8_PANELS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/gemm/matrices.h"

enum { INT8_DOT = 4 }; /* DOT of templates/simd/int8.h */

typedef struct Int8Panels {
  int lanes, vectors;
  bool tiles, matrices;
  int64_t columns, depth, column_stride, depth_stride; /* strides of the source, in elements */
} Int8Panels;

/* Depths are multiples of it. */
static inline int int8_depth_unit(const Int8Panels *panels) { return panels->matrices ? MATRIX_BYTES : INT8_DOT; }
int64_t int8_panels_bytes(const Int8Panels *panels);
/* target: int8_panels_bytes() zeros. */
void int8_panels_pack(const Int8Panels *panels, const int8_t *source, int8_t *target);
/* Do both products of the weights 2i and 2i + 1 of each column, with any u8, fit 16 bits together (DOT_PAIRS)? */
bool int8_pairs_fit(const Int8Panels *panels, const int8_t *source);

#endif
