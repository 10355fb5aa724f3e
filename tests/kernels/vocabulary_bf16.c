/* SPDX-License-Identifier: MIT */
/*
 * The vocabulary of products of bf16, and the product of a block of rows that is written in it, are compared with C in
 * double precision: rounding is exact, in each place; sums are as near as they promise, and have the same bits in each
 * row and column; what stands behind a row or a panel is not read.
 */
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "isa.h"
#include "panel_bf16.h"
#include "tap.h"

typedef uint16_t Packed[LANES][BF16_DEPTH];

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static float from_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static float widened(uint16_t half) { return from_bits((uint32_t)half << 16); }

/* The nearest bf16, of two the even one, found by comparing. */
static float nearest(float x) {
  if (!isfinite(x)) return x;
  float down = from_bits(bits_of(x) & 0xffff0000u), up = from_bits((bits_of(x) & 0xffff0000u) + 0x10000u);
  double beyond = isinf(up) ? copysign(0x1p128, (double)x) : (double)up; /* where the next number would be */
  double below = fabs((double)x - (double)down), above = fabs(beyond - (double)x);
  if (below != above) return below < above ? down : up;
  return bits_of(down) >> 16 & 1 ? up : down;
}

static uint32_t next_random(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }

/* In (-2, 2), of magnitudes from 2^-8 on. */
static float number(uint32_t *random) {
  uint32_t bits = next_random(random), exponent = 119 + next_random(random) % 8;
  return from_bits((bits & 0x80000000u) | exponent << 23 | (bits & 0x7fffffu));
}

static uint16_t half(uint32_t *random) { return (uint16_t)(bits_of(nearest(number(random))) >> 16); }

/* The rows of a tile, of which there may be one, times BF16_STEPS weights. */
static vbf16_tile dot(vbf16_tile tile, const float *p, const float *q, Packed *w) {
  const vbf16_rounded x = vbf16_round(p, q);
  for (int i = 0; i < BF16_STEPS; i++) tile = vbf16_dot(tile, vbf16_step(&x, i), vbf16_load(w[i]));
  return tile;
}

/* ---- rounding ---- */

/* A page between two pages that cannot be read. */
static char *guarded_page(size_t *bytes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *memory = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + page, page, PROT_READ | PROT_WRITE)) return NULL;
  *bytes = page;
  return memory + page;
}

static const float floats[] = {0,
                               -0.0f,
                               1,
                               0x1.01p0f,
                               0x1.03p0f,
                               -0x1.01p0f,
                               0x1.010002p0f,
                               0x1.00fffep0f,
                               0x1.fep0f,
                               0x1.ffp0f,
                               -0x1.ffp0f,
                               0x1.fffffep0f,
                               3.14159265f,
                               1e-30f,
                               -1e30f,
                               0x1p-126f,
                               0x1.fep127f,
                               0x1.fefffep127f,
                               0x1.fffffep127f,
                               INFINITY,
                               -INFINITY,
                               NAN};
enum { FLOATS = sizeof floats / sizeof *floats };

/* One element of a row times 1, in each place, of memory of exactly the elements' size. */
static void inputs_are_rounded_to_the_nearest(void) {
  size_t bytes = 0;
  char *page = guarded_page(&bytes);
  float *last = page ? (float *)(page + bytes) - BF16_ROWS * BF16_ROUNDED : NULL;
  int wrong = page == NULL;
  Packed w[BF16_STEPS];
  for (int k = 0; k < LANES * BF16_ROUNDED; k++)
    w[k / BF16_DEPTH / LANES][k / BF16_DEPTH % LANES][k % BF16_DEPTH] = 0x3f80; /* 1 */
  for (int i = 0; i < FLOATS && page; i++)
    for (int place = 0; place < BF16_ROWS * BF16_ROUNDED; place++) {
      float got[BF16_ROWS][LANES];
      for (int k = 0; k < BF16_ROWS * BF16_ROUNDED; k++) last[k] = k == place ? floats[i] : 0;
      vbf16_tile tile = dot(vbf16_tile_of_rows(vzero(), vzero()), last, last + (BF16_ROWS - 1) * BF16_ROUNDED, w);
      for (int m = 0; m < BF16_ROWS; m++) vstore(got[m], vbf16_tile_row(tile, m));
      for (int m = 0; m < BF16_ROWS; m++)
        for (int lane = 0; lane < LANES; lane++) {
          float want = m == place / BF16_ROUNDED ? nearest(floats[i]) : 0;
          wrong += isnan(want) ? !isnan(got[m][lane]) : got[m][lane] != want;
        }
    }
  tap_case(wrong == 0, "inputs_are_rounded_to_the_nearest", "%d wrong", wrong);
}

