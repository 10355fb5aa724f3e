/* SPDX-License-Identifier: MIT */
/*
 * C = epilogue(scale * A B + addend_scale * addend), with products of bf16 by matrices in registers (panel_matrices.h)
 * and sums in f32. All workers bring A to bf16, and meet; then each multiplies its share.
 *
 * M is cut into tiles of at most 16 rows, or of 5 if each has three parts, all of one height or one less. Work is cut
 * into (panel, block of one or two tiles), in that order, as in gemm_packed.c: a worker reads few panels of B.
 */
#include "panel_matrices.h"
#include "simd/matrices.h"

/* Vectors of columns in a panel.
 * legal: 1..4 */
enum { VECTORS = 4 };
/* Depth after which partial sums are stored in C, so that what is in use of a panel stays in cache.
 * legal: 32..1048576 */
enum { DEPTH_BLOCK = 1024 };
/* Numbers of bf16 that one of A becomes: it is rounded, or the sum of three.
 * legal: 1 3 */
enum { ROW_PARTS = 1 };

#include "parts/gemm_result.h"

/* Rows of A in a tile. */
enum { TILE_ROWS = MATRIX_ROWS / ROW_PARTS };

/* Bytes of A that all of a worker's panels multiply before the next ones: they stay in its cache. */
enum { GROUP_BYTES = 512 << 10 };

/* Of the product: A in bf16, [tiles][depth / MATRIX_DEPTH][MATRIX_ROWS][MATRIX_DEPTH], and B's panels. */
typedef struct Product {
  Gemm g;
  uint16_t *rounded;
  const uint16_t *panels;
  int64_t tiles, depth; /* depth: of a row, with zeros at its end */
  int height;           /* rows of A in the highest tile */
} Product;

/* ---- rows ---- */

static inline int64_t tile_begin(const Product *p, int64_t tile) { return block_begin(p->g.m, tile, p->tiles, false); }

static inline uint16_t *tile_at(const Product *p, int64_t tile, int64_t k) {
  return p->rounded + (tile * p->depth + k) * MATRIX_ROWS;
}

/* The next elements of a row, `count` of them, with zeros behind, in all its parts. */
static void round_next(uint16_t *to, const float *a, int64_t a_depth, int64_t count) {
  float numbers[MATRIX_DEPTH] = {0};
  if (a_depth != 1) {
    for (int64_t i = 0; i < count && i < MATRIX_DEPTH; i++) numbers[i] = a[i * a_depth];
    a = numbers;
    count = MATRIX_DEPTH;
  }
  for (int i = 0; i < MATRIX_DEPTH; i += LANES)
    store_parts(to + i, MATRIX_DEPTH, panel_load(a + i, count - i), ROW_PARTS);
}

/* The tile's rows from step k on. Rows of an instruction that are none of M's are zeros. */
static void round_tile(const Product *p, int64_t tile, int64_t k) {
  const Gemm *g = &p->g;
  int64_t first = tile_begin(p, tile), rows = tile_begin(p, tile + 1) - first;
  uint16_t *to = tile_at(p, tile, k);
  for (int64_t i = 0; i < p->height; i++)
    round_next(to + i * ROW_PARTS * MATRIX_DEPTH, g->a + (first + i) * g->a_row + k * g->a_depth, g->a_depth,
               i < rows ? g->k - k : 0);
}

static void round_share(const Product *p, const Team *team) {
  int64_t begin, end, in_tile = p->depth / MATRIX_DEPTH;
  team_share(team, p->tiles * in_tile, &begin, &end);
  for (int64_t i = begin; i < end; i++) round_tile(p, i / in_tile, i % in_tile * MATRIX_DEPTH);
}

/* ---- blocks ---- */

enum { TILE_FLOATS = MATRIX_ROWS * VECTORS * LANES };

/* The sums in `tile` go on over the panel's `depth` steps from k, of vectors first .. first + vectors. */
SIMD_FUNCTION void multiply(const Product *p, matrices *m, int64_t panel, int64_t k, int64_t depth, int64_t tile_index,
                            int tiles, int first, int vectors, float *tile) {
  const int64_t stride = VECTORS * LANES * (int64_t)sizeof(float);
  MatrixRows rows = {.a = tile_at(p, tile_index, k),
                     .tile = 2 * p->depth * MATRIX_ROWS,
                     .ahead = MATRIX_ROWS * MATRIX_BYTES,
                     .row = MATRIX_BYTES};
  const uint16_t *columns = p->panels + (panel * p->depth + k) * VECTORS * LANES + first * MATRIX_DEPTH;
  if (k)
    matrices_load_sums(m, tiles, vectors, tile + first * LANES, TILE_FLOATS, stride);
  else
    matrices_zero_sums(m, tiles * vectors);
  matrices_multiply(m, tiles, vectors, &rows, columns, VECTORS, depth / MATRIX_DEPTH, OF_BF16);
  matrices_store_sums(m, tiles, vectors, tile + first * LANES, TILE_FLOATS, stride);
}

