/* SPDX-License-Identifier: MIT */
/*
 * Each distinct convolution of a model is taken out of it and measured by itself (NeoCPU section 3.3.1): the schedules
 * that should be best are built, several at once, measured one by one, and checked against the reference kernel. Each
 * trial is recorded at once, and the winner at the end of a task.
 */
#ifndef RNNCC_TUNE_CONVOLUTIONS_H
#define RNNCC_TUNE_CONVOLUTIONS_H

#include "tune/tune.h"

typedef struct ConvolutionTuner ConvolutionTuner;

/* Adds the number of tasks to *tasks, and to *done the number of those whose winner the output already has. */
ConvolutionTuner *convolution_tuner(Tuning *tuning, int *tasks, int *done);
void tune_convolutions(ConvolutionTuner *tuner);

#endif
