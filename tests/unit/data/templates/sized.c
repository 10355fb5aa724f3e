/* SPDX-License-Identifier: MIT */
#include <stdint.h>

/* legal: 1..1000 */
enum { ROWS = 4 };
/* legal: 1..1000 */
enum { COLUMNS = 6 };
/* legal: 1..8 */
enum { STEP = 2 };

/* What follows from them. */
enum {
  STEPS = (COLUMNS + STEP - 1) / STEP, /* of a row */
  WIDTH = STEP * 3,
  SPACE = ROWS * STEPS
};

static inline int64_t twice(int64_t x) { return 2 * x; }

static inline int64_t place(int64_t row, int64_t column) { return row * COLUMNS + column; }

static inline int64_t end_of(int64_t row) { return place(row, COLUMNS); }

/* Clears ROWS rows. */
static void sized(float *out, int64_t n) {
  float zeros[WIDTH] = {0};
  for (int64_t r = 0; r < ROWS; r++)
    for (int64_t i = place(r, 0); i < end_of(r); i++) out[i] = zeros[i % WIDTH];
  if (COLUMNS == 6) out[0] = (float)twice(n + SPACE);
}
