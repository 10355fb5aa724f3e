/* SPDX-License-Identifier: MIT */
/* Modules of trials, as many at once as there are CPUs, each in a process of its own: a mistake in one ends that one.
 */
#ifndef RNNCC_BUILD_TRIALS_H
#define RNNCC_BUILD_TRIALS_H

#include "tune/trial_case.h"
#include "tune/trials.h"
#include "tune/tune.h"

/* Builds in the tuning's folder, with `runtime`, the runtime's object file. Sets each one's module: NULL, after a
 * warning, if it could not be built. */
void build_trials(const Tuning *tuning, const char *runtime, const TrialCase *trial_case, Trial **trials, int count);

#endif
