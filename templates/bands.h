/* SPDX-License-Identifier: MIT */
/*
 * A tensor's rows (or pixels) are divided into bands of all channel blocks, one for each worker. So a worker reads what
 * it wrote in the kernel before, except at the borders of bands. Divided by channels, every line would be read by
 * several cores, and a line that two cores hold is slow to write: on two cores of an EPYC 9004, 9 GB/s and at times 2,
 * compared with 117 for a line that only the writer holds.
 */
#ifndef BANDS_H
#define BANDS_H

#include "kernel.h"

typedef struct Bands {
  int64_t rows, blocks; /* of an image */
  int64_t begin, end;   /* this worker's, in the order (image, row, block) */
} Bands;

static inline Bands bands_of(const Team *team, int64_t n, int64_t rows, int64_t blocks) {
  Bands bands = {.rows = rows, .blocks = blocks};
  team_share(team, n * rows * blocks, &bands.begin, &bands.end);
  return bands;
}

/* The first row of this block of the image at or after `item` in the order. */
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

/* Divided by blocks instead, in the order (image, block, row): bands in which this worker has its rows of one block of
 * an image. They have no borders but where two workers divide a block. */
static inline Bands bands_of_block(const Team *team, int64_t n, int64_t rows, int64_t blocks, int64_t image,
                                   int64_t block) {
  Bands bands = {.rows = rows, .blocks = blocks};
  int64_t before = (image * blocks + block) * rows;
  team_share(team, n * blocks * rows, &bands.begin, &bands.end);
  int64_t first = min_i64(max_i64(bands.begin - before, 0), rows), end = min_i64(max_i64(bands.end - before, 0), rows);
  bands.begin = (image * rows + first) * blocks + block;
  bands.end = (image * rows + end) * blocks + block;
  return bands;
}

#endif
