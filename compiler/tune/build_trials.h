/* SPDX-License-Identifier: MIT */
/* Builds the modules of trials, as many at once as there are CPUs. Each has a process of its own, so that a mistake in
 * one ends only that one. */
#ifndef RNNCC_BUILD_TRIALS_H
#define RNNCC_BUILD_TRIALS_H

#include "tune/trial_case.h"
#include "tune/trials.h"
#include "tune/tune.h"

/* Builds in the tuning's folder, with `runtime`, the runtime's object file. Sets the module of each trial: NULL, after
 * a warning, if it could not be built. */
void build_trials(const Tuning *tuning, const char *runtime, const TrialCase *trial_case, Trial **trials, int count);

#endif
