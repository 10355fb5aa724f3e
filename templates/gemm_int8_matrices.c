/* SPDX-License-Identifier: MIT */
/*
 * C = A B of 8-bit numbers with zero points, as templates/gemm_int8.c computes it, bit for bit, by matrices in
 * registers (simd/matrices.h). Panels of B are those of gemm_int8.c, zero to a whole number of MATRIX_BYTES depths:
 * [group][VECTORS][MATRIX_COLUMNS][DOT], where group 0 is the sum of each column in i32.
 *
 * A block is of 1 to TILES tiles of equally many rows, 16 at most, by the VECTORS vectors of a panel; where its rows
 * are no multiple, its last tile begins before the end of the one in front, and computes these rows again. Sums are in
 * registers over the whole depth, then in memory, a block of them. The rest of the depth is copied to rows of their
 * own; what stands behind it meets weights of zero.
 *
 * Inputs count as they are, not from DOT_ZERO on, so that
 *   sum over k of (a - zero) (b - b_zero) = dot - zero columns - b_zero (rows - K zero),
 * where rows and columns are the sums of A's rows and B's columns.
 *
 * Work is cut into (batch, panel, block of rows), in that order, and each worker takes one contiguous share.
 */
#include "kernel.h"
#include "panel.h"
#include "simd/int8.h"
#include "simd/math.h"
#include "simd/matrices.h"
#include "simd/simd.h"

/* Vectors of columns in a panel; times TILES 4 at most.
 * legal: 1..4 */
enum { VECTORS = 2 };
/* Maximum tiles of a block.
 * legal: 1 2 4 */
enum { TILES = 2 };
/* K modulo MATRIX_BYTES.
 * legal: 0..63 */
enum { TAIL = 0 };

enum { ROWS = TILES * MATRIX_ROWS, WIDTH = VECTORS * MATRIX_COLUMNS, LINE = 64 };

#include "parts/gemm_int8_finish.h"

/* A block's rows, first .. first + rows, in tiles of `height` rows. */
typedef struct Block {
  int64_t first, rows, height, tiles;
  int64_t index, blocks; /* which of how many */
} Block;

/* What a worker has of its own. Rows of matrices are lines of the cache. */
typedef struct Work {
  int32_t sums[ROWS * WIDTH] __attribute__((aligned(64)));
  unsigned char tail[ROWS * MATRIX_BYTES];
  int32_t row_sums[ROWS];
  const A *rows;  /* that `tail` and `row_sums` are of: the first one; NULL: of none */
  int64_t height; /* that the registers are set up for; 0: they are not */
  matrices registers;
} Work;

static int64_t tile_row(const Block *b, int64_t tile) { return min_i64(tile * b->height, b->rows - b->height); }

/* ---- products ---- */

/* One step of the depth: MATRIX_BYTES of each row of `tiles` tiles, by the panel's. */
SIMD_FUNCTION void step(Work *w, const Block *b, const unsigned char *a, int64_t a_row, const int8_t *panel,
                        int tiles) {
#pragma clang loop unroll(full)
  for (int t = 0; t < tiles; t++) {
    matrices_load(&w->registers, 4 + t % 2, a + tile_row(b, t) * a_row, a_row);
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++) {
      if (t == 0) matrices_load(&w->registers, 6 + v % 2, panel + v * DOT * LANES, VECTORS * DOT * LANES);
      matrices_dot(&w->registers, t * VECTORS + v, 4 + t % 2, 6 + v % 2, A_SIGNED);
    }
  }
}

/* The rest of each row. */
static void copy_tail(const Gemm *g, const Block *b, Work *w) {
  const A *from = g->a + b->first * g->k + g->k - TAIL;
  for (int64_t row = 0; row < b->rows; row++) __builtin_memcpy(w->tail + row * MATRIX_BYTES, from + row * g->k, TAIL);
}

/* Lines of the next panel that a step of the depth fetches, so that those of all blocks of rows fetch it once. */
static int64_t lines_a_step(const Gemm *g, const Block *b) {
  return ceil_div(panel_bytes(g) / LINE, b->blocks * max_i64(1, g->k / MATRIX_BYTES));
}

SIMD_FUNCTION void multiply(const Gemm *g, const Block *b, Work *w, const int8_t *panel, int tiles) {
  const unsigned char *a = (const unsigned char *)(g->a + b->first * g->k);
  const int64_t lines = lines_a_step(g, b);
  const int8_t *ahead = panel + panel_bytes(g) + b->index * (g->k / MATRIX_BYTES) * lines * LINE;
  int64_t k = 0;
#pragma clang loop unroll(full)
  for (int i = 0; i < tiles * VECTORS; i++) matrices_zero(&w->registers, i);
  for (; k + MATRIX_BYTES <= g->k; k += MATRIX_BYTES) {
    for (int64_t i = 0; i < lines; i++, ahead += LINE) prefetch_later(ahead);
    step(w, b, a + k, g->k, panel + (k + DOT) * WIDTH, tiles);
  }
  if (TAIL) step(w, b, w->tail, MATRIX_BYTES, panel + (k + DOT) * WIDTH, tiles);
#pragma clang loop unroll(full)
  for (int t = 0; t < tiles; t++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++)
      matrices_store(&w->registers, t * VECTORS + v, w->sums + tile_row(b, t) * WIDTH + v * LANES,
                     WIDTH * (int64_t)sizeof(int32_t));
  }
}

