/* SPDX-License-Identifier: MIT */
#include "quantise/ranges.h"

#include <math.h>

#include "support/numbers.h"

enum { STEPS = 255, TRIED = 40 };

/* Of activations that are always 0, or nearly: products of two scales stay normal floats. */
static const double LEAST_SCALE = 1e-12;

/* ---- what is seen ---- */

/* Sums by channel: the mean's numerators. */
void seen_extremes(Seen *seen, const LayerData *activation, const float *data, const int64_t *shape) {
  int64_t after = 1, count = 1;
  for (int axis = 0; axis < activation->value->rank; axis++) {
    count *= shape[axis];
    if (axis > activation->channel_axis) after *= shape[axis];
  }
  for (int64_t i = 0; i < count; i++) {
    double x = (double)data[i];
    if (!isfinite(x)) {
      seen->not_finite++;
      continue;
    }
    seen->least = min_double(seen->least, x);
    seen->most = max_double(seen->most, x);
    if (seen->means) seen->means[i / after % activation->n_channels] += x;
  }
  seen->count += count;
}

static double range_of(const Seen *seen) { return seen->most - seen->least; }

void seen_counts(Seen *seen, const float *data, int64_t count) {
  double bins = HISTOGRAM_BINS / max_double(range_of(seen), 1e-300);
  for (int64_t i = 0; i < count; i++) {
    if (!isfinite(data[i])) continue;
    int64_t bin = (int64_t)(((double)data[i] - seen->least) * bins);
    seen->bins[clamp_int(0, bin, HISTOGRAM_BINS - 1)]++;
  }
}

/* ---- scales ---- */

typedef struct Grid {
  double scale;
  int zero;
} Grid;

static Grid grid_of(double least, double most) {
  double scale = max_double((most - least) / STEPS, LEAST_SCALE);
  return (Grid){scale, (int)clamp_int(0, (int64_t)nearbyint(-least / scale), STEPS)};
}

static double middle_of(const Seen *seen, int bin) {
  return seen->least + (bin + 0.5) * range_of(seen) / HISTOGRAM_BINS;
}

/* Sum of the squared errors of the bins' middles. */
static double squared_error(const Seen *seen, double least, double most) {
  Grid grid = grid_of(least, most);
  double sum = 0;
  for (int bin = 0; bin < HISTOGRAM_BINS; bin++) {
    if (!seen->bins[bin]) continue;
    double x = middle_of(seen, bin), q = nearbyint(x / grid.scale) + grid.zero;
    q = max_double(0, min_double(q, STEPS));
    double off = (q - grid.zero) * grid.scale - x;
    sum += (double)seen->bins[bin] * off * off;
  }
  return sum;
}

/* Both ends shrink, each by itself; an end at 0 stays. */
static void least_error(const Seen *seen, double *least, double *most) {
  double low = *least, high = *most, best = squared_error(seen, low, high);
  for (int i = 0; i < (low < 0 ? TRIED : 1); i++)
    for (int k = 0; k < (high > 0 ? TRIED : 1); k++) {
      double l = low * (1 - (double)i / TRIED), h = high * (1 - (double)k / TRIED), error = squared_error(seen, l, h);
      if (error < best) best = error, *least = l, *most = h;
    }
}

/* The ends of the share of values that are kept, of each tail half of the others. */
static void without_tails(const Seen *seen, double percentile, double *least, double *most) {
  int64_t count = 0, below = 0, above = 0;
  for (int bin = 0; bin < HISTOGRAM_BINS; bin++) count += seen->bins[bin];
  int64_t out = (int64_t)((double)count * (1 - percentile / 100) / 2);
  int low = 0, high = HISTOGRAM_BINS - 1;
  while (low < high && (below += seen->bins[low]) <= out) low++;
  while (high > low && (above += seen->bins[high]) <= out) high--;
  *least = max_double(*least, seen->least + low * range_of(seen) / HISTOGRAM_BINS);
  *most = min_double(*most, seen->least + (high + 1) * range_of(seen) / HISTOGRAM_BINS);
}

static void choose_range(LayerData *a, RangeRule rule, double percentile) {
  const Seen *seen = &a->seen;
  a->usable = seen->not_finite == 0 && seen->count > 0;
  if (!a->usable) return;
  a->least = seen->least, a->most = seen->most;
  if (rule == RANGES_PERCENTILE) without_tails(seen, percentile, &a->least, &a->most);
  a->least = min_double(a->least, 0), a->most = max_double(a->most, 0);
  if (rule == RANGES_MSE) least_error(seen, &a->least, &a->most);
  Grid grid = grid_of(a->least, a->most);
  a->scale = (float)grid.scale;
  a->zero = (uint8_t)grid.zero;
}

void choose_ranges(Layers *layers, RangeRule rule, double percentile) {
  for (int i = 0; i < layers->n_activations; i++)
    if (layers->activations[i].root == i) choose_range(&layers->activations[i], rule, percentile);
  for (int i = 0; i < layers->n_activations; i++) {
    LayerData *a = &layers->activations[i];
    const LayerData *root = &layers->activations[a->root];
    a->usable = root->usable, a->least = root->least, a->most = root->most, a->scale = root->scale,
    a->zero = root->zero;
  }
}
