/* SPDX-License-Identifier: MIT */
/*
 * ReverseSequence: the first lengths[b] steps of each sequence b in reverse, the others unchanged. A length out of
 * range is reported and treated as 0.
 */
#include "kernel.h"

/* The element.
 * legal: bits8 bits16 bits32 bits64 */
typedef bits32 T;
/* legal: int32_t int64_t */
typedef int64_t Length;

/* 1: in, out are [steps, batch, inner]; 0: [batch, steps, inner].
 * legal: 0 1 */
enum { STEPS_FIRST = 1 };
/* 1: lengths are checked here; 0: they have been checked before.
 * legal: 0 1 */
enum { CHECKED = 1 };

static inline int64_t row(int64_t t, int64_t b, int64_t steps, int64_t batch) {
  return STEPS_FIRST ? t * batch + b : b * steps + t;
}

static void reverse_sequence(const Team *team, const T *in, const Length *lengths, T *out, int64_t steps, int64_t batch,
                             int64_t inner, atomic_int *fault) {
  int64_t item, end;
  team_share(team, steps * batch, &item, &end);
  for (; item < end; item++) {
    int64_t t = STEPS_FIRST ? item / batch : item % steps, b = STEPS_FIRST ? item % batch : item / steps;
    int64_t length = lengths[b];
    if (CHECKED && (length < 0 || length > steps)) {
      fault_report(fault, RNNCC_ERROR_VALUE);
      length = 0;
    }
    const T *restrict from = in + row(t < length ? length - 1 - t : t, b, steps, batch) * inner;
    T *restrict to = out + item * inner;
    for (int64_t i = 0; i < inner; i++) to[i] = from[i];
  }
}
