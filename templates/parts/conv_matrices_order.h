/* SPDX-License-Identifier: MIT */
/* A part of conv_matrices_int8.c and conv_matrices_bf16.c: strips, the products of a block, and the order of blocks. */

/* ---- strips ---- */

/* Of an image, from a row and a column on. */
static void make_row(const Conv *c, uint8_t *out, const X *x, int64_t row, int64_t column, int64_t pixels) {
  if (row < 0 || row >= IN_H) {
    fill(c, out, pixels);
    return;
  }
  const int64_t begin = min_i64(ceil_div(max_i64(-column, 0), IN_STEP_W), pixels);
  const int64_t end = min_i64(max_i64(ceil_div(max_i64(IN_W - column, 0), IN_STEP_W), begin), pixels);
  fill(c, out, begin);
  copy_pixels(c, out + begin * PIXEL, x + (row * IN_W + column + begin * IN_STEP_W) * IN_BLOCK, end - begin);
  fill(c, out + end * PIXEL, pixels - end);
}

/* The rows and columns of a phase. */
static void make_phase(const Conv *c, const Block *b, int64_t phase_h, int64_t phase_w) {
  const int64_t rows = STRIP_H - (BLOCK_H - b->rows) * STEP_H, pixels = STRIP_W - (BLOCK_W - b->columns) * STEP_W;
  const int64_t first = b->row * STRIDE_H - PAD_TOP + phase_h, column = b->column * STRIDE_W - PAD_LEFT + phase_w;
  const X *x = c->x + b->image * c->x_image;
  uint8_t *out = c->strip + (phase_h * PHASES_W + phase_w) * PHASE;
  for (int64_t row = 0; row < rows; row++, out += STRIP_ROW) {
    for (int64_t f = 0; f < FOLD; f++) make_row(c, out + f * CHANNELS, x, first + row * IN_STEP_H + f, column, pixels);
    __builtin_memset(out + pixels * PIXEL, 0, BEHIND);
  }
}

static void make_strip(const Conv *c, const Block *b) {
  for (int64_t h = 0; h < PHASES_H; h++)
    for (int64_t w = 0; w < PHASES_W; w++) make_phase(c, b, h, w);
}

/* Where a piece of a window is: of its row r, of that piece s. */
static inline int64_t piece_at(int64_t r, int64_t s) {
  const int64_t row = r * ROW_STEP, column = s * DILATION_W;
  if (!PHASES) return row * STRIP_ROW + column * PIXEL;
  const int64_t phase = row % STRIDE_H * PHASES_W + column % STRIDE_W;
  return phase * PHASE + row / STRIDE_H * STRIP_ROW + column / STRIDE_W * PIXEL;
}

/* ---- products ---- */

/* The sums of one or two matrices. ahead: weights that are needed next. count, vectors: constants once inlined. */
SIMD_FUNCTION void multiply(const Conv *c, matrices *m, const uint8_t *first, const uint8_t *second, int count,
                            const uint8_t *w, const Sum *start, int vectors, const uint8_t *ahead,
                            int64_t ahead_lines) {
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) {
    matrices_load(m, v, start + v * LANES, 0);
    matrices_load(m, 2 + v, start + v * LANES, 0);
  }
  for (int64_t piece = 0; piece < WINDOW_ROWS * PIECES; piece++) {
    const int64_t at = piece_at(piece / PIECES, piece % PIECES);
#pragma clang loop unroll(disable)
    for (int64_t k = 0; k < PIECE_LINES; k++, w += vectors * MATRIX) {
      matrices_load(m, 4, first + at + k * LINE, STEP_W * PIXEL);
      matrices_load(m, 6, w, LINE);
      add_product(m, 0, 4, 6);
      if (vectors > 1) matrices_load(m, 7, w + MATRIX, LINE);
      if (vectors > 1) add_product(m, 1, 4, 7);
      if (count > 1) matrices_load(m, 5, second + at + k * LINE, STEP_W * PIXEL);
      if (count > 1) add_product(m, 2, 5, 6);
      if (count > 1 && vectors > 1) add_product(m, 3, 5, 7);
      for (int64_t i = 0; i < ahead_lines; i++, ahead += LINE) prefetch_later(ahead);
    }
  }
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) {
    matrices_store(m, v, c->sums + v * MATRIX_ROWS * LANES, LINE);
    if (count > 1) matrices_store(m, 2 + v, c->sums + (VECTORS + v) * MATRIX_ROWS * LANES, LINE);
  }
}

