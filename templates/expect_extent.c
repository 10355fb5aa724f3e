/* SPDX-License-Identifier: MIT */
/* Checks an extent that only the run knows; a copy of what both have follows. */
#include "kernel.h"

static void expect_extent(const Team *team, atomic_int *fault, int64_t found, int64_t expected) {
  if (team->rank == 0 && found != expected) fault_report(fault, RNNCC_ERROR_VALUE);
}
