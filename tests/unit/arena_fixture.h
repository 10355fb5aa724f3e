/* SPDX-License-Identifier: MIT */
/* An arena that lives as long as a test, or a group of tests: `cmocka_..._setup_teardown(test, setup, teardown)`. */
#ifndef RNNCC_TEST_ARENA_FIXTURE_H
#define RNNCC_TEST_ARENA_FIXTURE_H

#include "support/arena.h"

static Arena *arena;

static int setup(void **state) {
  (void)state;
  arena = arena_new();
  return 0;
}

static int teardown(void **state) {
  (void)state;
  arena_free(arena);
  return 0;
}

#endif
