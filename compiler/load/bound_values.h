/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_BOUND_VALUES_H
#define RNNCC_BOUND_VALUES_H

#include "load/settings.h"

/* Of each value that --bound names, what reads it reads the output of an ExpectBetween in its place. The model's
 * outputs stay. needs: captures. keeps: the order of nodes, by what they read. */
void bound_values(Graph *graph, const ModelSettings *settings);

#endif