SIMD_FUNCTION Target target_of(const Conv *c, int64_t image, int64_t pixel, int64_t vector) {
  int64_t at = vector * OUT_PLANE + pixel * LANES;
  return (Target){.channel = vector * LANES,
                  .residual = RESIDUAL ? c->residual + (image * c->residual_image + at) * Y_BYTES : NULL,
                  .y = c->y + (image * c->y_image + at) * Y_BYTES};
}

/* `count` rows. */
SIMD_FUNCTION void end_sums(const Conv *c, const Sum *sums, int64_t count, const Target *t) {
  int64_t row = 0;
  for (; row + 4 <= count; row += 4) end_rows(c, sums, row, 4, t);
  for (; row < count; row++) end_rows(c, sums, row, 1, t);
}

/* The matrix's pixels that the block has, from pixel `at` of its rows on. */
SIMD_FUNCTION void end_matrix(const Conv *c, const Block *b, const Sum *sums, int64_t at, int64_t vector) {
  int64_t row = at / WIDTH, column = at % WIDTH;
  for (int64_t m = 0; m < ROWS && row < b->rows; m += WIDTH - column, column = 0, row++) {
    const int64_t count = min_i64(ROWS - m, b->columns - column);
    const Target target = target_of(c, b->image, (b->row + row) * OUT_W + b->column + column, vector);
    end_sums(c, sums + m * LANES, count, &target);
  }
}

/* ---- the order ---- */

/* Matrix i of a block begins at pixel i * ROWS of its rows, which are WIDTH pixels wide. */
static int64_t matrices_of(const Block *b) { return ceil_div((b->rows - 1) * WIDTH + b->columns, ROWS); }

/* Where in the strip the window of a pixel of the block's rows begins. */
static const uint8_t *window_of(const Conv *c, int64_t at) {
  return c->strip + at / WIDTH * STEP_H * STRIP_ROW + at % WIDTH * STEP_W * PIXEL;
}

/* A group of output channels: its weights, and what its sums begin with. */
typedef struct Group {
  const uint8_t *w;
  const Sum *start;
  int64_t vector; /* the first one */
} Group;

/* Matrices i and, with a count of 2, i + 1 of a block. ahead: ahead_lines for each line of the window. */
SIMD_FUNCTION void run_matrices(const Conv *c, matrices *m, const Block *b, int64_t i, int count, const Group *g,
                                int vectors, const uint8_t *ahead, int64_t ahead_lines) {
  const Conv own = *c; /* bytes that are stored may be anything in memory */
  const int64_t at = i * ROWS;
  multiply(c, m, window_of(c, at), window_of(c, at + ROWS), count, g->w, g->start, vectors, ahead, ahead_lines);
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) {
    end_matrix(&own, b, c->sums + v * MATRIX_ROWS * LANES, at, g->vector + v);
    if (count > 1) end_matrix(&own, b, c->sums + (VECTORS + v) * MATRIX_ROWS * LANES, at + ROWS, g->vector + v);
  }
}

