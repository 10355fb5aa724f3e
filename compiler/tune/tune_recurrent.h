/* SPDX-License-Identifier: MIT */
/*
 * For each distinct recurrent layer of a model, the few variants that are predicted to be best are compiled into the
 * whole model and measured there, each against the best so far, and the winner is recorded.
 */
#ifndef RNNCC_TUNE_RECURRENT_H
#define RNNCC_TUNE_RECURRENT_H

#include "tune/tune.h"

typedef struct RecurrentTuner RecurrentTuner;

/* Adds the number of tasks to *tasks, and to *done the number of those that the output already has. */
RecurrentTuner *recurrent_tuner(Tuning *tuning, int *tasks, int *done);
void tune_recurrent(RecurrentTuner *tuner);

#endif
