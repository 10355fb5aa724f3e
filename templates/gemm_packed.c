/* SPDX-License-Identifier: MIT */
/*
 * C = epilogue(scale * A B + addend_scale * addend) in f32, with B packed into panels (see panel.h), over any number of
 * batches.
 *
 * Work is cut into (batch, panel, block of rows), in that order, and each worker takes one contiguous share: a worker
 * reads few panels of B, and always the same ones. Blocks are balanced, so that no tail is left with one row.
 */
#include "kernel.h"
#include "panel.h"
#include "panel_narrow.h"
#include "simd/math.h"
#include "simd/simd.h"

/* Vectors of columns in a panel; more than 4 only where M is known to be 1.
 * legal: 1..16 */
enum { VECTORS = 4 };
/* Maximum rows of a block: ROWS * VECTORS sums are in registers.
 * legal: 1..8 */
enum { ROWS = 6 };
/* Minimum rows of a block: where M is known, its blocks have one of two heights.
 * legal: 1..8 */
enum { MIN_ROWS = 1 };
/* Panels that a single row is multiplied with at once.
 * legal: 1 2 4 8 */
enum { GROUP = 4 };
/* Depth after which partial sums are stored in C, so that the part of the panel in use stays in cache.
 * legal: 16..1048576 */
enum { DEPTH_BLOCK = 2048 };
/* Blocks of rows that a worker multiplies with all its panels before the next ones, so that few pages of A are in use;
 * 0: all of them.
 * legal: 0..1048576 */
enum { ROW_BLOCKS = 0 };
/* 1: the product is added to what C has.
 * legal: 0 1 */
enum { ADDS = 0 };

/* The team is divided into so many crews, if it has as many workers, and crew number CREW alone runs the product: that
 * which goes on with its result.
 * legal: 1 2 */
enum { CREWS = 1 };
/* legal: 0 1 */
enum { CREW = 0 };

/* How B is stored: f32, or one of panel_narrow.h.
 * legal: 0 1 2 3 4 5 */
enum { WEIGHTS = 0 };
/* Steps of the depth that share a scale, of integers; 0: all of them. DEPTH_BLOCK is a multiple of it, and of 8.
 * legal: 0 8 16 32 64 128 256 512 1024 */
enum { SCALE_GROUP = 0 };

/* Blocks begin with even rows. */
enum { BY_TWO = WEIGHTS == WEIGHTS_BF16_TILES && BF16_ROWS == 2 };

#include "parts/gemm_result.h"

/* ---- blocks ---- */

SIMD_FUNCTION void finish_block(const Gemm *g, const PanelRow *sums, int64_t first, int rows, int64_t column) {
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) {
#pragma clang loop unroll(full)
    for (int v = 0; v < VECTORS; v++) {
      int64_t at = column + v * LANES;
      vstore(g->c + (first + m) * g->c_row + at, finish(g, sums[m][v], first + m, at, LANES));
    }
  }
}

/* Of the panel's columns, from step k on; NULL: there are none. */
static inline const float *scales_at(const Gemm *g, int64_t panel, int64_t k) {
  if (!narrow_is_scaled(WEIGHTS)) return NULL;
  const float *scales = g->scales + panel * narrow_scale_floats(SCALE_GROUP, g->k, VECTORS);
  return SCALE_GROUP ? scales + k / SCALE_GROUP * VECTORS * LANES : scales;
}

/* Rows first .. first + rows of one panel, over `depth` steps from k. */
SIMD_FUNCTION void block(const Gemm *g, int64_t panel, int64_t k, int64_t depth, int64_t first, int rows) {
  PanelRow sums[PANEL_ROWS];
  _Alignas(64) float tile[ROWS * VECTORS * LANES];
  int64_t column = panel * VECTORS * LANES;
  bool last = k + depth == g->k;
  bool begun = ADDS || k;
  if (begun) tile_from_c(g, tile, first, rows, column);
  panel_load_sums(sums, begun ? tile : NULL, rows, VECTORS);
  const float *a = g->a + first * g->a_row + k * g->a_depth;
  const float *b = g->b + panel * narrow_floats(WEIGHTS, g->k, VECTORS) + narrow_floats(WEIGHTS, k, VECTORS);
  if (WEIGHTS == WEIGHTS_F32)
    panel_multiply(sums, rows, VECTORS, a, g->a_row, g->a_depth, b, depth);
  else
    narrow_multiply(WEIGHTS, SCALE_GROUP, sums, rows, VECTORS, a, g->a_row, g->a_depth, b, scales_at(g, panel, k),
                    depth);
  if (last && column + VECTORS * LANES <= g->n) {
    finish_block(g, sums, first, rows, column);
    return;
  }
  panel_store_sums(tile, sums, rows, VECTORS);
  tile_to_c(g, tile, first, rows, column, last);
}

static void block_of_rows(const Gemm *g, int64_t panel, int64_t k, int64_t depth, int64_t first, int64_t rows) {
  if (MIN_ROWS <= 1 && 1 <= ROWS && rows == 1) block(g, panel, k, depth, first, 1);
  if (MIN_ROWS <= 2 && 2 <= ROWS && rows == 2) block(g, panel, k, depth, first, 2);
  if (MIN_ROWS <= 3 && 3 <= ROWS && rows == 3) block(g, panel, k, depth, first, 3);
  if (MIN_ROWS <= 4 && 4 <= ROWS && rows == 4) block(g, panel, k, depth, first, 4);
  if (MIN_ROWS <= 5 && 5 <= ROWS && rows == 5) block(g, panel, k, depth, first, 5);
  if (MIN_ROWS <= 6 && 6 <= ROWS && rows == 6) block(g, panel, k, depth, first, 6);
  if (MIN_ROWS <= 7 && 7 <= ROWS && rows == 7) block(g, panel, k, depth, first, 7);
  if (MIN_ROWS <= 8 && 8 <= ROWS && rows == 8) block(g, panel, k, depth, first, 8);
}