/* Of two tiles two vectors have sums in registers at once, of one tile all. */
SIMD_FUNCTION void block(const Product *p, matrices *m, int64_t panel, int64_t k, int64_t depth, int64_t tile_index,
                         int tiles) {
  _Alignas(64) float sums[2 * TILE_FLOATS];
  int64_t column = panel * VECTORS * LANES;
  for (int t = 0; k && t < tiles; t++) {
    int64_t first = tile_begin(p, tile_index + t), rows = tile_begin(p, tile_index + t + 1) - first;
    tile_from_c(&p->g, sums + t * TILE_FLOATS, first, rows, column);
    place_parts(sums + t * TILE_FLOATS, rows, VECTORS, ROW_PARTS);
  }
  const int together = tiles > 1 && VECTORS > 2 ? 2 : VECTORS;
  multiply(p, m, panel, k, depth, tile_index, tiles, 0, together, sums);
  if (together < VECTORS) multiply(p, m, panel, k, depth, tile_index, tiles, together, VECTORS - together, sums);
  for (int t = 0; t < tiles; t++) {
    int64_t first = tile_begin(p, tile_index + t), rows = tile_begin(p, tile_index + t + 1) - first;
    add_parts(sums + t * TILE_FLOATS, rows, VECTORS, ROW_PARTS);
    tile_to_c(&p->g, sums + t * TILE_FLOATS, first, rows, column, k + depth == p->depth);
  }
}

/* Blocks begin .. end, of `blocks`, of one panel. */
static void panel_rows(const Product *p, matrices *m, int64_t panel, int64_t begin, int64_t end, int64_t blocks) {
  int64_t k = 0;
  do { /* once even where K is 0 */
    int64_t depth = min_i64(DEPTH_BLOCK / MATRIX_DEPTH * MATRIX_DEPTH, p->depth - k);
    for (int64_t i = begin; i < end; i++) {
      int64_t tile = block_begin(p->tiles, i, blocks, false);
      if (block_begin(p->tiles, i + 1, blocks, false) - tile == 1)
        block(p, m, panel, k, depth, tile, 1);
      else
        block(p, m, panel, k, depth, tile, 2);
    }
    k += depth;
  } while (k < p->depth);
}

/* Items first .. last, each a block of rows of a panel. */
static void share(const Product *p, matrices *m, int64_t first, int64_t last, int64_t blocks) {
  int64_t bytes = 2 * MATRIX_ROWS * p->depth * 2, group = max_i64(1, GROUP_BYTES / max_i64(1, bytes));
  for (int64_t row = 0; row < blocks; row += group) {
    for (int64_t panel = first / blocks; panel * blocks < last; panel++) {
      int64_t begin = max_i64(row, first - panel * blocks);
      int64_t end = min_i64(min_i64(row + group, blocks), last - panel * blocks);
      if (begin < end) panel_rows(p, m, panel, begin, end, blocks);
    }
  }
}

/* a: [m][k] by its strides. b: panels of k steps, rounded up to whole matrices, that cover n columns. c: [m][n], rows
 * c_row apart, at least n. rounded: bf16, 16 rows for each tile, of so many steps. */
static void gemm_bf16(Team *team, const float *a, const uint16_t *b, const float *addend, float *c, uint16_t *rounded,
                      float scale, float addend_scale, int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_depth,
                      int64_t addend_row, int64_t c_row) {
  Product p = {.g = {.a = a,
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
                     .c_row = c_row},
               .rounded = rounded,
               .panels = b,
               .tiles = ceil_div(m, TILE_ROWS),
               .depth = round_up(k, MATRIX_DEPTH)};
  int64_t begin, end, blocks = ceil_div(p.tiles, 2);
  if (m) p.height = (int)ceil_div(m, p.tiles);
  round_share(&p, team);
  team_barrier(team);
  team_share(team, p.g.panels * blocks, &begin, &end);
  if (begin == end) return;
  matrices held;
  matrices_begin(&held, p.height * ROW_PARTS);
  share(&p, &held, begin, end, blocks);
  matrices_end(&held);
}
