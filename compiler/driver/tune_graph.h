/* SPDX-License-Identifier: MIT */
/* `rnncc tune`: builds the modules to measure by the same steps as any other. */
#ifndef RNNCC_TUNE_GRAPH_H
#define RNNCC_TUNE_GRAPH_H

#include "driver/options.h"
#include "tune/tune.h"

/* needs: choose_layouts. */
void tune_graph(const Options *options, Graph *graph);

#endif
