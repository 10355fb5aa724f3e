/* SPDX-License-Identifier: MIT */
/*
 * Functions for every template, besides the SIMD vocabulary. All are static inline: a kernel needs only its arguments
 * and the team.
 */
#ifndef KERNEL_H
#define KERNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rnncc.h"
#include "team.h"

/* Says that a value of this run is out of range; `code` is an rnncc_status. The kernel goes on with any defined value:
 * the run fails at its end. Relaxed: the barriers order it before the reader. */
static inline void fault_report(atomic_int *fault, int code) {
  atomic_store_explicit(fault, code, memory_order_relaxed);
}

/* Resolves an index on an axis of `length`: negative ones count from the end. With `check`, reports one out of range
 * and returns the nearest in range; -1 if length is 0. */
static inline int64_t index_at(int64_t index, int64_t length, int check, atomic_int *fault) {
  int64_t at = index < 0 ? index + length : index;
  if (!check || (at >= 0 && at < length)) return at;
  fault_report(fault, RNNCC_ERROR_VALUE);
  return at < 0 ? 0 : length - 1;
}

/* Prefetches a cache line to L2. Any address is allowed. */
static inline void prefetch_later(const void *p) { __builtin_prefetch(p, 0, 2); }

/* Elements that are only moved, by their size: of whatever type they are, they may be read as this. */
typedef uint8_t bits8 __attribute__((may_alias));
typedef uint16_t bits16 __attribute__((may_alias));
typedef uint32_t bits32 __attribute__((may_alias));
typedef uint64_t bits64 __attribute__((may_alias));

static inline int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; } /* a >= 0, b > 0 */
static inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

#endif