/* Blocks begin .. end, of `blocks` that M is cut into, of one panel. */
static void panel_rows(const Gemm *g, int64_t panel, int64_t begin, int64_t end, int64_t blocks) {
  int64_t k = 0;
  do { /* once even where K is 0 */
    int64_t depth = min_i64(DEPTH_BLOCK, g->k - k);
    for (int64_t i = begin; i < end; i++) {
      int64_t first = block_begin(g->m, i, blocks, BY_TWO);
      block_of_rows(g, panel, k, depth, first, block_begin(g->m, i + 1, blocks, BY_TWO) - first);
    }
    k += depth;
  } while (k < g->k);
}

/* Items first .. last of a batch, each a block of rows of a panel. */
static void batch_share(const Gemm *g, int64_t first, int64_t last, int64_t blocks) {
  int64_t group = ROW_BLOCKS ? ROW_BLOCKS : blocks;
  for (int64_t row = 0; row < blocks; row += group) {
    for (int64_t panel = first / blocks; panel * blocks < last; panel++) {
      int64_t begin = max_i64(row, first - panel * blocks);
      int64_t end = min_i64(min_i64(row + group, blocks), last - panel * blocks);
      if (begin < end) panel_rows(g, panel, begin, end, blocks);
    }
  }
}

SIMD_FUNCTION void row_group(const Gemm *g, int64_t panel, int panels) {
  PanelRow sums[PANEL_ROWS];
  _Alignas(64) float tile[GROUP * VECTORS * LANES];
  int64_t stride = narrow_floats(WEIGHTS, g->k, VECTORS);
  const float *b = g->b + panel * stride;
  panel_load_sums(sums, NULL, panels, VECTORS);
  if (WEIGHTS == WEIGHTS_F32)
    panel_multiply_row(sums, panels, VECTORS, g->a, g->a_depth, b, stride, g->k);
  else
    narrow_multiply_row(WEIGHTS, SCALE_GROUP, sums, panels, VECTORS, g->a, g->a_depth, b, scales_at(g, panel, 0), g->k);
  panel_store_sums(tile, sums, panels, VECTORS);
  for (int p = 0; p < panels; p++) tile_to_c(g, tile + p * VECTORS * LANES, 0, 1, (panel + p) * VECTORS * LANES, true);
}

/* M = 1: panels begin .. end. */
static void single_row(const Gemm *g, int64_t begin, int64_t end) {
  int64_t panel = begin;
  for (; GROUP > 1 && panel + GROUP <= end; panel += GROUP) row_group(g, panel, GROUP);
  for (; panel < end; panel++) row_group(g, panel, 1);
}

/* This worker's share of the items of its crew; none if it is of the other one. */
static void crew_share(const Team *team, int64_t items, int64_t *begin, int64_t *end) {
  int64_t first = team->size * CREW / CREWS, workers = team->size * (CREW + 1) / CREWS - first;
  int64_t member = team->rank - first;
  bool rests = member < 0 || member >= workers;
  *begin = rests ? 0 : share_begin(items, member, workers);
  *end = rests ? 0 : share_begin(items, member + 1, workers);
}

/* The matrices of one batch. A and B have strides for each batch axis, C is dense, the addend is the same for all. */
static Gemm at_batch(const Gemm *all, int64_t index, int64_t rank, const int64_t *dims, const int64_t *a_batch,
                     const int64_t *b_batch) {
  Gemm g = *all;
  g.c += index * all->m * all->c_row;
  for (int64_t axis = rank - 1; axis >= 0; axis--) {
    int64_t i = index % dims[axis];
    g.a += i * a_batch[axis];
    g.b += i * b_batch[axis];
    index /= dims[axis];
  }
  return g;
}

/* a: [batch][m][k] by its strides. b: panels of [k][VECTORS][LANES] that cover n columns; of other WEIGHTS than f32
 * there is one matrix, as panel_narrow.h has it, with its scales. c: [batch][m][n], rows c_row apart, at least n. */
static void gemm_packed(const Team *team, const float *a, const float *b, const float *addend, float *c, float scale,
                        float addend_scale, int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_depth,
                        int64_t addend_row, int64_t c_row, int64_t batch_rank, const int64_t *batch_dims,
                        const int64_t *a_batch, const int64_t *b_batch, const float *scales) {
  Gemm all = {.a = a,
              .b = b,
              .scales = scales,
              .addend = addend,
              .c = c,
              .m = m,
              .n = n,
              .k = k,
              .scale = scale,
              .addend_scale = addend_scale,
              .panels = ceil_div(n, VECTORS * LANES),
              .a_row = a_row,
              .a_depth = a_depth,
              .addend_row = addend_row,
              .c_row = c_row};
  int64_t batches = 1, blocks = ceil_div(m, ROWS), item, end;
  for (int64_t axis = 0; axis < batch_rank; axis++) batches *= batch_dims[axis];
  if (CREWS > 1 && team->size >= CREWS)
    crew_share(team, batches * all.panels * blocks, &item, &end);
  else
    team_share(team, batches * all.panels * blocks, &item, &end);
  while (item < end) {
    int64_t in_batch = all.panels * blocks, batch = item / in_batch, first = item % in_batch;
    Gemm g = at_batch(&all, batch, batch_rank, batch_dims, a_batch, b_batch);
    int64_t last = min_i64(in_batch, first + end - item);
    if (MIN_ROWS == 1 && !ADDS && m == 1)
      single_row(&g, first, last);
    else
      batch_share(&g, first, last, blocks);
    item += last - first;
  }
}
