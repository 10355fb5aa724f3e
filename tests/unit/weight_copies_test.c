/* SPDX-License-Identifier: MIT */
/* Copies that are found from where each element comes put each element where it belongs, once, in as few loops as the
 * layout has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "program/weight_copies.h"

enum { ROWS = 6, COLUMNS = 10, COUNT = ROWS * COLUMNS, PANEL = 4, ROOM = 2 * COUNT };

/* Where element `to` comes from; from < 0: it is padding. */
typedef Origin Packing(int64_t to);

static Origin as_it_is(int64_t to) { return (Origin){.from = to}; }
static Origin backwards(int64_t to) { return (Origin){.from = COUNT - 1 - to}; }
static Origin transposed(int64_t to) { return (Origin){.from = to % ROWS * COLUMNS + to / ROWS}; }
static Origin every_second_row(int64_t to) { return (Origin){.from = to % (2 * COLUMNS) < COLUMNS ? to : -1}; }

/* [panel][row][column of the panel]; the last panel has 2 columns and padding. */
static Origin in_panels(int64_t to) {
  int64_t column = to / (ROWS * PANEL) * PANEL + to % PANEL, row = to / PANEL % ROWS;
  return (Origin){.from = column < COLUMNS ? row * COLUMNS + column : -1};
}

/* [panel][column of the panel][row] of the transposed matrix. */
static Origin in_turned_panels(int64_t to) {
  int64_t row = to / (ROWS * PANEL) * PANEL + to % PANEL, column = to / PANEL % ROWS;
  return (Origin){.from = row < COLUMNS ? column + row * ROWS : -1};
}

/* [channel][row][column] of rows that are further apart than they are long, channels last. */
static Origin channels_first(int64_t to) { return (Origin){.from = to / 5 % 4 * 100 + to % 5 * 3 + to / 20}; }

/* Rows of two weights in turn. */
static Origin of_two(int64_t to) {
  return (Origin){.source = (int)(to / COLUMNS % 2), .from = to / (2 * COLUMNS) * COLUMNS + to % COLUMNS};
}

/* In an order without any loop. */
static Origin shuffled(int64_t to) { return (Origin){.from = to * to * 7 % 61 * 61 + to}; }

static MutableWeights copies_of(Packing *packing, int64_t count, bool adds) {
  MutableWeights found = {0};
  CopyFinder *finder = copies_begin(arena, 3, RNNCC_BF16);
  for (int64_t to = 0; to < count; to++) {
    Origin origin = packing(to);
    origin.adds = adds;
    if (origin.from >= 0) copies_element(finder, to, origin);
  }
  copies_end(finder, arena, &found);
  return found;
}

/* Does the copy, loop by loop. */
static void do_copy(const WeightCopy *copy, int axis, int64_t from, int64_t to, Origin *origins, int *written) {
  if (axis == copy->rank) {
    assert_in_range(to, 0, ROOM - 1);
    origins[to] = (Origin){copy->source, copy->adds, from};
    written[to]++;
    return;
  }
  for (int64_t i = 0; i < copy->extents[axis]; i++)
    do_copy(copy, axis + 1, from + i * copy->from_strides[axis], to + i * copy->to_strides[axis], origins, written);
}

static void expect_copies(Packing *packing, int64_t count, int most) {
  for (int adds = 0; adds < 2; adds++) {
    Origin origins[ROOM];
    int written[ROOM] = {0};
    MutableWeights found = copies_of(packing, count, adds);
    assert_in_range(found.n_copies, 1, most);
    for (int k = 0; k < found.n_copies; k++) {
      assert_int_equal(found.copies[k].target, 3);
      assert_int_equal(found.copies[k].dtype, RNNCC_BF16);
      do_copy(&found.copies[k], 0, found.copies[k].from, found.copies[k].to, origins, written);
    }
    for (int64_t to = 0; to < ROOM; to++) {
      Origin due = to < count ? packing(to) : (Origin){.from = -1};
      assert_int_equal(written[to], due.from >= 0);
      if (due.from < 0) continue;
      assert_int_equal(origins[to].from, due.from);
      assert_int_equal(origins[to].source, due.source);
      assert_int_equal(origins[to].adds, adds);
    }
  }
}

static void each_element_is_copied_once(void **state) {
  (void)state;
  expect_copies(as_it_is, COUNT, 1);
  expect_copies(backwards, COUNT, 1);
  expect_copies(transposed, COUNT, 1);
  expect_copies(every_second_row, COUNT, 1);
  expect_copies(in_panels, 3 * ROWS * PANEL, 2);
  expect_copies(in_turned_panels, 3 * ROWS * PANEL, 2);
  expect_copies(channels_first, COUNT, 1);
  expect_copies(of_two, 2 * COUNT, 2);
  expect_copies(shuffled, COUNT, COUNT);
  expect_copies(as_it_is, 1, 1);
}

/* A matrix is turned in squares: its last loop writes in a row, and the one before reads in a row. */
static void the_loop_that_reads_in_a_row_is_the_last_but_one(void **state) {
  (void)state;
  Packing *const packings[] = {transposed, channels_first, in_turned_panels};
  for (int i = 0; i < 3; i++) {
    MutableWeights found = copies_of(packings[i], i == 2 ? 3 * ROWS * PANEL : COUNT, false);
    for (int k = 0; k < found.n_copies; k++) {
      const WeightCopy *copy = &found.copies[k];
      assert_true(copy->rank >= 2);
      assert_int_equal(copy->to_strides[copy->rank - 1], 1);
      assert_int_equal(copy->from_strides[copy->rank - 2], 1);
    }
  }
  MutableWeights straight = copies_of(in_panels, 3 * ROWS * PANEL, false);
  for (int k = 0; k < straight.n_copies; k++)
    assert_int_equal(straight.copies[k].from_strides[straight.copies[k].rank - 1], 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(each_element_is_copied_once),
      TEST(the_loop_that_reads_in_a_row_is_the_last_but_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
