/* SPDX-License-Identifier: MIT */
/* Times of one thing, sorted as they come. */
#ifndef RNNRUN_TIMINGS_H
#define RNNRUN_TIMINGS_H

#include <stddef.h>

typedef struct Timings {
  size_t count;
  double *sorted;
} Timings;

Timings timings_new(size_t most);
void timings_add(Timings *timings, double time); /* at most `most` times */

/* Nearest rank; 0.5 is the median. */
double timings_quantile(const Timings *timings, double fraction);

/* Whether the median's standard error is at most this part of it; of one time it is not known. */
int timings_precise(const Timings *timings, double part);

#endif
