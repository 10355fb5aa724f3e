/* SPDX-License-Identifier: MIT */
/*
 * Convolution of quantised tensors, bytes blocked by channels, [N][ceil(C / block)][H][W][block]:
 *   sum[n, k, oh, ow] = bias[k] + sum over c, r, s of (x[n, c, ih, iw] - zero) w[k, c, r, s],
 *   y = saturate(round(scale[k] * sum) + y_zero),
 * or with FLOATS, in f32: y = epilogue((x_scale * scale[k]) * sum + bias[k] + residual),
 * as templates/conv_direct_int8.c computes it, bit for bit, for CPUs that multiply matrices of bytes in registers
 * (simd/matrices.h).
 *
 * Output is divided into blocks of BLOCK_H x BLOCK_W pixels of an image. What a block reads is copied to a strip, in
 * which a pixel's channels are side by side and the padding is x's zero point:
 *
 *   strip     [phase of rows][of columns][row][STRIP_W][FOLD][channel block][block]
 *   weights   [group][line of a window][vector of the group][LINE / DOT][LANES][DOT], s8, zero where a line has more
 *             than the window
 *
 * A row of a window is side by side there, or else each of its taps is, and a matrix is loaded from where its first
 * window begins: ROWS pixels of the output, whose windows are as far from each other as their first taps. A pair is two
 * matrices, whose sums of a group, two vectors of output channels, stay in registers over the whole window. With ACROSS
 * matrices go on from a row to the next one, over the pixels of the strip that begin no window of the output; what they
 * compute there is not stored.
 *
 * With FOLD, a pixel of the strip has so many rows of the input, beginning STRIDE_H rows below the last one's: where
 * there are few channels, a line has more of the window. With PHASES, rows and columns that are a stride apart are side
 * by side in the strip, the others behind them.
 *
 * Each worker owns blocks, or groups (BY_GROUPS), and then makes the strips of all blocks for itself.
 */
#include "kernel.h"
#include "requantise.h"
#include "simd/int8.h"
#include "simd/matrices.h"
#include "simd/simd.h"

/* R.
 * legal: 1..4096 */
enum { WINDOW_H = 3 };
/* S.
 * legal: 1..4096 */
enum { WINDOW_W = 3 };
/* legal: 1..4096 */
enum { STRIDE_H = 1 };
/* legal: 1..4096 */
enum { STRIDE_W = 1 };
/* legal: 1..65536 */
enum { DILATION_H = 1 };
/* legal: 1..65536 */
enum { DILATION_W = 1 };
/* legal: 1..268435456 */
enum { IN_H = 14 };
/* legal: 1..268435456 */
enum { IN_W = 14 };
/* legal: 1..268435456 */
enum { OUT_H = 14 };
/* legal: 1..268435456 */
enum { OUT_W = 14 };
/* Rows of padding above the input.
 * legal: 0..65536 */
enum { PAD_TOP = 1 };
/* legal: 0..65536 */
enum { PAD_LEFT = 1 };
/* The channel block of x.
 * legal: 4..16 */
enum { IN_BLOCK = 16 };
/* How many x has.
 * legal: 1..16777216 */
enum { IN_BLOCKS = 4 };
/* Rows of the input in a pixel of the strip: 1, STRIDE_H or WINDOW_H.
 * legal: 1..4096 */
enum { FOLD = 1 };
/* 1: with strides. FOLD is 1, then.
 * legal: 0 1 */
enum { PHASES = 0 };
/* legal: 1..268435456 */
enum { BLOCK_H = 14 };
/* legal: 1..268435456 */
enum { BLOCK_W = 14 };
/* Pixels of a matrix.
 * legal: 1..16 */
enum { ROWS = 14 };
/* 1: matrices go on from a row to the next one: where strides of the strip are 1.
 * legal: 0 1 */
enum { ACROSS = 0 };
/* 1: the last group has one vector.
 * legal: 0 1 */
enum { OC_TAIL = 0 };
/* 1: workers own groups of output channels; 0: blocks of pixels.
 * legal: 0 1 */
enum { BY_GROUPS = 0 };
/* x is of i8, else of u8.
 * legal: 0 1 */
