/* SPDX-License-Identifier: MIT */
#include "kernels/attention/band.h"

#include <math.h>

#include "ir/tensor.h"
#include "support/numbers.h"

/* Heads that share their keys stand below each other, with one mask for each. */
enum { MAX_GROUPS = 64 };
/* A mask that is kept beside its band pays off if the band is at most this share of it. */
static const double MOST_SEEN = 0.75;

typedef struct Mask {
  const float *data;
  int64_t matrices, rows, columns;
  double hidden; /* a key at most this hides */
} Mask;

static bool row_sees(const Mask *mask, int64_t row, double hidden) {
  for (int64_t i = 0; i < mask->columns; i++)
    if (!((double)mask->data[row * mask->columns + i] <= hidden)) return true;
  return false;
}

/* Where a row sees no key, numbers that only are large would hide none. */
static double hidden_in(const Mask *mask) {
  for (int64_t row = 0; row < mask->matrices * mask->rows; row++)
    if (!row_sees(mask, row, LARGE_NEGATIVE)) return -INFINITY;
  return LARGE_NEGATIVE;
}

/* The least band of that period that has all keys which are seen. */
static Band hull(const Mask *mask, int64_t period) {
  Band band = {INT64_MAX, INT64_MIN, period, false, 0};
  for (int64_t i = 0; i < mask->matrices * mask->rows * mask->columns; i++) {
    int64_t ahead = i % mask->columns - i / mask->columns % mask->rows % period;
    if ((double)mask->data[i] <= mask->hidden) continue;
    band.low = min_int(band.low, ahead);
    band.high = max_int(band.high, ahead);
  }
  return band;
}

static bool in_band(const Band *band, int64_t row, int64_t column) {
  int64_t ahead = column - row % band->period;
  return band->low <= ahead && ahead <= band->high;
}

/* Is it 0 in all of the band? */
static bool is_whole(const Mask *mask, const Band *band) {
  for (int64_t i = 0; i < mask->matrices * mask->rows * mask->columns; i++)
    if (in_band(band, i / mask->columns % mask->rows, i % mask->columns) && mask->data[i] != 0) return false;
  return true;
}

static double seen_share(const Mask *mask, const Band *band) {
  int64_t seen = 0;
  for (int64_t row = 0; row < mask->rows; row++)
    for (int64_t column = 0; column < mask->columns; column++) seen += in_band(band, row, column);
  return (double)seen / (double)(mask->rows * mask->columns);
}

bool band_of_mask(const Value *mask, Band *band) {
  if (!value_is_known(mask) || mask->rank < 2 || value_count(mask) == 0) return false;
  Mask m = {.data = mask->data,
            .rows = dim_value(mask->shape[mask->rank - 2]),
            .columns = dim_value(mask->shape[mask->rank - 1])};
  m.matrices = value_count(mask) / (m.rows * m.columns);
  m.hidden = hidden_in(&m);
  for (int64_t groups = 1; groups <= min_int(m.rows, MAX_GROUPS); groups++) {
    if (m.rows % groups) continue;
    *band = hull(&m, m.rows / groups);
    if (band->low > band->high) return false;
    band->seen = seen_share(&m, band);
    band->whole = is_whole(&m, band);
    if (band->whole) return band->seen < 1;
  }
  *band = hull(&m, m.rows);
  band->seen = seen_share(&m, band);
  return band->seen <= MOST_SEEN;
}
