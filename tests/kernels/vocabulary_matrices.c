/* SPDX-License-Identifier: MIT */
/*
 * The vocabulary of matrices in registers is compared with plain C: products of bytes in 64 bits, at random and at the
 * extremes, of bf16 in double precision, by each choice of registers and for each number of rows; loads and stores next
 * to guard pages.
 */
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "isa.h"
#include "simd/matrices.h"
#include "tap.h"

enum { DEPTH = MATRIX_BYTES, PAIRS = MATRIX_BYTES / 4, HALVES = MATRIX_BYTES / 2 };

typedef struct Bytes {
  uint8_t x[MATRIX_ROWS][DEPTH];
  int8_t w[PAIRS][MATRIX_COLUMNS][4];
  int32_t sums[MATRIX_ROWS][MATRIX_COLUMNS];
} Bytes;

static uint32_t next_random(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }

static int32_t wanted(const Bytes *b, int row, int column, bool is_signed) {
  int64_t sum = b->sums[row][column];
  for (int k = 0; k < DEPTH; k++) {
    int x = is_signed ? (int8_t)b->x[row][k] : b->x[row][k];
    sum += x * b->w[k / 4][column][k % 4];
  }
  return (int32_t)(uint32_t)(uint64_t)sum;
}

/* extreme: the least and the greatest only. */
static void fill(Bytes *b, uint32_t *random, bool extreme, bool is_signed) {
  uint8_t *x = &b->x[0][0];
  int8_t *w = &b->w[0][0][0];
  for (size_t i = 0; i < sizeof b->x; i++) {
    uint32_t r = next_random(random) >> 24;
    x[i] = (uint8_t)(extreme ? (r & 1 ? (is_signed ? 0x7f : 0xff) : (is_signed ? 0x80 : 0)) : r);
  }
  for (size_t i = 0; i < sizeof b->w; i++) {
    uint32_t r = next_random(random) >> 24;
    w[i] = (int8_t)(extreme ? (r & 1 ? 127 : -128) : (int)r - 128);
  }
  for (size_t i = 0; i < sizeof b->sums / 4; i++) (&b->sums[0][0])[i] = (int32_t)next_random(random);
}

SIMD_FUNCTION void multiply(Bytes *b, int rows, int sums, int x, int w, bool is_signed) {
  matrices m;
  matrices_begin(&m, rows);
  matrices_load(&m, sums, b->sums, sizeof b->sums[0]);
  matrices_load(&m, x, b->x, sizeof b->x[0]);
  matrices_load(&m, w, b->w, sizeof b->w[0]);
  if (is_signed)
    matrices_dot(&m, sums, x, w, true);
  else
    matrices_dot(&m, sums, x, w, false);
  matrices_store(&m, sums, b->sums, sizeof b->sums[0]);
  matrices_end(&m);
}

/* Every register has its turn: `turn` of 16. */
static void multiply_in(Bytes *b, int rows, int turn, bool is_signed) {
#define TURN(i)                                                                                                        \
  if (turn == (i)) multiply(b, rows, (i) % 4, 4 + (i) / 4 % 2, 6 + (i) / 8 % 2, is_signed)
#define FOUR_TURNS(i)                                                                                                  \
  TURN(i);                                                                                                             \
  TURN((i) + 1);                                                                                                       \
  TURN((i) + 2);                                                                                                       \
  TURN((i) + 3)
  FOUR_TURNS(0);
  FOUR_TURNS(4);
  FOUR_TURNS(8);
  FOUR_TURNS(12);
#undef FOUR_TURNS
#undef TURN
}

/* Rows that are not in use keep what they are. */
static void products_of_bytes_are_exact(void) {
  int wrong = 0;
  uint32_t random = 1;
  for (int turn = 0; turn < 16 * 16 * 4; turn++) {
    const int rows = 1 + turn / 16 % MATRIX_ROWS;
    const bool extreme = turn / 256 % 2, is_signed = turn / 512;
    Bytes b, after;
    fill(&b, &random, extreme, is_signed);
    after = b;
    multiply_in(&after, rows, turn % 16, is_signed);
    for (int row = 0; row < MATRIX_ROWS; row++)
      for (int column = 0; column < MATRIX_COLUMNS; column++) {
        int32_t want = row < rows ? wanted(&b, row, column, is_signed) : b.sums[row][column];
        wrong += after.sums[row][column] != want;
      }
  }
  tap_case(wrong == 0, "products_of_bytes_are_exact", "%d wrong", wrong);
}