/* ---- sums ---- */

enum { TURNS = 64 / BF16_ROUNDED, DEPTH = TURNS * BF16_ROUNDED, TRIALS = 200 };

typedef struct Case {
  float rows[BF16_ROWS][DEPTH], start[BF16_ROWS][LANES];
  Packed weights[DEPTH / BF16_DEPTH];
} Case;

static Case random_case(uint32_t *random) {
  Case made;
  for (int i = 0; i < BF16_ROWS * DEPTH; i++) made.rows[i / DEPTH][i % DEPTH] = number(random);
  for (int i = 0; i < BF16_ROWS * LANES; i++) made.start[i / LANES][i % LANES] = number(random);
  for (int i = 0; i < DEPTH * LANES; i++)
    made.weights[i / LANES / BF16_DEPTH][i / BF16_DEPTH % LANES][i % BF16_DEPTH] = half(random);
  return made;
}

static void run_case(Case *it, float got[BF16_ROWS][LANES]) {
  enum { LAST = BF16_ROWS - 1 };
  vbf16_tile tile = vbf16_tile_of_rows(vload(it->start[0]), vload(it->start[LAST]));
  for (int k = 0; k < DEPTH; k += BF16_ROUNDED)
    tile = dot(tile, it->rows[0] + k, it->rows[LAST] + k, it->weights + k / BF16_DEPTH);
  for (int m = 0; m < BF16_ROWS; m++) vstore(got[m], vbf16_tile_row(tile, m));
}

/* Each of two sums for two products errs by one part in 2^23 of magnitudes that are at most all of these together. */
static bool is_near(const Case *it, int m, int lane, float got) {
  double exact = (double)it->start[m][lane], magnitude = fabs(exact);
  for (int k = 0; k < DEPTH; k++) {
    double product =
        (double)nearest(it->rows[m][k]) * (double)widened(it->weights[k / BF16_DEPTH][lane][k % BF16_DEPTH]);
    exact += product;
    magnitude += fabs(product);
  }
  return fabs((double)got - exact) <= DEPTH * 0x1p-23 * magnitude;
}

static void sums_are_near_those_of_doubles(void) {
  int wrong = 0;
  uint32_t random = 1;
  for (int trial = 0; trial < TRIALS; trial++) {
    Case it = random_case(&random);
    float got[BF16_ROWS][LANES];
    run_case(&it, got);
    for (int i = 0; i < BF16_ROWS * LANES; i++) wrong += !is_near(&it, i / LANES, i % LANES, got[i / LANES][i % LANES]);
  }
  tap_case(wrong == 0, "sums_are_near_those_of_doubles", "%d of %d wrong", wrong, TRIALS * BF16_ROWS * LANES);
}

/* Row 0 and column 0 are computed again in every other place, among others of their own. */
static void a_sum_has_the_same_bits_in_each_place(void) {
  int wrong = 0;
  uint32_t random = 2;
  for (int trial = 0; trial < TRIALS; trial++) {
    Case first = random_case(&random), other = random_case(&random);
    float due[BF16_ROWS][LANES], got[BF16_ROWS][LANES];
    int m = trial % BF16_ROWS, lane = trial / BF16_ROWS % LANES;
    memcpy(other.rows[m], first.rows[0], sizeof first.rows[0]);
    for (int i = 0; i < DEPTH / BF16_DEPTH; i++)
      memcpy(other.weights[i][lane], first.weights[i][0], sizeof first.weights[i][0]);
    other.start[m][lane] = first.start[0][0];
    run_case(&first, due);
    run_case(&other, got);
    wrong += bits_of(got[m][lane]) != bits_of(due[0][0]);
  }
  tap_case(wrong == 0, "a_sum_has_the_same_bits_in_each_place", "%d of %d wrong", wrong, TRIALS);
}

