/* SPDX-License-Identifier: MIT */
/*
 * ScatterND: the output is the data, with updates of the `inner` neighbouring elements at each tuple of DEPTH indices,
 * in the tuples' order. Every worker walks all tuples and updates its own range of the output, so the order of updates
 * does not depend on the partition.
 */
#include "kernel.h"
#include "knobs.h"

/* The element; its bits, if updates only replace.
 * legal: bits8 bits16 bits32 bits64 float double int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t */
typedef float T;

enum { CACHE_LINE = 64 / sizeof(T) }; /* elements: least range of a worker */

#include "parts/index_tuples.h"
#include "parts/updates.h"

/* data, out: `total` elements; indices: [tuples, DEPTH]; updates: [tuples, inner]. extent, stride: of the DEPTH indexed
 * axes, in elements; no extent is 0. */
static void scatter_nd(const Team *team, const T *data, const Index *indices, const T *updates, T *out, int64_t total,
                       int64_t tuples, int64_t inner, const int64_t *extent, const int64_t *stride, atomic_int *fault) {
  int64_t begin, end;
  team_share(team, ceil_div(total, CACHE_LINE), &begin, &end);
  begin *= CACHE_LINE;
  end = min_i64(end * CACHE_LINE, total);
  for (int64_t i = begin; i < end; i++) out[i] = data[i];
  for (int64_t tuple = 0; tuple < tuples; tuple++) {
    int64_t at = place(indices + tuple * DEPTH, extent, stride, fault);
    int64_t first = max_i64(at, begin), last = min_i64(at + inner, end);
    const T *update = updates + tuple * inner - at;
    for (int64_t i = first; i < last; i++) out[i] = reduced(out[i], update[i]);
  }
}
