/* SPDX-License-Identifier: MIT */
/* Checks sequence lengths that the module computes; the recurrent kernels clamp them. */
#include "kernel.h"

/* Type of a sequence's length.
 * legal: int32_t int64_t */
typedef int32_t Length;

static void recurrent_lengths(const Team *team, atomic_int *fault, const Length *lengths, int64_t batch,
                              int64_t steps) {
  if (team->rank != 0) return;
  for (int64_t sample = 0; sample < batch; sample++)
    if (lengths[sample] < 0 || lengths[sample] > steps) fault_report(fault, RNNCC_ERROR_VALUE);
}