/* ---- blocks of rows ---- */

enum { MOST_DEPTH = BF16_ROUNDED + 7, BLOCK_VECTORS = 2, BLOCK_WIDTH = BLOCK_VECTORS * LANES };

typedef struct BlockCase {
  const float *a;
  int64_t a_row, a_depth, depth;
  const uint16_t *panel;
} BlockCase;

static int wrong_sums(const BlockCase *it, const PanelRow *sums, int rows) {
  int wrong = 0;
  for (int m = 0; m < rows; m++)
    for (int column = 0; column < BLOCK_WIDTH; column++) {
      double exact = 1, magnitude = 1;
      float got[LANES];
      vstore(got, sums[m][column / LANES]);
      for (int64_t k = 0; k < it->depth; k++) {
        int64_t at = (k / BF16_DEPTH * BLOCK_WIDTH + column) * BF16_DEPTH + k % BF16_DEPTH;
        double product = (double)nearest(it->a[m * it->a_row + k * it->a_depth]) * (double)widened(it->panel[at]);
        exact += product;
        magnitude += fabs(product);
      }
      wrong += fabs((double)got[column % LANES] - exact) > (MOST_DEPTH + 1) * 0x1p-23 * magnitude;
    }
  return wrong;
}

/* One function for each number of rows, which is a constant to bf16_multiply(). */
static void multiply_rows(const BlockCase *it, PanelRow *sums, int rows) {
  if (rows == 1) bf16_multiply(sums, 1, BLOCK_VECTORS, it->a, it->a_row, it->a_depth, it->panel, it->depth);
  if (rows == 2) bf16_multiply(sums, 2, BLOCK_VECTORS, it->a, it->a_row, it->a_depth, it->panel, it->depth);
  if (rows == 3) bf16_multiply(sums, 3, BLOCK_VECTORS, it->a, it->a_row, it->a_depth, it->panel, it->depth);
}

/* The rows end with a page, and the panel with another, whose last steps are zeros. by_columns: a row's elements stand
 * as far from each other as there are rows. */
static int wrong_in_block(float *a_end, uint16_t *panel_end, int rows, int64_t depth, bool by_columns,
                          uint32_t *random) {
  int64_t whole = (depth + BF16_DEPTH - 1) / BF16_DEPTH * BF16_DEPTH;
  float *a = a_end - rows * depth;
  uint16_t *panel = panel_end - whole * BLOCK_WIDTH;
  PanelRow sums[PANEL_ROWS];
  for (int64_t i = 0; i < rows * depth; i++) a[i] = number(random);
  for (int64_t i = 0; i < whole * BLOCK_WIDTH; i++)
    panel[i] = i / BF16_DEPTH / BLOCK_WIDTH * BF16_DEPTH + i % BF16_DEPTH < depth ? half(random) : 0;
  for (int i = 0; i < rows * BLOCK_VECTORS; i++) sums[i / BLOCK_VECTORS][i % BLOCK_VECTORS] = vset(1);
  const BlockCase it = {a, by_columns ? 1 : depth, by_columns ? rows : 1, depth, panel};
  multiply_rows(&it, sums, rows);
  return wrong_sums(&it, sums, rows);
}

static void blocks_of_rows_read_nothing_beyond(void) {
  size_t bytes = 0;
  char *rows_page = guarded_page(&bytes), *panel_page = guarded_page(&bytes);
  int wrong = !rows_page || !panel_page;
  uint32_t random = 3;
  for (int rows = 1; rows <= 3 && !wrong; rows++)
    for (int64_t depth = 1; depth <= MOST_DEPTH; depth++)
      for (int by_columns = 0; by_columns < 2; by_columns++)
        wrong += wrong_in_block((float *)(rows_page + bytes), (uint16_t *)(panel_page + bytes), rows, depth, by_columns,
                                &random);
  tap_case(wrong == 0, "blocks_of_rows_read_nothing_beyond", "%d wrong", wrong);
}

int main(void) {
  skip_unless_isa_runs();
  inputs_are_rounded_to_the_nearest();
  sums_are_near_those_of_doubles();
  a_sum_has_the_same_bits_in_each_place();
  blocks_of_rows_read_nothing_beyond();
  return tap_end();
}
