/* SPDX-License-Identifier: MIT */
/* When each value is live, in steps of the schedule. */
#ifndef RNNCC_LIVENESS_H
#define RNNCC_LIVENESS_H

#include "program/program.h"

typedef struct Liveness {
  int end;           /* one past the last step: the end of the run */
  int results;       /* to that step outputs and states are needed: the end, or of a graph that is trained the first
                      * step that only gradients need */
  int *first, *last; /* by value id of a root; first = -1: never touched */
} Liveness;

/* Also sets Item.step, and each block's steps before and after it. */
Liveness find_liveness(Program *program);

/* Makes the value live at this step too. */
void live_at(Liveness *live, Value *value, int step);

/* Does the context carry the value from run to run? */
bool is_state_value(const Graph *graph, const Value *root);

#endif
