/* SPDX-License-Identifier: MIT */
#include "timings.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"

Timings timings_new(size_t most) { return (Timings){.sorted = allocate(most * sizeof(double))}; }

void timings_free(Timings *timings) { free(timings->sorted); }

void timings_add(Timings *timings, double time) {
  size_t at = timings->count++;
  while (at > 0 && timings->sorted[at - 1] > time) at--;
  double *place = timings->sorted + at;
  memmove(place + 1, place, (timings->count - 1 - at) * sizeof time);
  *place = time;
}

double timings_quantile(const Timings *timings, double fraction) {
  return timings->sorted[(size_t)(fraction * (double)(timings->count - 1) + 0.5)];
}

double timings_mean(const Timings *timings) {
  double sum = 0;
  for (size_t i = 0; i < timings->count; i++) sum += timings->sorted[i];
  return sum / (double)timings->count;
}

/* Of n values of a normal distribution, whose middle half is 1.349 sigma wide, the median's error is 1.253 sigma over
 * the root of n. A few outliers do not move it, as they would a mean's. */
int timings_precise(const Timings *timings, double part) {
  if (timings->count < 2) return 0;
  double middle_half = timings_quantile(timings, 0.75) - timings_quantile(timings, 0.25);
  double scaled = 1.253 / 1.349 * middle_half, allowed = part * timings_quantile(timings, 0.5);
  return scaled * scaled <= allowed * allowed * (double)timings->count;
}
