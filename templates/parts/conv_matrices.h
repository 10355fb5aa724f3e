/* SPDX-License-Identifier: MIT */
/* clang-format off: the table */
/*
 * A part of conv_matrices_int8.c and conv_matrices_bf16.c: convolution by matrices in registers (simd/matrices.h),
 * whose elements have ELEMENT bytes.
 *
 * Output is divided into blocks of BLOCK_H x BLOCK_W pixels of an image. What a block reads is copied to a strip, in
 * which a pixel's channels are side by side:
 *
 *   strip     [phase of rows][of columns][row][STRIP_W][FOLD][channel block][block]
 *   weights   [group][line of a window][vector of the group][MATRIX_ROWS][LANES][4 bytes], zero where a line has more
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
 * Each worker owns blocks, or groups (BY_GROUPS), and then makes the strips of all blocks for itself. Parts of the
 * channels are convolutions of their own, one after the other: IN_BLOCKS blocks of x and as many vectors of y each.
 *
 * The template says before it what an element of x and a sum are (X, Sum), how many bytes an element of y has
 * (Y_BYTES), and what else it keeps (Extra). Between this and conv_matrices_order.h, which runs all, it says
 *
 *   fill(c, out, pixels)                     what pixels of the strip are that are padding
 *   copy_pixels(c, out, in, pixels)          brings pixels of the input, IN_STEP_W apart, to the strip
 *   add_product(m, sums, pixels, weights)    adds the product of two matrices
 *   starts_of(c, vector, vectors, own)       where a group's sums begin: in c->start, or in `own`, which has room
 *   end_rows(c, sums, row, count, t)         what `count` rows of sums become, from the target's `row` on
 *   extra_of(extra, channel)                 of a part, whose output begins with the channel
 */
/* clang-format on */

/* The channel block of x.
 * legal: 1..16 */
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
/* 1: the kernel adds residual, of y's shape.
 * legal: 0 1 */
enum { RESIDUAL = 0 };
/* 1: y has a bias, of f32.
 * legal: 0 1 */
enum { BIAS = 0 };

/* hook: maps an element of a result in f32; x and the result are one vector of channels. */
static inline vec epilogue(vec x) { return x; }

enum { LINE = MATRIX_BYTES, VECTORS = 2, MATRIX = MATRIX_ROWS * LINE };
enum { OUT_PLANE = OUT_H * OUT_W * LANES, IN_PLANE = IN_H * IN_W * IN_BLOCK };
/* A pixel of the strip, in bytes: FOLD rows of CHANNELS. */
enum { CHANNELS = IN_BLOCKS * IN_BLOCK * ELEMENT, PIXEL = FOLD * CHANNELS };
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
/* Bytes that a piece's lines have more than it: zeros, where no pixel stands. */
enum { BEHIND = PIECE_LINES * LINE - (APART ? 1 : WINDOW_W) * PIXEL };
enum { LINES = WINDOW_ROWS * PIECES * PIECE_LINES };
/* Pixels of a row that matrices go over: of whole matrices, or all of the strip. */
enum { WIDTH = ACROSS ? STRIP_W : (BLOCK_W + ROWS - 1) / ROWS * ROWS };

typedef struct Conv {
  const X *x;
  const uint8_t *w;
  const Sum *start; /* what sums of each output channel begin with */
  const uint8_t *residual;
  uint8_t *y;
  uint8_t *strip; /* this worker's working memory */
  Sum *sums;
  int64_t vectors;                          /* of output channels, of a part */
  int64_t x_image, residual_image, y_image; /* elements from one image to the next */
  Extra extra;                              /* the template's own */
} Conv;

/* A part of an image's output. */
typedef struct Block {
  int64_t image, row, column; /* of its first pixel */
  int64_t rows, columns;
  bool is_first; /* of this worker */
} Block;

/* Where a matrix's results go in a vector of output channels. */
typedef struct Target {
  int64_t channel; /* the first one */
  const uint8_t *residual;
  uint8_t *y;
} Target;
