/* SPDX-License-Identifier: MIT */
/* Copies that pack weights have each element where a loop over all of them puts it, for any extents and strides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "repack.h"

enum { LINE = 64 };

static int64_t elements(const ModuleCopy *copy) {
  int64_t count = 1;
  for (int i = 0; i < copy->rank; i++) count *= copy->extents[i];
  return count;
}

/* One past the last element that it writes, or reads. */
static int64_t end_of(const ModuleCopy *copy, int64_t first, const int64_t *strides) {
  for (int i = 0; i < copy->rank; i++) first += (copy->extents[i] - 1) * strides[i];
  return first + 1;
}

static void copy_plainly(const ModuleCopy *copy, const float *source, float *target) {
  for (int64_t n = 0; n < elements(copy); n++) {
    int64_t rest = n, from = copy->from, to = copy->to;
    for (int i = copy->rank - 1; i >= 0; rest /= copy->extents[i--]) {
      from += rest % copy->extents[i] * copy->from_strides[i];
      to += rest % copy->extents[i] * copy->to_strides[i];
    }
    target[to] = source[from];
  }
}

static float *floats(int64_t count) {
  float *memory = aligned_alloc(LINE, ((size_t)count * sizeof(float) + LINE - 1) / LINE * LINE);
  assert_non_null(memory);
  return memory;
}

static void check(const ModuleCopy *copy, int workers) {
  int64_t n_source = end_of(copy, copy->from, copy->from_strides), n_target = end_of(copy, copy->to, copy->to_strides);
  float *source = floats(n_source), *target = floats(n_target), *expected = floats(n_target);
  for (int64_t i = 0; i < n_source; i++) source[i] = (float)i;
  for (int64_t i = 0; i < n_target; i++) target[i] = expected[i] = -1;
  copy_plainly(copy, source, expected);
  for (int rank = 0; rank < workers; rank++) repack(copy, source, target, &(Team){.rank = rank, .size = workers});
  assert_memory_equal(target, expected, (size_t)n_target * sizeof(float));
  free(source);
  free(target);
  free(expected);
}

/* [rows, columns], read down in columns of `depth`, written across in rows of `width`. */
static ModuleCopy turned(int64_t rows, int64_t columns, int64_t depth, int64_t width) {
  return (ModuleCopy){.dtype = RNNCC_F32,
                      .rank = 3,
                      .extents = {3, rows, columns},
                      .from_strides = {columns * depth, 1, depth},
                      .to_strides = {rows * width, width, 1}};
}

static void a_turn_has_each_element(void **state) {
  (void)state;
  static const int64_t sizes[] = {1, 3, 4, 15, 16, 17, 32, 50};
  for (size_t r = 0; r < sizeof sizes / sizeof *sizes; r++)
    for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++)
      for (int workers = 1; workers <= 3; workers++) {
        ModuleCopy copy = turned(sizes[r], sizes[c], sizes[r] + 2, sizes[c] + 3);
        check(&copy, workers);
      }
}

/* Lines of large ones go past the caches, where they are lines: rows whose ends share one with others are not. */
static void a_large_turn_has_each_element(void **state) {
  (void)state;
  for (int shift = 0; shift < 2; shift++)
    for (int workers = 1; workers <= 2; workers++) {
      ModuleCopy copy = turned(700, 272, 704, shift ? 275 : 288);
      copy.to = 16 * 4 + shift;
      check(&copy, workers);
    }
}

static void other_copies_have_each_element(void **state) {
  (void)state;
  ModuleCopy rows = {.dtype = RNNCC_F32,
                     .rank = 2,
                     .from = 5,
                     .to = 7,
                     .extents = {20, 9},
                     .from_strides = {9, 1},
                     .to_strides = {12, 1}};
  ModuleCopy spread = {
      .dtype = RNNCC_F32, .rank = 2, .extents = {20, 9}, .from_strides = {18, 2}, .to_strides = {3, 60}};
  ModuleCopy one = {.dtype = RNNCC_F32, .from = 2, .to = 1};
  for (int workers = 1; workers <= 3; workers++) {
    check(&rows, workers);
    check(&spread, workers);
    check(&one, workers);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_turn_has_each_element),
      cmocka_unit_test(a_large_turn_has_each_element),
      cmocka_unit_test(other_copies_have_each_element),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
