/* SPDX-License-Identifier: MIT */
/*
 * A tensor of random numbers. An element is a function of its place, the key and the draw: no worker needs another's
 * (runtime/random.h).
 */
#include "kernel.h"
#include "random.h"

/* legal: float double */
typedef float T;

/* 1: normal, 0: uniform in [0, 1).
 * legal: 0 1 */
enum { NORMAL = 0 };

/* Numbers of a block, and blocks that are computed together: of some vectors. */
enum { OF_BLOCK = sizeof(T) == 4 ? 4 : 2, BLOCKS = 32, TOGETHER = BLOCKS * OF_BLOCK };

static inline void numbers_of(const uint32_t *word, double *number) {
  if (NORMAL && OF_BLOCK == 4) random_normal_floats(word, number);
  if (NORMAL && OF_BLOCK == 2) random_normal_doubles(word, number);
  if (!NORMAL && OF_BLOCK == 4) random_uniform_floats(word, number);
  if (!NORMAL && OF_BLOCK == 2) random_uniform_doubles(word, number);
}

/* TOGETHER numbers from block `first` on. */
static void draw_blocks(uint64_t key, uint64_t nth, uint64_t first, double from, double step, T *y) {
  uint32_t words[RANDOM_WORDS][BLOCKS];
  for (int b = 0; b < BLOCKS; b++) {
    uint32_t word[RANDOM_WORDS];
    random_block(key, nth, first + (uint64_t)b, word);
    for (int i = 0; i < RANDOM_WORDS; i++) words[i][b] = word[i];
  }
  for (int b = 0; b < BLOCKS; b++) {
    uint32_t word[RANDOM_WORDS];
    double number[OF_BLOCK];
    for (int i = 0; i < RANDOM_WORDS; i++) word[i] = words[i][b];
    numbers_of(word, number);
    for (int i = 0; i < OF_BLOCK; i++) y[b * OF_BLOCK + i] = (T)random_scaled(from, step, number[i]);
  }
}

/* y[i] = from + step * number i of the nth draw of this key. */
static void draw(const Team *team, const int64_t *nth, const int64_t *key, double from, double step, T *y, int64_t n) {
  int64_t chunk, end;
  team_share(team, ceil_div(n, TOGETHER), &chunk, &end);
  for (; chunk < end; chunk++) {
    T some[TOGETHER];
    int64_t at = chunk * TOGETHER, count = min_i64(TOGETHER, n - at);
    draw_blocks((uint64_t)*key, (uint64_t)*nth, (uint64_t)(chunk * BLOCKS), from, step, some);
    for (int64_t i = 0; i < count; i++) y[at + i] = some[i];
  }
}
