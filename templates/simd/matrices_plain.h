/* SPDX-License-Identifier: MIT */
/* Matrices in memory, in plain C: for those who only read a kernel, and for tests. matrices.h defines each operation.
 */
#ifndef SIMD_MATRICES_PLAIN_H
#define SIMD_MATRICES_PLAIN_H

typedef union simd_matrix {
  unsigned char bytes[MATRIX_ROWS][MATRIX_BYTES];
  int words[MATRIX_ROWS][MATRIX_COLUMNS];
  float floats[MATRIX_ROWS][MATRIX_COLUMNS];
  unsigned short halves[MATRIX_ROWS][2 * MATRIX_COLUMNS];
} simd_matrix;

typedef struct matrices {
  int rows;
  simd_matrix at[8];
} matrices;

SIMD_FUNCTION int simd_matrix_rows(const matrices *m, int i) { return i < 6 ? m->rows : MATRIX_ROWS; }

SIMD_FUNCTION void matrices_begin(matrices *m, int rows) {
  __builtin_memset(m->at, 0, sizeof m->at);
  m->rows = rows;
}
SIMD_FUNCTION void matrices_end(matrices *m) { m->rows = 0; }
SIMD_FUNCTION void matrices_zero(matrices *m, int i) { __builtin_memset(&m->at[i], 0, sizeof m->at[i]); }
SIMD_FUNCTION void matrices_load(matrices *m, int i, const void *p, long stride) {
  for (int row = 0; row < simd_matrix_rows(m, i); row++)
    __builtin_memcpy(m->at[i].bytes[row], (const char *)p + row * stride, MATRIX_BYTES);
}
SIMD_FUNCTION void matrices_store(matrices *m, int i, void *p, long stride) {
  for (int row = 0; row < simd_matrix_rows(m, i); row++)
    __builtin_memcpy((char *)p + row * stride, m->at[i].bytes[row], MATRIX_BYTES);
}

SIMD_FUNCTION int simd_matrix_dot(const unsigned char *x, const unsigned char *w, int is_signed) {
  int sum = 0;
  for (int i = 0; i < 4; i++) sum += (is_signed ? (signed char)x[i] : x[i]) * (signed char)w[i];
  return sum;
}
SIMD_FUNCTION void matrices_dot(matrices *m, int i, int x, int w, int is_signed) {
  for (int row = 0; row < m->rows; row++)
    for (int column = 0; column < MATRIX_COLUMNS; column++) {
      unsigned sum = (unsigned)m->at[i].words[row][column];
      for (int d = 0; d < MATRIX_BYTES; d += 4)
        sum += (unsigned)simd_matrix_dot(&m->at[x].bytes[row][d], &m->at[w].bytes[d / 4][4 * column], is_signed);
      m->at[i].words[row][column] = (int)sum;
    }
}

SIMD_FUNCTION float simd_of_half(unsigned short half) {
  unsigned bits = (unsigned)half << 16;
  float number;
  __builtin_memcpy(&number, &bits, sizeof number);
  return number;
}
SIMD_FUNCTION void matrices_dot_bf16(matrices *m, int i, int x, int w) {
  for (int row = 0; row < m->rows; row++)
    for (int column = 0; column < MATRIX_COLUMNS; column++)
      for (int d = 0; d < MATRIX_BYTES / 4; d++) {
        const unsigned short *a = &m->at[x].halves[row][2 * d], *b = &m->at[w].halves[d][2 * column];
        m->at[i].floats[row][column] +=
            simd_of_half(a[0]) * simd_of_half(b[0]) + simd_of_half(a[1]) * simd_of_half(b[1]);
      }
}

#endif
