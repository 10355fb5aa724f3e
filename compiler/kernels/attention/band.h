/* SPDX-License-Identifier: MIT */
/* Masks that hide all keys but a band, as causal ones and windows do. */
#ifndef RNNCC_BAND_H
#define RNNCC_BAND_H

#include "ir/graph.h"

/* A key to whose score a number below is added has weight 0 beside one that is seen, unless scores are as large. */
static const double LARGE_NEGATIVE = -1e30;

/* Query i sees keys i % period + low .. i % period + high. */
typedef struct Band {
  int64_t low, high, period;
  bool whole;  /* all of them, and nothing is added to their scores */
  double seen; /* share of all keys */
} Band;

/* Of a constant mask. False if it hides too little for a band to gain. */
bool band_of_mask(const Value *mask, Band *band);

#endif
