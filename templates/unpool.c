/* SPDX-License-Identifier: MIT */
/*
 * MaxUnpool: each element of x is written at its index, all others are zero. An index counts the elements of
 * [volumes, depth, height, width]; y is [volumes, out_d, out_h, out_w], as large or larger. An index out of range is
 * reported. Every worker writes its own part of y and reads all indices, so that of two elements with one index the
 * later one counts for any number of workers.
 */
#include "kernel.h"

/* The element, which is zero where all its bits are.
 * legal: bits8 bits16 bits32 bits64 */
typedef bits32 T;

static void unpool(const Team *team, const T *x, const int64_t *indices, T *y, int64_t count, int64_t volumes,
                   int64_t depth, int64_t height, int64_t width, int64_t out_d, int64_t out_h, int64_t out_w,
                   atomic_int *fault) {
  int64_t in_volume = depth * height * width, out_volume = out_d * out_h * out_w, first, end;
  team_share(team, volumes, &first, &end);
  for (int64_t i = first * out_volume; i < end * out_volume; i++) y[i] = 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t at = indices[i], volume = at < 0 ? -1 : at / in_volume;
    if (volume < 0 || volume >= volumes) fault_report(fault, RNNCC_ERROR_VALUE);
    if (volume < first || volume >= end) continue;
    int64_t w = at % width, h = at / width % height, d = at / width / height % depth;
    y[((volume * out_d + d) * out_h + h) * out_w + w] = x[i];
  }
}
