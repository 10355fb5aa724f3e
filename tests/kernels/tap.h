/* SPDX-License-Identifier: MIT */
/* TAP for test programs that must build for any target, where cmocka is not available. */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static int tap_cases, tap_failures;

/* Prints what a failed case saw, and counts cases. */
__attribute__((format(printf, 3, 4), unused)) static void tap_case(bool ok, const char *name, const char *seen, ...) {
  printf("%sok %d - %s\n", ok ? "" : "not ", ++tap_cases, name);
  tap_failures += !ok;
  va_list arguments;
  va_start(arguments, seen);
  printf("# %s: ", name);
  vprintf(seen, arguments);
  printf("\n");
  va_end(arguments);
  fflush(stdout);
}

__attribute__((unused)) static int tap_end(void) {
  printf("1..%d\n", tap_cases);
  return tap_failures != 0;
}

#endif