/* ---- blocks ---- */

static void add_up_rows(const Gemm *g, const Block *b, Work *w) {
  for (int64_t row = 0; row < b->rows; row++) {
    const A *at = g->a + (b->first + row) * g->k;
    uint32_t sum = 0;
    for (int64_t k = 0; k < g->k; k++) sum += (uint32_t)at[k];
    w->row_sums[row] = (int32_t)sum;
  }
}

/* Column by column of vectors: each begins with the zero point times the sums of its columns. */
static void finish_block(const Gemm *all, const Block *b, const Work *w, int64_t index, const int8_t *panel) {
  const Gemm g = *all; /* bytes that are stored may be anything in memory */
  const int64_t first = b->first, rows = b->rows;
  for (int v = 0; v < VECTORS; v++) {
    const Column column = column_at(&g, (index * VECTORS + v) * LANES);
    const vint start = vint_sub(vint_zero(), vint_mul(vint_set(g.a_zero), vint_load(panel + v * LANES * DOT)));
    for (int64_t row = 0; row < rows; row++) {
      vint sum = vint_add(start, vint_load(w->sums + row * WIDTH + v * LANES));
      finish(&g, &column, sum, vint_set(B_ZERO ? w->row_sums[row] : 0), first + row);
    }
  }
}

/* Once where one block has all rows: then they are those of the panel before. */
static void read_rows(const Gemm *g, const Block *b, Work *w) {
  const A *rows = g->a + b->first * g->k;
  if (w->rows == rows) return;
  if (TAIL) copy_tail(g, b, w);
  if (B_ZERO) add_up_rows(g, b, w);
  w->rows = rows;
}

static Block block_at(const Gemm *g, int64_t index, int64_t blocks) {
  Block b = {.first = block_begin(g->m, index, blocks, false), .index = index, .blocks = blocks};
  b.rows = block_begin(g->m, index + 1, blocks, false) - b.first;
  b.tiles = ceil_div(b.rows, MATRIX_ROWS);
  b.height = ceil_div(b.rows, b.tiles);
  return b;
}

static void block(const Gemm *g, Work *w, int64_t panel, const Block *b) {
  const int8_t *weights = g->b + panel * panel_bytes(g);
  if (w->height != b->height) matrices_begin(&w->registers, (int)b->height);
  w->height = b->height;
  read_rows(g, b, w);
  if (b->tiles == 1) multiply(g, b, w, weights, 1);
  if (TILES >= 2 && b->tiles == 2) multiply(g, b, w, weights, 2);
  if (TILES >= 3 && b->tiles == 3) multiply(g, b, w, weights, 3);
  if (TILES >= 4 && b->tiles == 4) multiply(g, b, w, weights, 4);
  finish_block(g, b, w, panel, weights);
}

/* a: [batch][m][k], bytes. b: panels that cover n columns. b_zero: what stands for 0 in the packed panels. scale: one,
 * or a row. bias: a row. c: [batch][m][n]. */
static void gemm_int8_matrices(const Team *team, const A *a, const int8_t *b, const A *a_zero, int64_t b_zero,
                               const int32_t *bias, const float *a_scale, const float *scale, const float *addend,
                               const float *residual, T *c, int64_t c_zero, int64_t m, int64_t n, int64_t k,
                               int64_t residual_row, int64_t batch_rank, const int64_t *batch_dims,
                               const int64_t *a_batch, const int64_t *b_batch) {
  Gemm all = {.a = a,
              .b = b,
              .bias = bias,
              .scale = scale,
              .addend = addend,
              .residual = residual,
              .c = c,
              .m = m,
              .n = n,
              .k = k,
              .panels = ceil_div(n, WIDTH),
              .groups = ceil_div(k, MATRIX_BYTES) * MATRIX_BYTES / DOT,
              .residual_row = residual_row,
              .a_zero = A_ZERO ? *a_zero : 0,
              .b_zero = (int)b_zero,
              .a_scale = A_SCALE ? *a_scale : 1,
              .c_zero = (float)c_zero};
  int64_t batches = 1, blocks = ceil_div(m, ROWS), item, end;
  for (int64_t axis = 0; axis < batch_rank; axis++) batches *= batch_dims[axis];
  team_share(team, batches * all.panels * blocks, &item, &end);
  if (item == end) return;
  Work work;
  work.height = 0;
  work.rows = NULL;
  for (; item < end; item++) {
    int64_t in_batch = all.panels * blocks, at = item % in_batch;
    Gemm g = at_batch(&all, item / in_batch, batch_rank, batch_dims, a_batch, b_batch);
    Block rows = block_at(&g, at % blocks, blocks);
    block(&g, &work, at / blocks, &rows);
  }
  matrices_end(&work.registers);
}