enum { SIGNED_X = 0 };
/* y and the residual are of i8, else of u8.
 * legal: 0 1 */
enum { SIGNED_Y = 0 };
/* 1: y is bounded before it is rounded: what it rounds to may exceed i32.
 * legal: 0 1 */
enum { BOUNDS = 0 };
/* What becomes of y: nothing; or it is taken to another scale, by factors or divided (requantise.h).
 * legal: 0..2 */
enum { STEP = 0 };
/* 1: STEP, or with FLOATS the kernel, adds residual, of y's shape.
 * legal: 0 1 */
enum { RESIDUAL = 0 };
/* 1: y and the residual are of f32, and x's scale and zero point are known in the run only.
 * legal: 0 1 */
enum { FLOATS = 0 };
/* 1: y has a bias, of f32.
 * legal: 0 1 */
enum { BIAS = 0 };

enum { LINE = MATRIX_BYTES, VECTORS = 2, MATRIX = MATRIX_ROWS * LINE };
enum { OUT_PLANE = OUT_H * OUT_W * LANES, IN_PLANE = IN_H * IN_W * IN_BLOCK };
enum { SIZE = FLOATS ? 4 : 1 }; /* bytes of an element of y */
/* A pixel of the strip, in bytes: FOLD rows of CHANNELS. */
enum { CHANNELS = IN_BLOCKS * IN_BLOCK, PIXEL = FOLD * CHANNELS };
/* Rows and columns of the input from one of the strip to the next; of the strip from one of the output to the next. */
enum { IN_STEP_H = FOLD > 1 || PHASES ? STRIDE_H : 1, IN_STEP_W = PHASES ? STRIDE_W : 1 };
enum { STEP_H = STRIDE_H / IN_STEP_H, STEP_W = STRIDE_W / IN_STEP_W };
/* A window's rows, of FOLD rows each, and from one to the next; what it reaches over, without phases. */
enum { WINDOW_ROWS = (WINDOW_H + FOLD - 1) / FOLD, ROW_STEP = FOLD > 1 ? FOLD / STRIDE_H : DILATION_H };
enum { REACH_H = (WINDOW_ROWS - 1) * ROW_STEP, REACH_W = (WINDOW_W - 1) * DILATION_W };
/* The strip, and each of its phases, in pixels and bytes. */
enum { STRIP_W = (BLOCK_W - 1) * STEP_W + REACH_W / IN_STEP_W + 1, STRIP_ROW = STRIP_W * PIXEL };
enum { STRIP_H = (BLOCK_H - 1) * STEP_H + REACH_H / (PHASES ? STRIDE_H : 1) + 1, PHASE = STRIP_H * STRIP_ROW };
/* The first ones: a window may have no other. */
enum { PHASES_H = PHASES && STRIDE_H <= REACH_H ? STRIDE_H : PHASES ? REACH_H + 1 : 1 };
enum { PHASES_W = PHASES && STRIDE_W <= REACH_W ? STRIDE_W : PHASES ? REACH_W + 1 : 1 };
/* The pieces of a window's row that are not side by side, and the lines of each. */
enum { APART = DILATION_W > 1 || IN_STEP_W > 1, PIECES = APART ? WINDOW_W : 1 };
enum { PIECE_LINES = ((APART ? 1 : WINDOW_W) * PIXEL + LINE - 1) / LINE };
enum { LINES = WINDOW_ROWS * PIECES * PIECE_LINES };
/* Pixels of a row that matrices go over: of whole matrices, or all of the strip. */
enum { WIDTH = ACROSS ? STRIP_W : (BLOCK_W + ROWS - 1) / ROWS * ROWS };

/* hook: with FLOATS maps an element of the result; x and the result are one vector of channels. */
static inline vec epilogue(vec x) { return x; }

typedef struct Conv {
  const uint8_t *x, *residual;
  const int8_t *w;
  const int32_t *start;
  const float *scale, *bias;
  uint8_t *y;
  Finish finish;
  float x_scale;  /* with FLOATS */
  uint8_t *strip; /* this worker's working memory */
  int32_t *sums;
  uint8_t zero; /* of x */
  int64_t groups;
  int64_t x_image, residual_image, y_image; /* elements from one image to the next */
} Conv;

