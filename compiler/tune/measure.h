/* SPDX-License-Identifier: MIT */
/*
 * Times of two modules that run in turns, so that both meet the same machine: in a child process, which may crash or
 * hang without harm. The difference of two medians then means something even where the clock speed wanders.
 */
#ifndef RNNCC_MEASURE_H
#define RNNCC_MEASURE_H

#include "ir/graph.h"

typedef struct Duel {
  const char *modules[2]; /* the second may be NULL: then the first runs alone */
  int threads;
  double seconds;      /* to measure for, without loading */
  double median_us[2]; /* set: of one run each, in the quieter turns */
  bool disturbed;      /* set: other programs took the CPU away, more than now and then */
} Duel;

/* `graph` is the model that the modules are of: its inputs are filled at the dims' optimum, floats with small noise,
 * sequence lengths with all steps, other integers with zero. NULL, or why there are no times: in the arena. */
const char *measure_duel(Graph *graph, Duel *duel);

#endif
