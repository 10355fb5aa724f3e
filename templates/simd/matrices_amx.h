/* SPDX-License-Identifier: MIT */
/*
 * Matrices in the tile registers of AMX, palette 1. matrices.h defines each operation. The instructions name a register
 * in their code: each operation chooses among all that it may name, by an index that is a constant.
 */
#ifndef SIMD_MATRICES_AMX_H
#define SIMD_MATRICES_AMX_H

#include <immintrin.h>

typedef struct matrices {
  int rows;
} matrices;

typedef struct simd_tile_config { /* as LDTILECFG reads it */
  unsigned char palette, start_row, reserved[14];
  unsigned short row_bytes[16];
  unsigned char rows[16];
} simd_tile_config;

SIMD_FUNCTION void matrices_begin(matrices *m, int rows) {
  simd_tile_config config = {.palette = 1};
  for (int i = 0; i < 8; i++) {
    config.row_bytes[i] = MATRIX_BYTES;
    config.rows[i] = (unsigned char)(i < 6 ? rows : MATRIX_ROWS);
  }
  m->rows = rows;
  _tile_loadconfig(&config);
}
SIMD_FUNCTION void matrices_end(matrices *m) {
  (void)m;
  _tile_release();
}

SIMD_FUNCTION void matrices_zero(matrices *m, int i) {
  (void)m;
  if (i == 0) _tile_zero(0);
  if (i == 1) _tile_zero(1);
  if (i == 2) _tile_zero(2);
  if (i == 3) _tile_zero(3);
}
SIMD_FUNCTION void matrices_load(matrices *m, int i, const void *p, long stride) {
  (void)m;
#ifndef __clang__ /* gcc's instruction does not say that it reads memory */
  __asm__ volatile("" ::: "memory");
#endif
  if (i == 0) _tile_loadd(0, p, stride);
  if (i == 1) _tile_loadd(1, p, stride);
  if (i == 2) _tile_loadd(2, p, stride);
  if (i == 3) _tile_loadd(3, p, stride);
  if (i == 4) _tile_loadd(4, p, stride);
  if (i == 5) _tile_loadd(5, p, stride);
  if (i == 6) _tile_loadd(6, p, stride);
  if (i == 7) _tile_loadd(7, p, stride);
}
SIMD_FUNCTION void matrices_store(matrices *m, int i, void *p, long stride) {
  (void)m;
  if (i == 0) _tile_stored(0, p, stride);
  if (i == 1) _tile_stored(1, p, stride);
  if (i == 2) _tile_stored(2, p, stride);
  if (i == 3) _tile_stored(3, p, stride);
}

/* `dot` of sums i, by each of the two inputs and weights. */
#define SIMD_DOT_OF(dot, i)                                                                                            \
  do {                                                                                                                 \
    if (x == 4 && w == 6) dot(i, 4, 6);                                                                                \
    if (x == 4 && w == 7) dot(i, 4, 7);                                                                                \
    if (x == 5 && w == 6) dot(i, 5, 6);                                                                                \
    if (x == 5 && w == 7) dot(i, 5, 7);                                                                                \
  } while (0)
#define SIMD_DOT(dot)                                                                                                  \
  do {                                                                                                                 \
    if (i == 0) SIMD_DOT_OF(dot, 0);                                                                                   \
    if (i == 1) SIMD_DOT_OF(dot, 1);                                                                                   \
    if (i == 2) SIMD_DOT_OF(dot, 2);                                                                                   \
    if (i == 3) SIMD_DOT_OF(dot, 3);                                                                                   \
  } while (0)

SIMD_FUNCTION void matrices_dot(matrices *m, int i, int x, int w, int is_signed) {
  (void)m;
  if (is_signed)
    SIMD_DOT(_tile_dpbssd);
  else
    SIMD_DOT(_tile_dpbusd);
}
SIMD_FUNCTION void matrices_dot_bf16(matrices *m, int i, int x, int w) {
  (void)m;
  SIMD_DOT(_tile_dpbf16ps);
}

#undef SIMD_DOT
#undef SIMD_DOT_OF

#endif
