/* SPDX-License-Identifier: MIT */
/* How work is cut into shares, and a large team into a tree, for all small numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "module.h"
#include "team.h"
#include "tree.h"

enum { MAX_ITEMS = 70, MAX_WORKERS = 33 };

static void shares_cover_all_items_evenly_and_the_callers_is_the_largest(void **state) {
  (void)state;
  for (int64_t n = 0; n <= MAX_ITEMS; n++)
    for (int size = 1; size <= MAX_WORKERS; size++) {
      int64_t next = 0;
      for (int rank = 0; rank < size; rank++) {
        int64_t begin, end, largest = (n + size - 1) / size;
        team_share(&(Team){.rank = rank, .size = size}, n, &begin, &end);
        assert_int_equal(begin, next);
        assert_in_range(end - begin, n / size, largest);
        if (rank == 0) assert_int_equal(end, largest);
        next = end;
      }
      assert_int_equal(next, n);
    }
}

/* Matrices of 640, 0 and 64 bytes. */
static void each_worker_has_its_share_of_each_constant(void **state) {
  (void)state;
  static const size_t ends[] = {640, 640, 704};
  Module module = {.info = {.weights_bytes = 704}, .weight_ends = ends, .n_weights = 3}, unknown = module;
  unknown.n_weights = 0;
  for (int size = 1; size <= MAX_WORKERS; size++) {
    int64_t begin, end, next[] = {0, 640, 640}, all = 0;
    for (int rank = 0; rank < size; rank++) {
      Team team = {.rank = rank, .size = size};
      for (int i = 0; i < 3; i++) {
        module_weights_share(&module, &team, i, &begin, &end);
        assert_int_equal(begin, next[i]);
        next[i] = end;
      }
      module_weights_share(&unknown, &team, 0, &begin, &end);
      assert_int_equal(begin, all);
      all = end;
    }
    for (int i = 0; i < 3; i++) assert_int_equal(next[i], ends[i]);
    assert_int_equal(all, 704);
  }
}

enum { MAX_TEAM = 600 }; /* four levels below the caller */

/* Visits a worker's subtree: its ranks follow each other, and each child knows its parent. Returns the first past it.
 */
static int walk(int rank, int size, int *depth) {
  int found = 0, end = rank + 1, least = size, deepest = 0;
  for (int child = 0; (child = tree_child_after(rank, size, child)); found++) {
    int below;
    assert_true(child > rank && child < size);
    assert_int_equal(tree_parent(child), rank);
    int last = walk(child, size, &below);
    if (last > end) end = last;
    if (child < least) least = child;
    if (below > deepest) deepest = below;
  }
  assert_int_equal(found > 0, tree_first_step(rank, size) > 0);
  if (found) assert_int_equal(least, rank + 1);
  *depth = deepest + 1;
  return end;
}

static int members(int rank, int size) {
  int count = 1;
  for (int child = 0; (child = tree_child_after(rank, size, child));) count += members(child, size);
  return count;
}

static void a_tree_has_each_worker_once_and_subtrees_are_runs_of_ranks(void **state) {
  (void)state;
  for (int size = 1; size <= MAX_TEAM; size++) {
    int depth, levels = 1;
    for (int reached = 1; reached < size; reached *= TREE_FAN) levels++;
    assert_int_equal(walk(0, size, &depth), size);
    assert_int_equal(members(0, size), size);
    assert_in_range(depth, 1, levels);
    for (int rank = 1; rank < size; rank++) {
      int below;
      assert_int_equal(walk(rank, size, &below) - rank, members(rank, size));
    }
  }
}

static void children_with_more_below_them_come_first(void **state) {
  (void)state;
  for (int size = 2; size <= MAX_TEAM; size++)
    for (int rank = 0; rank < size; rank++) {
      int before = size;
      for (int child = 0; (child = tree_child_after(rank, size, child));) {
        int step = tree_step(child);
        assert_true(step <= before);
        before = step;
      }
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shares_cover_all_items_evenly_and_the_callers_is_the_largest),
      cmocka_unit_test(each_worker_has_its_share_of_each_constant),
      cmocka_unit_test(a_tree_has_each_worker_once_and_subtrees_are_runs_of_ranks),
      cmocka_unit_test(children_with_more_below_them_come_first),
  };
  return cmocka_run_group_tests_name("runtime_team", tests, NULL, NULL);
}