/* While weights come from memory, each pair prefetches a part of the next group's. */
SIMD_FUNCTION void matrices_of_group(const Conv *c, matrices *m, const Block *b, int64_t group, int vectors) {
  const int64_t count = matrices_of(b), vector = group * VECTORS;
  const int64_t ahead_lines = b->is_first ? ceil_div(VECTORS * MATRIX_ROWS, ceil_div(count, 2)) : 0;
  const uint8_t *ahead = c->w + (vector + VECTORS) * LINES * MATRIX;
  Sum start[VECTORS * LANES];
  const Group g = {c->w + vector * LINES * MATRIX, starts_of(c, vector, vectors, start), vector};
  int64_t i = 0;
  for (; i + 2 <= count; i += 2, ahead += LINES * ahead_lines * LINE)
    run_matrices(c, m, b, i, 2, &g, vectors, ahead, ahead_lines);
  if (i < count) run_matrices(c, m, b, i, 1, &g, vectors, ahead, ahead_lines);
}

static int64_t groups_of(const Conv *c) { return ceil_div(c->vectors, VECTORS); }

static void run_group(const Conv *c, matrices *m, const Block *b, int64_t group) {
  if (OC_TAIL && group + 1 == groups_of(c))
    matrices_of_group(c, m, b, group, 1);
  else
    matrices_of_group(c, m, b, group, VECTORS);
}

/* This worker's share of n items, which the first `workers` workers divide; it is empty for others. */
static void share_of(const Team *team, int64_t workers, int64_t n, int64_t *begin, int64_t *end) {
  *begin = n * min_i64(team->rank, workers) / workers;
  *end = n * min_i64(team->rank + 1, workers) / workers;
}

/* Blocks of an image, from the left to the right, then down. */
enum { BLOCKS_W = (OUT_W + BLOCK_W - 1) / BLOCK_W, BLOCKS = (OUT_H + BLOCK_H - 1) / BLOCK_H * BLOCKS_W };

static Block block_of(int64_t item) {
  Block b = {
      .image = item / BLOCKS, .row = item % BLOCKS / BLOCKS_W * BLOCK_H, .column = item % BLOCKS % BLOCKS_W * BLOCK_W};
  b.rows = min_i64(BLOCK_H, OUT_H - b.row);
  b.columns = min_i64(BLOCK_W, OUT_W - b.column);
  return b;
}

/* What the worker owns of a part: blocks, of each some groups. */
static void run_part(const Conv *c, matrices *m, int64_t block, int64_t last_block, int64_t group, int64_t last_group) {
  for (const int64_t first = block; block < last_block; block++) {
    Block b = block_of(block);
    b.is_first = block == first;
    make_strip(c, &b);
    for (int64_t g = group; g < last_group; g++) run_group(c, m, &b, g);
  }
}

static Conv part_of(const Conv *whole, int64_t part) {
  Conv c = *whole;
  const int64_t vectors = part * c.vectors, y = vectors * OUT_PLANE * Y_BYTES;
  c.x += part * IN_BLOCKS * IN_PLANE;
  c.w += vectors * LINES * MATRIX;
  c.y += y;
  if (c.start) c.start += vectors * LANES;
  if (RESIDUAL) c.residual += y;
  c.extra = extra_of(&whole->extra, vectors * LANES);
  return c;
}

/* All that the worker owns. */
static void run_share(const Team *team, const Conv *c, int64_t n, int64_t parts, int64_t workers) {
  const int64_t blocks = n * BLOCKS, groups = groups_of(c);
  int64_t begin, end;
  share_of(team, workers, BY_GROUPS ? parts * groups : blocks, &begin, &end);
  if (begin == end) return;
  matrices m;
  matrices_begin(&m, ROWS);
  for (int64_t part = BY_GROUPS ? begin / groups : 0; part < (BY_GROUPS ? ceil_div(end, groups) : parts); part++) {
    const Conv own = part_of(c, part);
    if (BY_GROUPS)
      run_part(&own, &m, 0, blocks, max_i64(begin - part * groups, 0), min_i64(end - part * groups, groups));
    else
      run_part(&own, &m, begin, end, 0, groups);
  }
  matrices_end(&m);
}
