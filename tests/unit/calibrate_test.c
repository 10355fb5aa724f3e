/* SPDX-License-Identifier: MIT */
/* Which barrier counts: the shortest of threads that had a core each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "machine/calibrate.h"

static void assert_best(Meeting a, Meeting b, double ns) {
  assert_float_equal(better_meeting(a, b).ns, ns, 0);
  assert_float_equal(better_meeting(b, a).ns, ns, 0);
}

static void the_shorter_barrier_counts(void **state) {
  (void)state;
  assert_best((Meeting){140, 103}, (Meeting){560, 104}, 140);
  assert_best((Meeting){140, 103}, (Meeting){0, 104}, 140);
  assert_best((Meeting){0, 0}, (Meeting){0, 0}, 0);
}

/* As measured on two CPUs of a virtual machine that were one core's threads for some seconds. */
static void a_barrier_of_two_threads_of_one_core_does_not(void **state) {
  (void)state;
  assert_best((Meeting){28, 53}, (Meeting){140, 103}, 140);
  assert_best((Meeting){28, 53}, (Meeting){30, 54}, 28);
}

/* A little slower each time, it would take any barrier in the end. */
static void what_cores_multiply_is_compared_with_the_most(void **state) {
  (void)state;
  Meeting best = better_meeting((Meeting){140, 100}, (Meeting){130, 97});
  assert_float_equal(better_meeting(best, (Meeting){28, 94}).ns, 130, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_shorter_barrier_counts),
      cmocka_unit_test(a_barrier_of_two_threads_of_one_core_does_not),
      cmocka_unit_test(what_cores_multiply_is_compared_with_the_most),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