/* A part of an image's output. */
typedef struct Block {
  int64_t image, row, column; /* of its first pixel */
  int64_t rows, columns;
  bool is_first; /* of this worker */
} Block;

/* ---- strips ---- */

static void fill(const Conv *c, uint8_t *out, int64_t pixels) {
  for (int64_t p = 0; p < pixels; p++, out += PIXEL) __builtin_memset(out, c->zero, CHANNELS);
}

/* A line of each pixel after the other: few blocks of x are read at a time. */
SIMD_FUNCTION void copy_pixels(uint8_t *out, const uint8_t *in, int64_t pixels) {
  enum { TOGETHER = LINE / IN_BLOCK };
  for (int64_t b = 0; b < IN_BLOCKS; b += TOGETHER, out += TOGETHER * IN_BLOCK) {
    const int64_t blocks = min_i64(TOGETHER, IN_BLOCKS - b);
    for (int64_t p = 0; p < pixels; p++) {
      uint8_t *to = out + p * PIXEL;
      const uint8_t *from = in + b * IN_PLANE + p * IN_STEP_W * IN_BLOCK;
      if (blocks == TOGETHER) {
#pragma clang loop unroll(full)
        for (int64_t i = 0; i < TOGETHER; i++) __builtin_memcpy(to + i * IN_BLOCK, from + i * IN_PLANE, IN_BLOCK);
      } else {
        for (int64_t i = 0; i < blocks; i++) __builtin_memcpy(to + i * IN_BLOCK, from + i * IN_PLANE, IN_BLOCK);
      }
    }
  }
}

/* Of an image, from a row and a column on. */
static void make_row(const Conv *c, uint8_t *out, const uint8_t *x, int64_t row, int64_t column, int64_t pixels) {
  if (row < 0 || row >= IN_H) {
    fill(c, out, pixels);
    return;
  }
  const int64_t begin = min_i64(ceil_div(max_i64(-column, 0), IN_STEP_W), pixels);
  const int64_t end = min_i64(max_i64(ceil_div(max_i64(IN_W - column, 0), IN_STEP_W), begin), pixels);
  fill(c, out, begin);
  copy_pixels(out + begin * PIXEL, x + (row * IN_W + column + begin * IN_STEP_W) * IN_BLOCK, end - begin);
  fill(c, out + end * PIXEL, pixels - end);
}

/* The rows and columns of a phase. */
static void make_phase(const Conv *c, const Block *b, int64_t phase_h, int64_t phase_w) {
  const int64_t rows = STRIP_H - (BLOCK_H - b->rows) * STEP_H, pixels = STRIP_W - (BLOCK_W - b->columns) * STEP_W;
  const int64_t first = b->row * STRIDE_H - PAD_TOP + phase_h, column = b->column * STRIDE_W - PAD_LEFT + phase_w;
  const uint8_t *x = c->x + b->image * c->x_image;
  uint8_t *out = c->strip + (phase_h * PHASES_W + phase_w) * PHASE;
  for (int64_t row = 0; row < rows; row++, out += STRIP_ROW)
    for (int64_t f = 0; f < FOLD; f++) make_row(c, out + f * CHANNELS, x, first + row * IN_STEP_H + f, column, pixels);
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
                            const int8_t *w, const int32_t *start, int vectors, const int8_t *ahead,
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
      matrices_dot(m, 0, 4, 6, SIGNED_X);
      if (vectors > 1) matrices_load(m, 7, w + MATRIX, LINE);
      if (vectors > 1) matrices_dot(m, 1, 4, 7, SIGNED_X);
      if (count > 1) matrices_load(m, 5, second + at + k * LINE, STEP_W * PIXEL);
      if (count > 1) matrices_dot(m, 2, 5, 6, SIGNED_X);
      if (count > 1 && vectors > 1) matrices_dot(m, 3, 5, 7, SIGNED_X);
      for (int64_t i = 0; i < ahead_lines; i++, ahead += LINE) prefetch_later(ahead);
    }
  }
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) {
    matrices_store(m, v, c->sums + v * MATRIX_ROWS * LANES, LINE);
    if (count > 1) matrices_store(m, 2 + v, c->sums + (VECTORS + v) * MATRIX_ROWS * LANES, LINE);
  }
}

