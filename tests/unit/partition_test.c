/* SPDX-License-Identifier: MIT */
/* Private-cache-aware partitioning: the chosen split is compared with all splits, and predicted traffic with simulated
 * caches, line by line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/recurrent/partition.h"

/* ---- the chosen split ---- */

/* DeepCPU's formula again, as in the paper, in elements. */
static double paper_traffic(const MmExtents *mm, int xi, int xj, int xk, double l2_elements) {
  double a = (double)(mm->i * mm->k), b = (double)(mm->k * mm->j), c = (double)(mm->i * mm->j);
  double steps = (double)mm->steps;
  if (b / (xj * xk) <= l2_elements) return steps * (xj * a + 2 * xk * c) + xi * b;
  return steps * (xj * a + xi * b + 2 * xk * c);
}

static double least_of_all_splits(const MmExtents *mm, int p, double l2_elements) {
  double least = -1;
  for (int xi = 1; xi <= p; xi++)
    for (int xj = 1; xj <= p; xj++)
      if (xi * xj == p && xi <= mm->most_i && xj <= mm->most_j) {
        double traffic = paper_traffic(mm, xi, xj, 1, l2_elements);
        if (least < 0 || traffic < least) least = traffic;
      }
  return least;
}

/* Of equally good splits, the one with the fewest parts of J must be chosen, because parts of J wait for each other. */
static void assert_fewest_units_of_ties(const MmExtents *mm, Split x, double least, double l2_elements) {
  int p = x.i * x.j;
  for (int xj = 1; xj < x.j; xj++)
    if (p % xj == 0 && p / xj <= mm->most_i) assert_true(paper_traffic(mm, p / xj, xj, 1, l2_elements) > 1.05 * least);
}

static MmExtents random_extents(void) {
  int64_t gates = 1 + rand() % 4, panels = 1 + rand() % 64, batch = 1 + rand() % 24;
  return (MmExtents){.i = batch,
                     .j = gates * panels * 16,
                     .k = panels * 16 - rand() % 16,
                     .steps = 1 + rand() % 200,
                     .most_i = batch,
                     .most_j = panels};
}

static void the_chosen_split_is_the_best_of_all_but_for_ties(void **state) {
  (void)state;
  int with_samples = 0, with_units = 0;
  srand(1);
  for (int round = 0; round < 500; round++) {
    MmExtents mm = random_extents();
    int p = 1 + rand() % 16, l2 = 1 << (17 + rand() % 5);
    Split x = pcp_split(&mm, p, l2);
    assert_true(split_is_legal(&mm, x));
    double least = least_of_all_splits(&mm, p, l2 / 4.0);
    if (least < 0) { /* too few samples and panels for p parts */
      assert_true(x.i * x.j < p);
      continue;
    }
    assert_int_equal(x.i * x.j, p);
    assert_true(paper_traffic(&mm, x.i, x.j, 1, l2 / 4.0) <= 1.05 * least);
    assert_fewest_units_of_ties(&mm, x, least, l2 / 4.0);
    with_samples += x.i > 1;
    with_units += x.j > 1;
  }
  assert_true(with_samples > 20 && with_units > 100);
}

static void traffic_is_the_papers_formula_for_every_split(void **state) {
  (void)state;
  srand(2);
  for (int round = 0; round < 200; round++) {
    MmExtents mm = random_extents();
    Split x = {1 + rand() % 4, 1 + rand() % 4, 1 + rand() % 4};
    int l2 = 1 << (14 + rand() % 8);
    double expected = 4 * paper_traffic(&mm, x.i, x.j, x.k, l2 / 4.0);
    assert_true(abs((int)(pcp_traffic(&mm, x, l2) / expected * 1e6) - 1000000) <= 1);
  }
}

/* Weights that fit are copied to each group of samples once; others would be read by each group in every step. */
static void samples_are_shared_where_the_weights_fit_and_units_where_they_do_not(void **state) {
  (void)state;
  MmExtents small = {.i = 10, .j = 256, .k = 64, .steps = 100, .most_i = 10, .most_j = 4};
  MmExtents large = {.i = 10, .j = 4096, .k = 1024, .steps = 100, .most_i = 10, .most_j = 64};
  Split of_small = pcp_split(&small, 2, 1 << 20), of_large = pcp_split(&large, 2, 1 << 20);
  assert_int_equal(of_small.i, 2);
  assert_int_equal(of_large.j, 2);
  MmExtents one_sample = {.i = 1, .j = 256, .k = 64, .steps = 100, .most_i = 1, .most_j = 4};
  assert_int_equal(pcp_split(&one_sample, 2, 1 << 20).j, 2);
}

static void a_degree_without_a_legal_split_falls_to_the_next_one_that_has(void **state) {
  (void)state;
  MmExtents mm = {.i = 1, .j = 64, .k = 16, .steps = 10, .most_i = 1, .most_j = 4};
  Split x = pcp_split(&mm, 7, 1 << 20);
  assert_int_equal(x.i * x.j, 4);
}

/* ---- the simulator: one least-recently-used cache for each core ---- */

enum { LINE_FLOATS = 16, CACHE_LINES = 4096 };

/* Lines by number, the least recently used first. A line that is written moves twice: in, and out. */
typedef struct Cache {
  int capacity, count;
  int64_t lines[CACHE_LINES];
  int64_t moved; /* lines */
} Cache;

