/* SPDX-License-Identifier: MIT */
/*
 * Packs matrices [k][n] of bytes into panels for gemm_int8.c: [group][VECTORS][LANES][DOT] of s8, group 0 the sums of
 * the columns. u8 less 128 are s8. Workers take whole panels.
 */
#include "kernel.h"
#include "panel.h"
#include "simd/int8.h"

/* legal: 1..4 */
enum { VECTORS = 4 };
/* Elements of the matrices.
 * legal: uint8_t int8_t */
typedef int8_t B;

enum { IS_SIGNED = (B)-1 < 0 };

/* The bytes of `count` columns of s8, each in 0..255. */
SIMD_FUNCTION vint bytes_at(const B *p, int count) {
  if (IS_SIGNED) return count == LANES ? vint_load_u8(p) : vint_load_u8_n(p, count);
  vint top = vint_set(128);
  return vint_add(count == LANES ? vint_load_s8(p) : vint_load_s8_n(p, count), top);
}

/* DOT depths, or as many as there are, side by side in each lane. */
SIMD_FUNCTION vint group_at(const B *p, int64_t n, int depths, int count) {
  vint word = bytes_at(p, count);
  for (int d = 1; d < depths; d++)
    word = vint_add(word, vint_mul(bytes_at(p + d * n, count), vint_set((int)(1u << 8 * d))));
  return word;
}

static void pack_vector(const B *source, int8_t *target, int64_t n, int64_t k, int count) {
  vint sums = vint_zero(), ones = vint_set(0x01010101);
  for (int64_t at = 0; at < k; at += DOT) {
    vint word =
        k - at >= DOT ? group_at(source + at * n, n, DOT, count) : group_at(source + at * n, n, (int)(k - at), count);
    vint_store(target + (at + DOT) * VECTORS * LANES, word);
    sums = vdot(sums, ones, word, DOT_ANY);
  }
  vint_store(target, sums);
}

/* Without columns there is nothing to add up. */
static void clear_vector(int8_t *target, int64_t groups) {
  for (int64_t g = 0; g <= groups; g++) vint_store(target + g * VECTORS * LANES * DOT, vint_zero());
}

/* source: [batches][k][n]. target: for each batch the panels that cover n columns. */
static void pack_int8(const Team *team, const B *source, int8_t *target, int64_t batches, int64_t n, int64_t k) {
  int64_t panels = ceil_div(n, VECTORS * LANES), groups = ceil_div(k, DOT), item, end;
  team_share(team, batches * panels, &item, &end);
  for (; item < end; item++) {
    const B *from = source + item / panels * n * k;
    int8_t *panel = target + item * (groups + 1) * VECTORS * LANES * DOT;
    for (int v = 0; v < VECTORS; v++) {
      int64_t column = (item % panels * VECTORS + v) * LANES;
      if (column < n)
        pack_vector(from + column, panel + v * LANES * DOT, n, k, (int)min_i64(LANES, n - column));
      else
        clear_vector(panel + v * LANES * DOT, groups);
    }
  }
}
