/* SPDX-License-Identifier: MIT */
/* Windows along an axis: which of their points lie in the input. */
#ifndef WINDOWS_H
#define WINDOWS_H

#include "kernel.h"

/* Of points `step` apart, the first of which is at `from`: how many lie before `limit`. */
static inline int64_t points_before(int64_t from, int64_t points, int64_t step, int64_t limit) {
  return from < limit ? min_i64(points, ceil_div(limit - from, step)) : 0;
}

#endif
