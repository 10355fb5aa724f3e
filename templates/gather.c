/* SPDX-License-Identifier: MIT */
/*
 * Gather: rows of `inner` elements picked along an axis of `length`. Negative indices count from the end. An index out
 * of range is reported and read as the nearest one in range.
 */
#include "kernel.h"

/* The element.
 * legal: bits8 bits16 bits32 bits64 */
typedef bits32 T;
/* legal: int32_t int64_t */
typedef int64_t Index;

/* 1: checks indices; 0: they were checked before.
 * legal: 0 1 */
enum { CHECKED = 1 };

/* in: [outer, length, inner]; indices: [count]; out: [outer, count, inner]. */
static void gather(const Team *team, const T *in, const Index *indices, T *out, int64_t outer, int64_t length,
                   int64_t count, int64_t inner, atomic_int *fault) {
  int64_t item, end;
  team_share(team, outer * count, &item, &end);
  for (; item < end; item++) {
    int64_t at = index_at(indices[item % count], length, CHECKED, fault);
    if (CHECKED && length == 0) continue;
    const T *restrict from = in + (item / count * length + at) * inner;
    T *restrict to = out + item * inner;
    for (int64_t i = 0; i < inner; i++) to[i] = from[i];
  }
}
