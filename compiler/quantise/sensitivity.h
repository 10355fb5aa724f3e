/* SPDX-License-Identifier: MIT */
/*
 * How much each layer in int8 costs, and which go back to f32. The error of the outputs is that of the worst one: the
 * root of sum (got - f32)^2 / sum f32^2 over all runs that are held out; of integers the share that differs.
 */
#ifndef RNNCC_QUANTISE_SENSITIVITY_H
#define RNNCC_QUANTISE_SENSITIVITY_H

#include "quantise/layers.h"
#include "quantise/quantise.h"

/* Sets the error of each layer alone, and which layers are in int8: all that can be, without the most sensitive ones
 * that stand in the way of --max-error. Returns the error with these, of the model as it is written. */
double choose_layers(Layers *layers, const Samples *samples, const QuantiseOptions *options, const QuantiseBuild *build,
                     const char *folder);

#endif
