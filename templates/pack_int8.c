/* SPDX-License-Identifier: MIT */
/*
 * Packs matrices [k][n] of bytes into panels for gemm_int8.c: [group][VECTORS][LANES][DOT] of s8, group 0 the sums of
 * the columns; with TILES each two groups of 2 * DOT depths are one, [VECTORS][LANES][2 * DOT]. Behind the last group
 * are zeros up to a multiple of DEPTH_UNIT depths. u8 less 128 are s8. Workers take whole panels.
 */
#include "kernel.h"
#include "panel.h"
#include "simd/int8.h"

/* legal: 1..4 */
enum { VECTORS = 4 };
/* As gemm_int8.c has it.
 * legal: 0 1 */
enum { TILES = 0 };
/* DOT, or MATRIX_BYTES for gemm_int8_matrices.c.
 * legal: 4 64 */
enum { DEPTH_UNIT = 4 };
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

/* The depths from `at` on. */
SIMD_FUNCTION vint group_from(const B *source, int64_t at, int64_t n, int64_t k, int count) {
  return k - at >= DOT ? group_at(source + at * n, n, DOT, count) : group_at(source + at * n, n, (int)(k - at), count);
}

/* One lane of each in turn. */
SIMD_FUNCTION void store_two_groups(int8_t *target, vint first, vint next) {
  int32_t words[2][LANES], both[LANES][2];
  vint_store(words[0], first);
  vint_store(words[1], next);
#pragma clang loop unroll(full)
  for (int lane = 0; lane < LANES; lane++) both[lane][0] = words[0][lane], both[lane][1] = words[1][lane];
  __builtin_memcpy(target, both, sizeof both);
}

/* Vector `index` of a panel. */
static void pack_vector(const B *source, int8_t *panel, int index, int64_t n, int64_t k, int count) {
  vint sums = vint_zero(), ones = vint_set(0x01010101);
  int64_t at = 0;
  for (; TILES && k - at >= 2 * DOT; at += 2 * DOT) {
    vint word = group_from(source, at, n, k, count), next = group_from(source, at + DOT, n, k, count);
    store_two_groups(panel + ((at + DOT) * VECTORS + 2 * index * DOT) * LANES, word, next);
    sums = vdot(vdot(sums, ones, word, DOT_ANY), ones, next, DOT_ANY);
  }
  for (; at < k; at += DOT) {
    vint word = group_from(source, at, n, k, count);
    vint_store(panel + ((at + DOT) * VECTORS + index * DOT) * LANES, word);
    sums = vdot(sums, ones, word, DOT_ANY);
  }
  vint_store(panel + index * LANES * DOT, sums);
}

static int64_t groups_of(int64_t k) { return ceil_div(k, DEPTH_UNIT) * (DEPTH_UNIT / DOT); }

/* The panel of columns from `first` on: zeros where there are none. */
static void pack_panel(const B *source, int8_t *panel, int64_t first, int64_t n, int64_t k) {
  int64_t vectors = (groups_of(k) + 1) * VECTORS, filled = (ceil_div(k, DOT) + 1) * VECTORS;
  if (first + VECTORS * LANES > n) filled = 0;
  for (int64_t v = filled; v < vectors; v++) vint_store(panel + v * LANES * DOT, vint_zero());
  for (int v = 0; v < VECTORS; v++) {
    int64_t column = first + v * LANES;
    if (column < n) pack_vector(source + column, panel, v, n, k, (int)min_i64(LANES, n - column));
  }
}

/* source: [batches][k][n]. target: for each batch the panels that cover n columns. */
static void pack_int8(const Team *team, const B *source, int8_t *target, int64_t batches, int64_t n, int64_t k) {
  int64_t panels = ceil_div(n, VECTORS * LANES), groups = groups_of(k), item, end;
  team_share(team, batches * panels, &item, &end);
  for (; item < end; item++) {
    int8_t *panel = target + item * (groups + 1) * VECTORS * LANES * DOT;
    pack_panel(source + item / panels * n * k, panel, item % panels * VECTORS * LANES, n, k);
  }
}
