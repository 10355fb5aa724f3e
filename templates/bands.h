/* SPDX-License-Identifier: MIT */
/*
 * A tensor's rows (or pixels) cut into bands, one a worker, of all its channel blocks: what a worker writes by one
 * kernel it reads itself by the next, but for what windows take from the neighbouring bands. Cut by channels instead,
 * every line would be read by several cores, and a line that two cores hold is slow to write again: measured on two
 * cores of an EPYC 9004, 9 GB/s and at times 2, against 117 where only the writer holds it.
 */
#ifndef BANDS_H
#define BANDS_H

#include "kernel.h"

typedef struct Bands {
  int64_t rows, blocks; /* of an image */
  int64_t begin, end;   /* of the order (image, row, block): this worker's */
} Bands;

static inline Bands bands_of(const Team *team, int64_t n, int64_t rows, int64_t blocks) {
  Bands bands = {.rows = rows, .blocks = blocks};
  team_share(team, n * rows * blocks, &bands.begin, &bands.end);
  return bands;
}

/* The first row of this block of the image that does not come before `item` in the order. */
static inline int64_t band_row(const Bands *bands, int64_t item, int64_t image, int64_t block) {
  int64_t row = ceil_div(max_i64(item - block, 0), bands->blocks) - image * bands->rows;
  return min_i64(max_i64(row, 0), bands->rows);
}
static inline int64_t band_begin(const Bands *bands, int64_t image, int64_t block) {
  return band_row(bands, bands->begin, image, block);
}
static inline int64_t band_end(const Bands *bands, int64_t image, int64_t block) {
  return band_row(bands, bands->end, image, block);
}

#endif
