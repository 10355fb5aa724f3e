/* SPDX-License-Identifier: MIT */
/*
 * Transforms weights of conv_winograd.c that only the running module knows, and packs them as that reads them:
 *
 *   [convolution's group][group of output channels][point][channel][vector of the group][LANES]
 *
 * compiler/kernels/conv/winograd_weights.c does the same, to the bit, of weights that the compiler knows. The work is
 * vectors of output channels at a few channels; workers share it evenly. Their points are written a run of channels
 * after the other: points are mostly a power of 2 apart, where few lines of a cache may be, and each store would wait
 * for the one before.
 */
#include "kernel.h"
#include "simd/simd.h"
#include "winograd_taps.h"

/* Outputs of a tile along each axis; 1 where the window is 1.
 * legal: 1 2 4 6 */
enum { TILE_H = 4 };
/* legal: 1 2 4 6 */
enum { TILE_W = 4 };
/* R and S.
 * legal: 1 3 5 7 */
enum { WINDOW_H = 3 };
/* legal: 1 3 5 7 */
enum { WINDOW_W = 3 };
/* Vectors of output channels in a group.
 * legal: 1..4 */
enum { OC_VECTORS = 2 };
/* Channels that are taken at once.
 * legal: 1..64 */
enum { CHANNELS = 8 };

enum { EXTENT_H = TILE_H + WINDOW_H - 1, EXTENT_W = TILE_W + WINDOW_W - 1 };
enum { TAPS = WINDOW_H * WINDOW_W, POINTS = EXTENT_H * EXTENT_W };
/* Numbers of an output channel that are turned with those of others beside it, in squares of LANES. */
enum { TURNED = (CHANNELS * TAPS + LANES - 1) / LANES * LANES };

/* `count` numbers of each of `used` output channels, `stride` apart, beside each other; zeros past them. */
SIMD_FUNCTION void winograd_beside(const float *w, int64_t stride, int64_t used, int64_t count, float *beside) {
  for (int64_t at = 0; at < count; at += LANES) {
    vec rows[LANES];
#pragma clang loop unroll(full)
    for (int k = 0; k < LANES; k++)
      rows[k] = k < used ? vload_n(w + k * stride + at, min_i64(count - at, LANES)) : vzero();
    vtranspose(rows);
#pragma clang loop unroll(full)
    for (int k = 0; k < LANES; k++) vstore(beside + (at + k) * LANES, rows[k]);
  }
}

/* The points of a row of windows. */
SIMD_FUNCTION void winograd_row_of(const float *windows, winograd_row *points) {
  winograd_row window[TAPS], columns[EXTENT_H * WINDOW_W];
  for (int tap = 0; tap < TAPS; tap++) {
    winograd_floats row;
    __builtin_memcpy(&row, windows + tap * LANES, sizeof row);
    window[tap] = __builtin_convertvector(row, winograd_row);
  }
  winograd_taps(EXTENT_H, EXTENT_W, WINDOW_H, WINDOW_W, window, columns, points);
}

/* A vector of windows, in two rows. points: [POINTS][CHANNELS][LANES], from the channel on. */
SIMD_FUNCTION void winograd_vector(const float *windows, float *points) {
  winograd_row first[POINTS], second[POINTS];
  winograd_row_of(windows, first);
  winograd_row_of(windows + WINOGRAD_ROW, second);
  for (int point = 0; point < POINTS; point++) {
    winograd_floats rows[] = {__builtin_convertvector(first[point], winograd_floats),
                              __builtin_convertvector(second[point], winograd_floats)};
    __builtin_memcpy(points + point * CHANNELS * LANES, rows, sizeof rows);
  }
}

/* w: [groups][kernels][channels][WINDOW_H][WINDOW_W], `kernels` and `channels` of one group. scratch: a slot for each
 * of `slots` workers, `slot` floats apart: points [POINTS][CHANNELS][LANES], then windows [TURNED][LANES]. Workers past
 * `slots` have nothing to do. */
static void winograd_weights(const Team *team, const float *w, float *packed, float *scratch, int64_t groups,
                             int64_t channels, int64_t kernels, int64_t slots, int64_t slot) {
  int64_t vectors = ceil_div(kernels, LANES), parts = ceil_div(channels, CHANNELS), item, end;
  int64_t workers = min_i64(slots, team->size), rank = min_i64(team->rank, workers);
  float *points = scratch + rank * slot, *windows = points + POINTS * CHANNELS * LANES;
  item = share_begin(groups * vectors * parts, rank, workers);
  end = rank < workers ? share_begin(groups * vectors * parts, rank + 1, workers) : item;
  for (; item < end; item++) {
    int64_t channel = item % parts * CHANNELS, vector = item / parts % vectors, group = item / parts / vectors;
    int64_t first = vector / OC_VECTORS * OC_VECTORS, width = min_i64(OC_VECTORS, vectors - first) * LANES;
    int64_t kernel = vector * LANES, n = min_i64(channels - channel, CHANNELS);
    float *to = packed + (group * vectors + first) * LANES * POINTS * channels;
    winograd_beside(w + ((group * kernels + kernel) * channels + channel) * TAPS, channels * TAPS, kernels - kernel,
                    n * TAPS, windows);
    for (int64_t c = 0; c < n; c++) winograd_vector(windows + c * TAPS * LANES, points + c * LANES);
    to += channel * width + (vector - first) * LANES;
    for (int64_t point = 0; point < POINTS; point++)
      for (int64_t c = 0; c < n; c++)
        vstore(to + (point * channels + c) * width, vload(points + (point * CHANNELS + c) * LANES));
  }
}
