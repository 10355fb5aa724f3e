/* SPDX-License-Identifier: MIT */
/*
 * Each distinct convolution of a model is taken out of it and tried by itself (NeoCPU section 3.3.1): the schedules
 * that should be best are built, several at once, measured one by one, and checked against the reference kernel. Each
 * trial is recorded at once, and at the end of a task the winner.
 */
#ifndef RNNCC_TUNE_CONVOLUTIONS_H
#define RNNCC_TUNE_CONVOLUTIONS_H

#include "tune/tune.h"

typedef struct ConvolutionTuner ConvolutionTuner;

/* Adds to *tasks how many there are, and to *done those that the output has winners of. */
ConvolutionTuner *convolution_tuner(Tuning *tuning, int *tasks, int *done);
void tune_convolutions(ConvolutionTuner *tuner);

#endif