static void two_products_add_up(void) {
  uint32_t random = 2;
  int wrong = 0;
  Bytes a, b;
  matrices m;
  fill(&a, &random, false, false);
  fill(&b, &random, false, false);
  memset(a.sums, 0, sizeof a.sums);
  matrices_begin(&m, 9);
  matrices_zero(&m, 3);
  matrices_load(&m, 4, a.x, sizeof a.x[0]);
  matrices_load(&m, 5, b.x, sizeof b.x[0]);
  matrices_load(&m, 6, a.w, sizeof a.w[0]);
  matrices_load(&m, 7, b.w, sizeof b.w[0]);
  matrices_dot(&m, 3, 4, 6, false);
  matrices_dot(&m, 3, 5, 7, false);
  int32_t sums[MATRIX_ROWS][2 * MATRIX_COLUMNS]; /* in every other half of a row */
  matrices_store(&m, 3, sums, sizeof sums[0]);
  matrices_end(&m);
  for (int row = 0; row < 9; row++)
    for (int column = 0; column < MATRIX_COLUMNS; column++) {
      b.sums[row][column] = wanted(&a, row, column, false);
      wrong += sums[row][column] != wanted(&b, row, column, false);
    }
  tap_case(wrong == 0, "two_products_add_up", "%d wrong", wrong);
}

/* ---- bf16 ---- */

static float of_half(uint16_t half) {
  uint32_t bits = (uint32_t)half << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* In (-2, 2), of magnitudes from 2^-6 on. */
static uint16_t half(uint32_t *random) {
  uint32_t r = next_random(random) >> 8;
  return (uint16_t)((r & 0x807f) | (121 + (r >> 16) % 7) << 7);
}

static void products_of_bf16_are_near(void) {
  uint16_t x[MATRIX_ROWS][HALVES], w[PAIRS][MATRIX_COLUMNS][2];
  float sums[MATRIX_ROWS][MATRIX_COLUMNS];
  uint32_t random = 3;
  double most = 0;
  for (int turn = 0; turn < 100; turn++) {
    matrices m;
    for (int i = 0; i < MATRIX_ROWS * HALVES; i++) (&x[0][0])[i] = half(&random);
    for (int i = 0; i < PAIRS * MATRIX_COLUMNS * 2; i++) (&w[0][0][0])[i] = half(&random);
    matrices_begin(&m, MATRIX_ROWS);
    matrices_zero(&m, 1);
    matrices_load(&m, 5, x, sizeof x[0]);
    matrices_load(&m, 7, w, sizeof w[0]);
    matrices_dot_bf16(&m, 1, 5, 7);
    matrices_store(&m, 1, sums, sizeof sums[0]);
    matrices_end(&m);
    for (int row = 0; row < MATRIX_ROWS; row++)
      for (int column = 0; column < MATRIX_COLUMNS; column++) {
        double want = 0, magnitude = 0;
        for (int k = 0; k < HALVES; k++) {
          double product = (double)of_half(x[row][k]) * (double)of_half(w[k / 2][column][k % 2]);
          want += product;
          magnitude += fabs(product);
        }
        most = fmax(most, fabs((double)sums[row][column] - want) / magnitude);
      }
  }
  tap_case(most > 0 && most <= HALVES * 0x1p-24, "products_of_bf16_are_near", "%g of the sum of magnitudes", most);
}

/* ---- memory ---- */

/* A page between two pages that cannot be read. */
static char *guarded_page(size_t *bytes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *memory = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + page, page, PROT_READ | PROT_WRITE)) return NULL;
  *bytes = page;
  return memory + page;
}

static void only_rows_in_use_are_touched(void) {
  size_t page;
  char *memory = guarded_page(&page);
  int wrong = 0;
  for (int rows = 1; rows <= MATRIX_ROWS; rows++) {
    const long stride = MATRIX_BYTES + 3;
    char *at = memory + page - (rows - 1) * stride - MATRIX_BYTES, back[MATRIX_ROWS * MATRIX_BYTES];
    matrices m;
    for (size_t i = 0; i < page; i++) memory[i] = (char)i;
    memset(back, 0, sizeof back);
    matrices_begin(&m, rows);
    matrices_load(&m, 2, at, stride);
    matrices_store(&m, 2, back, MATRIX_BYTES);
    matrices_store(&m, 2, at, stride);
    matrices_end(&m);
    for (int row = 0; row < rows; row++)
      wrong += memcmp(back + row * MATRIX_BYTES, at + row * stride, MATRIX_BYTES) != 0;
    for (int i = rows * MATRIX_BYTES; i < MATRIX_ROWS * MATRIX_BYTES; i++) wrong += back[i] != 0;
    for (size_t i = 0; i < page; i++) wrong += memory[i] != (char)i;
  }
  tap_case(wrong == 0, "only_rows_in_use_are_touched", "%d wrong", wrong);
}

int main(void) {
  skip_unless_isa_runs();
  products_of_bytes_are_exact();
  two_products_add_up();
  products_of_bf16_are_near();
  only_rows_in_use_are_touched();
  return tap_end();
}
