/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_QUANTISE_WATCH_H
#define RNNCC_QUANTISE_WATCH_H

#include "quantise/layers.h"
#include "quantise/quantise.h"

/* Runs the network on the samples that are not held out, twice, and sets what was seen of each activation. */
void watch_activations(Layers *layers, const Samples *samples, const QuantiseOptions *options,
                       const QuantiseBuild *build, const char *folder);

#endif