/* Where a matrix's results go in a vector of output channels. */
typedef struct Target {
  const float *scale, *bias;
  const uint8_t *residual;
  uint8_t *y;
} Target;

static Target target_of(const Conv *c, int64_t image, int64_t pixel, int64_t vector) {
  int64_t at = vector * OUT_PLANE + pixel * LANES;
  return (Target){.scale = c->scale + vector * LANES,
                  .bias = BIAS ? c->bias + vector * LANES : NULL,
                  .residual = RESIDUAL ? c->residual + (image * c->residual_image + at) * SIZE : NULL,
                  .y = c->y + (image * c->y_image + at) * SIZE};
}

SIMD_FUNCTION void end_in_floats(const Conv *c, const int32_t *sums, int64_t row, int count, const Target *t) {
  const vec scale = vmul(vset(c->x_scale), vload(t->scale));
#pragma clang loop unroll(full)
  for (int i = 0; i < count; i++) {
    const int64_t at = (row + i) * LANES * SIZE;
    vec y = vmul(vint_to_float(vint_load(sums + (row + i) * LANES)), scale);
    if (BIAS) y = vadd(y, vload(t->bias));
    if (RESIDUAL) y = vadd(y, vload((const float *)(t->residual + at)));
    vstore((float *)(t->y + at), epilogue(y));
  }
}

SIMD_FUNCTION void end_rows(const Conv *c, const int32_t *sums, int64_t row, int count, const Target *t,
                            const Finish *f) {
  if (FLOATS) {
    end_in_floats(c, sums, row, count, t);
    return;
  }
  vec scale = vload(t->scale), scaled[4];
#pragma clang loop unroll(full)
  for (int i = 0; i < count; i++) scaled[i] = vmul(vint_to_float(vint_load(sums + (row + i) * LANES)), scale);
  requantise(scaled, count, RESIDUAL ? t->residual + row * LANES : NULL, t->y + row * LANES, STEP, BOUNDS, SIGNED_Y, f);
}

/* `count` rows. */
SIMD_FUNCTION void end_sums(const Conv *c, const int32_t *sums, int64_t count, const Target *t, const Finish *f) {
  int64_t row = 0;
  for (; row + 4 <= count; row += 4) end_rows(c, sums, row, 4, t, f);
  for (; row < count; row++) end_rows(c, sums, row, 1, t, f);
}

/* The matrix's pixels that the block has, from pixel `at` of its rows on. */
SIMD_FUNCTION void end_matrix(const Conv *c, const Block *b, const int32_t *sums, int64_t at, int64_t vector,
                              const Finish *f) {
  int64_t row = at / WIDTH, column = at % WIDTH;
  for (int64_t m = 0; m < ROWS && row < b->rows; m += WIDTH - column, column = 0, row++) {
    const int64_t count = min_i64(ROWS - m, b->columns - column);
    const Target target = target_of(c, b->image, (b->row + row) * OUT_W + b->column + column, vector);
    end_sums(c, sums + m * LANES, count, &target, f);
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
  const int8_t *w;
  const int32_t *start;
  int64_t vector; /* the first one */
} Group;

/* The product of the weights' sums with the zero point that the run tells. */
SIMD_FUNCTION void starts_in_floats(const Conv *c, int64_t vector, int vectors, int32_t *start) {
  const int zero = SIGNED_X ? (int8_t)c->zero : c->zero;
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++)
    vint_store(start + v * LANES, vint_mul(vint_load(c->start + (vector + v) * LANES), vint_set(-zero)));
}

/* Matrices i and, with a count of 2, i + 1 of a block. ahead: ahead_lines for each line of the window. */
SIMD_FUNCTION void run_matrices(const Conv *c, matrices *m, const Block *b, int64_t i, int count, const Group *g,
                                int vectors, const int8_t *ahead, int64_t ahead_lines) {
  const Finish f = c->finish; /* bytes that are stored may be anything in memory */
  const int64_t at = i * ROWS;
  multiply(c, m, window_of(c, at), window_of(c, at + ROWS), count, g->w, g->start, vectors, ahead, ahead_lines);
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; v++) {
    end_matrix(c, b, c->sums + v * MATRIX_ROWS * LANES, at, g->vector + v, &f);
    if (count > 1) end_matrix(c, b, c->sums + (VECTORS + v) * MATRIX_ROWS * LANES, at + ROWS, g->vector + v, &f);
  }
}

