/* SPDX-License-Identifier: MIT */
/*
 * Times of two modules that run in turns, so that both run under the same conditions, in a child process, which may
 * crash or hang without harm. Then the difference of the medians is meaningful even if the clock speed varies.
 */
#ifndef RNNCC_MEASURE_H
#define RNNCC_MEASURE_H

#include "ir/graph.h"

typedef struct Duel {
  const char *modules[2]; /* if the second is NULL, the first runs alone */
  int threads;
  double seconds;      /* to measure for, without loading */
  double median_us[2]; /* result: of one run each, in the quieter turns */
  bool disturbed;      /* result: other programs used the CPU, more than now and then */
} Duel;

/* `graph` is the model of both modules. Inputs have the dims' optimum: floats are small noise, sequence lengths are all
 * steps, other integers are zero. Returns NULL, or the reason why there are no times, in the arena. */
const char *measure_duel(Graph *graph, Duel *duel);

#endif
