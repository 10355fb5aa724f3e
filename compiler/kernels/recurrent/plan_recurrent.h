/* SPDX-License-Identifier: MIT */
/* The passes for recurrent layers. */
#ifndef RNNCC_PLAN_RECURRENT_H
#define RNNCC_PLAN_RECURRENT_H

#include "ir/graph.h"

void find_stacks(Graph *graph);
void plan_recurrent(Graph *graph); /* chooses the variant of each layer */

#endif
