/* SPDX-License-Identifier: MIT */
/*
 * GatherND: each tuple of DEPTH indices picks `inner` neighbouring elements of its batch. Negative indices count from
 * the end. An index out of range is reported and read as the nearest one in range.
 */
#include "kernel.h"

/* The element.
 * legal: bits8 bits16 bits32 bits64 */
typedef bits32 T;

#include "parts/index_tuples.h"

/* in: `batch` elements a batch; indices: [batches, tuples, DEPTH]; out: [batches, tuples, inner]. extent, stride: of
 * the DEPTH indexed axes, in elements. */
static void gather_nd(const Team *team, const T *in, const Index *indices, T *out, int64_t batches, int64_t batch,
                      int64_t tuples, int64_t inner, const int64_t *extent, const int64_t *stride, atomic_int *fault) {
  int64_t item, end;
  team_share(team, batches * tuples, &item, &end);
  for (; item < end; item++) {
    int64_t at = place(indices + item * DEPTH, extent, stride, fault);
    if (CHECKED && batch == 0) continue;
    const T *restrict from = in + item / tuples * batch + at;
    T *restrict to = out + item * inner;
    for (int64_t i = 0; i < inner; i++) to[i] = from[i];
  }
}
