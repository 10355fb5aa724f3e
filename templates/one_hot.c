/* SPDX-License-Identifier: MIT */
/*
 * OneHot: out[outer, depth, inner] is values[1] where indices[outer, inner] is the position along the middle axis,
 * values[0] elsewhere. Negative indices count from the end; one out of range gives only values[0].
 */
#include "kernel.h"

/* The element.
 * legal: bits8 bits16 bits32 bits64 */
typedef bits32 T;
/* legal: float double int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t */
typedef int64_t Index;

/* Compared in the index's own type: no conversion of a large or fractional one goes wrong. */
static inline bool names(Index index, int64_t at, int64_t depth) {
  if (index < 0) at -= depth;
  return index == (Index)at && (int64_t)(Index)at == at;
}

static void one_hot(const Team *team, const Index *indices, const T *values, T *out, int64_t outer, int64_t depth,
                    int64_t inner) {
  int64_t row, end;
  T off = values[0], on = values[1];
  team_share(team, outer * depth, &row, &end);
  for (; row < end; row++) {
    const Index *index = indices + row / depth * inner;
    int64_t at = row % depth;
    for (int64_t i = 0; i < inner; i++) out[row * inner + i] = names(index[i], at, depth) ? on : off;
  }
}
