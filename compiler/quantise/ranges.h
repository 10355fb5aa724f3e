/* SPDX-License-Identifier: MIT */
/* From what the runs saw of an activation to its scale and zero point in u8. */
#ifndef RNNCC_QUANTISE_RANGES_H
#define RNNCC_QUANTISE_RANGES_H

#include "quantise/layers.h"

typedef enum RangeRule {
  RANGES_MINMAX,     /* all that was seen */
  RANGES_PERCENTILE, /* all but the outermost values */
  RANGES_MSE,        /* the least mean of the squared error */
} RangeRule;

/* First round: the least and the most; the second, with bins, counts. `means` are sums until watch_activations() ends.
 */
void seen_extremes(Seen *seen, const LayerData *activation, const float *data, const int64_t *shape);
void seen_counts(Seen *seen, const float *data, int64_t count);

/* Sets range, scale and zero point of each activation; 0 is always among the 256 numbers. */
void choose_ranges(Layers *layers, RangeRule rule, double percentile);

#endif
