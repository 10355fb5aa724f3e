/* SPDX-License-Identifier: MIT */
/* How work is cut into shares, for all small numbers of items and workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "team.h"

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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shares_cover_all_items_evenly_and_the_callers_is_the_largest),
  };
  return cmocka_run_group_tests_name("runtime_team", tests, NULL, NULL);
}