/* While weights come from memory, each pair prefetches a part of the next group's. */
SIMD_FUNCTION void matrices_of_group(const Conv *c, matrices *m, const Block *b, int64_t group, int vectors) {
  const int64_t count = matrices_of(b), vector = group * VECTORS;
  const int64_t ahead_lines = b->is_first ? ceil_div(VECTORS * MATRIX_ROWS, ceil_div(count, 2)) : 0;
  const int8_t *ahead = c->w + (vector + VECTORS) * LINES * MATRIX;
  int32_t start[VECTORS * LANES];
  if (FLOATS) starts_in_floats(c, vector, vectors, start);
  const Group g = {c->w + vector * LINES * MATRIX, FLOATS ? start : c->start + vector * LANES, vector};
  int64_t i = 0;
  for (; i + 2 <= count; i += 2, ahead += LINES * ahead_lines * LINE)
    run_matrices(c, m, b, i, 2, &g, vectors, ahead, ahead_lines);
  if (i < count) run_matrices(c, m, b, i, 1, &g, vectors, ahead, ahead_lines);
}

static void run_group(const Conv *c, matrices *m, const Block *b, int64_t group) {
  if (OC_TAIL && group + 1 == c->groups)
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

/* x: blocked by IN_BLOCK, residual, y: by LANES; lanes past the last channel may have any value, and multiply weights
 * of zero. Images are x_image, residual_image and y_image elements apart. start, scale: whole blocks. x_zero: as a byte
 * of x. finish: the fields of Finish, in order. With FLOATS bias is as scale, or NULL; start has the sums of weights;
 * x_scale and x_point, its zero point, are of one element, which NULL says to be 0. scratch: a slot for each of `slots`
 * workers, `slot` bytes apart: the strip, of strip_bytes bytes, and sums. Workers past `slots` have nothing to do. */
static void conv_matrices_int8(const Team *team, const uint8_t *x, const int8_t *w, const int32_t *start,
                               const float *scale, const float *bias, const float *x_scale, const uint8_t *x_point,
                               const uint8_t *residual, uint8_t *y, const float *finish, uint8_t *scratch, int64_t n,
                               int64_t x_image, int64_t residual_image, int64_t y_image, int64_t x_zero,
                               int64_t kernels, int64_t strip_bytes, int64_t slots, int64_t slot) {
  int64_t workers = min_i64(slots, team->size), rank = min_i64(team->rank, slots - 1);
  uint8_t *own = scratch + rank * slot;
  Conv c = {.x = x,
            .residual = residual,
            .w = w,
            .start = start,
            .scale = scale,
            .bias = bias,
            .y = y,
            .strip = own,
            .sums = (int32_t *)(own + strip_bytes),
            .zero = (uint8_t)x_zero,
            .groups = ceil_div(kernels, VECTORS * LANES),
            .x_image = x_image,
            .residual_image = residual_image,
            .y_image = y_image};
  if (!FLOATS) c.finish = finish_of(finish);
  if (FLOATS) c.x_scale = *x_scale;
  if (FLOATS) c.zero = x_point ? *x_point : 0;
  int64_t block = 0, last_block = n * BLOCKS, group = 0, last_group = c.groups;
  share_of(team, workers, BY_GROUPS ? c.groups : n * BLOCKS, BY_GROUPS ? &group : &block,
           BY_GROUPS ? &last_group : &last_block);
  if (block == last_block || group == last_group) return;
  matrices m;
  matrices_begin(&m, ROWS);
  for (const int64_t first = block; block < last_block; block++) {
    Block b = block_of(block);
    b.is_first = block == first;
    make_strip(&c, &b);
    for (int64_t g = group; g < last_group; g++) run_group(&c, &m, &b, g);
  }
  matrices_end(&m);
}
