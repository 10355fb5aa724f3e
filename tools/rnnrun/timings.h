/* SPDX-License-Identifier: MIT */
/* Times of one thing, kept sorted. */
#ifndef RNNRUN_TIMINGS_H
#define RNNRUN_TIMINGS_H

#include <stddef.h>

typedef struct Timings {
  size_t count;
  double *sorted;
} Timings;

Timings timings_new(size_t most);
void timings_free(Timings *timings);
void timings_add(Timings *timings, double time); /* at most `most` times */

/* Nearest rank; 0.5 is the median. */
double timings_quantile(const Timings *timings, double fraction);
double timings_mean(const Timings *timings);

/* Whether the median's relative standard error is at most `part`. False for a single time. */
int timings_precise(const Timings *timings, double part);

#endif