static void touch(Cache *cache, int64_t line) {
  int at = cache->count - 1;
  while (at >= 0 && cache->lines[at] != line) at--;
  if (at < 0) {
    cache->moved++;
    at = cache->count < cache->capacity ? cache->count++ : 0;
  }
  memmove(cache->lines + at, cache->lines + at + 1, (size_t)(cache->count - 1 - at) * sizeof *cache->lines);
  cache->lines[cache->count - 1] = line;
}

/* A core's part of the product through all steps, in the order of the kernels. Its rows of A and C are new in every
 * step: A is what all cores made in the step before, C the gates of that step. So their line numbers never repeat. */
typedef struct Part {
  int64_t a_lines, b_lines, c_lines, steps;
} Part;

static int64_t moved_lines(const Part *part, int capacity) {
  static Cache cache;
  cache = (Cache){.capacity = capacity};
  int64_t fresh = part->b_lines;
  for (int64_t step = 0; step < part->steps; step++) {
    for (int64_t i = 0; i < part->a_lines; i++) touch(&cache, fresh++);
    for (int64_t i = 0; i < part->b_lines; i++) touch(&cache, step % 2 ? part->b_lines - 1 - i : i);
    for (int64_t i = 0; i < part->c_lines; i++) touch(&cache, fresh++);
    cache.moved += part->c_lines;
  }
  return cache.moved;
}

/* Sizes in whole lines and whole parts, so that the formula's bytes are lines. */
typedef struct Run {
  MmExtents mm;
  Split x;
  Part part;
  int capacity;
} Run;

static Run random_run(int capacity) {
  Run run = {.x = {1 + rand() % 3, 1 + rand() % 4, 1}, .capacity = capacity};
  int64_t rows = 1 + rand() % 3, units = LINE_FLOATS * (1 + rand() % 8), depth = LINE_FLOATS * (1 + rand() % 16);
  run.mm = (MmExtents){.i = rows * run.x.i,
                       .j = units * run.x.j,
                       .k = depth,
                       .steps = 2 + rand() % 6,
                       .most_i = 1 << 20,
                       .most_j = 1 << 20};
  run.part = (Part){.a_lines = rows * depth / LINE_FLOATS,
                    .b_lines = depth * units / LINE_FLOATS,
                    .c_lines = rows * units / LINE_FLOATS,
                    .steps = run.mm.steps};
  return run;
}

static double simulated_bytes(const Run *run) {
  return 64.0 * run->x.i * run->x.j * (double)moved_lines(&run->part, run->capacity);
}

/* While a core's weights and one step's rows of A and C fit together, each line of the weights moves once, and the
 * formula is exact. */
static void where_weights_fit_the_simulated_traffic_is_the_formulas(void **state) {
  (void)state;
  int seen = 0;
  srand(3);
  for (int round = 0; round < 300; round++) {
    Run run = random_run(256 + rand() % 1500);
    if (run.part.b_lines + run.part.a_lines + run.part.c_lines > run.capacity) continue;
    assert_int_equal((int64_t)simulated_bytes(&run), (int64_t)pcp_traffic(&run.mm, run.x, run.capacity * 64));
    seen++;
  }
  assert_true(seen > 100);
}

/* Panels of B are swept in alternating direction: each step after the first misses only the lines that did not fit. */
static double swept_traffic(const MmExtents *mm, Split x, int64_t private_bytes) {
  double rest = 4.0 * (double)(mm->k * mm->j) / (x.j * x.k) - (double)private_bytes;
  return pcp_traffic(mm, x, INT64_MAX) + x.i * x.j * x.k * (double)(mm->steps - 1) * (rest > 0 ? rest : 0);
}

/* swept_traffic() ignores that a step's A and C evict weights: at most as many lines as they have, for each step and
 * core. */
static void where_weights_do_not_fit_the_sweep_saves_what_was_left_in_the_cache(void **state) {
  (void)state;
  int seen = 0;
  srand(4);
  for (int round = 0; round < 300; round++) {
    Run run = random_run(64 + rand() % 300);
    if (run.part.b_lines <= run.capacity) continue;
    double simulated = simulated_bytes(&run), swept = swept_traffic(&run.mm, run.x, run.capacity * 64);
    double pushed = 64.0 * run.x.i * run.x.j * (double)((run.part.a_lines + run.part.c_lines) * (run.mm.steps - 1));
    assert_true(simulated <= pcp_traffic(&run.mm, run.x, run.capacity * 64));
    assert_true(simulated >= swept);
    assert_true(simulated <= swept + pushed);
    seen++;
  }
  assert_true(seen > 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_chosen_split_is_the_best_of_all_but_for_ties),
      cmocka_unit_test(traffic_is_the_papers_formula_for_every_split),
      cmocka_unit_test(samples_are_shared_where_the_weights_fit_and_units_where_they_do_not),
      cmocka_unit_test(a_degree_without_a_legal_split_falls_to_the_next_one_that_has),
      cmocka_unit_test(where_weights_fit_the_simulated_traffic_is_the_formulas),
      cmocka_unit_test(where_weights_do_not_fit_the_sweep_saves_what_was_left_in_the_cache),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
