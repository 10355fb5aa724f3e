/* SPDX-License-Identifier: MIT */
/* `rnncc tune`: builds the modules to measure by the same steps as any other. */
#ifndef RNNCC_TUNE_GRAPH_H
#define RNNCC_TUNE_GRAPH_H

#include "driver/steps.h"
#include "tune/tune.h"

/* needs: choose_layouts. Tunes one network after the other, each in its share of the time that is left. What one has
 * records of by then, the next does not measure again. */
void tune_networks(const Compilation *compilation);

#endif
