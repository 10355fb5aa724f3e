/* SPDX-License-Identifier: MIT */
/*
 * A part of the templates of recurrent layers that are trained, after trained_layer.h: the product of a step's rows
 * with one panel of weights, which stays in the worker's cache from step to step where it fits. Sums of a panel wait in
 * `tile`, [sample][vectors][LANES], between blocks of the depth. The template says before it how many vectors a product
 * has: PRODUCT_VECTORS, or of its second one SECOND_VECTORS, which is never in parts.
 */
enum { PART_VECTORS = PRODUCT_VECTORS / PANEL_PARTS };

typedef struct Block {
  const float *a, *weights, *ahead;
  float *tile;
  int64_t a_row, depth;
  bool begins, second;
} Block;

SIMD_FUNCTION void multiply_block(const Block *b, int rows, int vectors, int tile_vectors) {
  PanelRow sums[PANEL_ROWS];
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++)
    panel_load_sums(&sums[m], b->begins ? NULL : b->tile + m * tile_vectors * LANES, 1, vectors);
  panel_multiply_ahead(sums, rows, vectors, b->a, b->a_row, b->weights, b->depth, b->ahead);
#pragma clang loop unroll(full)
  for (int m = 0; m < rows; m++) panel_store_sums(b->tile + m * tile_vectors * LANES, &sums[m], 1, vectors);
}

SIMD_FUNCTION void either_block(const Block *b, int rows) {
  if (SECOND_VECTORS > 0 && b->second)
    multiply_block(b, rows, SECOND_VECTORS, SECOND_VECTORS);
  else
    multiply_block(b, rows, PART_VECTORS, PRODUCT_VECTORS);
}

/* Functions of their own: compilers take minutes for all heights in one. */
static __attribute__((noinline)) void one_row(const Block *b) { either_block(b, 1); }
static __attribute__((noinline)) void two_rows(const Block *b) { either_block(b, 2); }
static __attribute__((noinline)) void three_rows(const Block *b) { either_block(b, 3); }
static __attribute__((noinline)) void four_rows(const Block *b) { either_block(b, 4); }
static __attribute__((noinline)) void five_rows(const Block *b) { either_block(b, 5); }
static __attribute__((noinline)) void six_rows(const Block *b) { either_block(b, 6); }
static __attribute__((noinline)) void seven_rows(const Block *b) { either_block(b, 7); }
static __attribute__((noinline)) void eight_rows(const Block *b) { either_block(b, 8); }

static void block_of_rows(const Block *b, int64_t rows) {
  if (MIN_ROWS <= 1 && 1 <= ROWS && rows == 1) one_row(b);
  if (MIN_ROWS <= 2 && 2 <= ROWS && rows == 2) two_rows(b);
  if (MIN_ROWS <= 3 && 3 <= ROWS && rows == 3) three_rows(b);
  if (MIN_ROWS <= 4 && 4 <= ROWS && rows == 4) four_rows(b);
  if (MIN_ROWS <= 5 && 5 <= ROWS && rows == 5) five_rows(b);
  if (MIN_ROWS <= 6 && 6 <= ROWS && rows == 6) six_rows(b);
  if (MIN_ROWS <= 7 && 7 <= ROWS && rows == 7) seven_rows(b);
  if (MIN_ROWS <= 8 && 8 <= ROWS && rows == 8) eight_rows(b);
}

/* A part of multiply_panel(), to the tile's vectors from `tile` on. */
static void multiply_part(const float *weights, const float *next, int64_t depth, const float *a, int64_t a_row,
                          float *tile, int64_t rows, bool second) {
  int64_t vectors = second ? SECOND_VECTORS : PART_VECTORS, blocks = ceil_div(rows, ROWS), k = 0;
  int64_t tile_row = (second ? SECOND_VECTORS : PRODUCT_VECTORS) * LANES;
  do { /* once even where the depth is 0 */
    Block b = {.weights = weights + k * vectors * LANES, .a_row = a_row, .begins = k == 0, .second = second};
    b.depth = min_i64(DEPTH_BLOCK, depth - k);
    const float *ahead = k + b.depth < depth ? b.weights + b.depth * vectors * LANES : next;
    for (int64_t j = 0; j < blocks; j++) {
      int64_t first = j * rows / blocks;
      b.a = a + first * a_row + k;
      b.tile = tile + first * tile_row;
      b.ahead = ahead + (j & 1) * b.depth * panel_ahead_floats((int)vectors);
      block_of_rows(&b, (j + 1) * rows / blocks - first);
    }
    k += b.depth;
  } while (k < depth);
}

/* tile = A times the panel, of `rows` rows. next: what is multiplied after it. */
static void multiply_panel(const float *weights, const float *next, int64_t depth, const float *a, int64_t a_row,
                           float *tile, int64_t rows, bool second) {
  const int parts = second ? 1 : PANEL_PARTS;
  const int64_t floats = depth * PART_VECTORS * LANES;
  for (int part = 0; part < parts; part++) {
    const float *own = weights + part * floats;
    multiply_part(own, part + 1 < parts ? own + floats : next, depth, a, a_row, tile + part * PART_VECTORS * LANES,
                  rows, second);
  }
}
