/* SPDX-License-Identifier: MIT */
/*
 * y[i] = table[x[i]], of bytes: what an element-wise function makes of each. x and y are images of equally many bytes,
 * in any layout. Each worker takes one contiguous share.
 */
#include "kernel.h"

typedef uint64_t word __attribute__((aligned(1), may_alias));

enum { WORD = sizeof(word) };

/* Eight bytes at a time: each costs a load, of the table. */
static void map_row(const uint8_t *table, const uint8_t *x, uint8_t *y, int64_t count) {
  int64_t i = 0;
  for (; i + WORD <= count; i += WORD) {
    word from = *(const word *)(x + i), to = 0;
#pragma clang loop unroll(full)
    for (int k = 0; k < WORD; k++) to |= (word)table[from >> 8 * k & 255] << 8 * k;
    *(word *)(y + i) = to;
  }
  for (; i < count; i++) y[i] = table[x[i]];
}

/* x, y: [images], `count` bytes each, the next one x_image and y_image further on. table: 256 bytes. */
static void map_bytes(const Team *team, const uint8_t *x, const uint8_t *table, uint8_t *y, int64_t images,
                      int64_t count, int64_t x_image, int64_t y_image) {
  int64_t begin, end;
  team_share(team, images * count, &begin, &end);
  while (begin < end) {
    int64_t image = begin / count, at = begin % count, part = min_i64(count - at, end - begin);
    map_row(table, x + image * x_image + at, y + image * y_image + at, part);
    begin += part;
  }
}
