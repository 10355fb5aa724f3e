/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_QUANTISE_EQUALISE_H
#define RNNCC_QUANTISE_EQUALISE_H

#include "ir/graph.h"

/* Scales the channels between two layers so that their weights have ranges alike: what the first one's output channel
 * is divided by, the second one's input channel is multiplied by. With only Relu between them, or nothing, the network
 * computes what it did, up to rounding. (Nagel et al. 2019, cross-layer equalisation.) */
void equalise(Graph *graph);

#endif
