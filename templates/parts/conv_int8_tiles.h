/* SPDX-License-Identifier: MIT */
/*
 * A part of conv_direct_int8.c: with BY_TWO, products of two columns with DOT channels of each of two blocks of x,
 * which one instruction may add up (vtile_dot_packed of simd/int8.h). Sums are in tiles of two columns each. Weights
 * are packed for that: [oc group][two blocks] [R S][vector of the group][LANES][channels of the two blocks]. Of an odd
 * number of blocks the last one is read twice, and of an odd number of columns the last one, too: the second time it
 * counts for nothing.
 */
typedef vtile Tiles[(COLUMNS + 1) / 2][OC_VECTORS];

/* Columns of which any may lie outside the input: then what counts as zero, times any weight, takes their place. next:
 * how far the second block is behind the first. */
SIMD_FUNCTION vtile_input columns_apart(const uint8_t *x, int64_t next, bool has_first, bool has_second) {
  const uint8_t *second = x + STRIDE_W * IN_BLOCK, *nothing = vdot_nothing(SIGNED_X);
  const uint8_t *p = has_first ? x : nothing, *q = has_second ? second : nothing;
  return vtile_inputs_apart(p, has_first ? x + next : nothing, q, has_second ? second + next : nothing, SIGNED_X);
}

/* Columns m and m + 1 of a tap, or m twice if there is one only. */
SIMD_FUNCTION vtile_input two_columns(const uint8_t *x, int64_t next, int m, int columns, bool all, uint32_t inside) {
  x += m * STRIDE_W * IN_BLOCK;
  if (!all) return columns_apart(x, next, inside >> m & 1, m + 1 < columns && (inside >> m & 2));
  if (m + 1 == columns) return vtile_inputs_apart(x, x + next, x, x + next, SIGNED_X);
  if (STRIDE_W == 1) return vtile_inputs_beside(x, x + next, SIGNED_X);
  return vtile_inputs_between(x, x + next, STRIDE_W * IN_BLOCK, SIGNED_X);
}

/* `taps` taps of two blocks, which follow each other, for the columns in `inside`, or all. */
SIMD_FUNCTION void multiply_by_two(Tiles tiles, const uint8_t *x, int64_t next, const int8_t *w, int64_t taps,
                                   int vectors, int columns, bool all, uint32_t inside) {
#pragma clang loop unroll_count(UNROLL)
  for (int64_t k = 0; k < taps; k++) {
    vtile_input in[(COLUMNS + 1) / 2];
#pragma clang loop unroll(full)
    for (int m = 0; m < columns; m += 2) in[m / 2] = two_columns(x + k * IN_BLOCK, next, m, columns, all, inside);
#pragma clang loop unroll(full)
    for (int j = 0; j < vectors; j++) {
      const int8_t *of_vector = w + (k * vectors + j) * 2 * TAP;
      vint left = vdot_load(of_vector), right = vdot_load(of_vector + TAP);
#pragma clang loop unroll(full)
      for (int m = 0; m < columns; m += 2) tiles[m / 2][j] = vtile_dot_packed(tiles[m / 2][j], in[m / 2], left, right);
    }
  }
}

/* As block() has it, of two blocks. */
SIMD_FUNCTION void two_blocks(Tiles tiles, const Place *p, const uint8_t *x, int64_t next, const int8_t *w, int vectors,
                              int columns) {
  const uint32_t every = (1u << columns) - 1;
  const bool joined = DILATION_W == 1 && p->whole && !(ANY_WIDTH && p->columns < columns);
  for (int64_t r = p->first_row; r < p->end_row; r++) {
    const uint8_t *in = x + r * DILATION_H * IN_W * IN_BLOCK;
    const int8_t *weights = w + r * WINDOW_W * vectors * 2 * TAP;
    if (joined) {
      multiply_by_two(tiles, in, next, weights, WINDOW_W, vectors, columns, true, 0);
      continue;
    }
    for (int64_t s = 0; s < WINDOW_W; s++, in += DILATION_W * IN_BLOCK, weights += vectors * 2 * TAP) {
      uint32_t inside = INSIDE && !ANY_WIDTH ? every : p->inside[s];
      if (inside == every)
        multiply_by_two(tiles, in, next, weights, 1, vectors, columns, true, every);
      else if (inside)
        multiply_by_two(tiles, in, next, weights, 1, vectors, columns, false, inside);
    }
  }
}

/* `count` blocks. */
SIMD_FUNCTION void blocks_by_two(vint sums[OC_VECTORS][COLUMNS], const Place *p, const uint8_t *x, const int8_t *w,
                                 const int8_t *ahead, int64_t count, int vectors, int columns) {
  const int64_t plane = IN_H * IN_W * IN_BLOCK;
  Tiles tiles;
#pragma clang loop unroll(full)
  for (int j = 0; j < vectors; j++) {
#pragma clang loop unroll(full)
    for (int m = 0; m < columns; m += 2)
      tiles[m / 2][j] = vtile_of_rows(sums[j][m], sums[j][m + 1 < columns ? m + 1 : m]);
  }
  for (int64_t b = 0; b < count; b += 2, x += 2 * plane, w += 2 * vectors * WINDOW) {
    for (int64_t i = 0; i < 2 * p->ahead_lines; i++, ahead += LINE) prefetch_later(ahead);
    two_blocks(tiles, p, x, b + 1 < count ? plane : 0, w, vectors, columns);
  }
#pragma clang loop unroll(full)
  for (int j = 0; j < vectors; j++) {
#pragma clang loop unroll(full)
    for (int m = 0; m < columns; m++) sums[j][m] = vtile_row(tiles[m / 2][j], m % 2);
  }
}
