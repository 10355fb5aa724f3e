/* SPDX-License-Identifier: MIT */
/* The two tuners, of convolutions and of recurrent layers. */
#ifndef RNNCC_TUNERS_H
#define RNNCC_TUNERS_H

#include "tune/tune.h"

typedef struct ConvolutionTuner ConvolutionTuner;
typedef struct RecurrentTuner RecurrentTuner;

/* They add to *tasks how many there are, and to *done those that the output has winners of. */
ConvolutionTuner *convolution_tuner(Tuning *tuning, int *tasks, int *done);
RecurrentTuner *recurrent_tuner(Tuning *tuning, int *tasks, int *done);

void tune_convolutions(ConvolutionTuner *tuner);
void tune_recurrent(RecurrentTuner *tuner);

#endif
