/* SPDX-License-Identifier: MIT */
/* The modules that the tuner measures, by the same steps as any other. */
#ifndef RNNCC_TRIAL_H
#define RNNCC_TRIAL_H

#include "tune/tune.h"

extern const TuneBuild trial_build;

#endif
