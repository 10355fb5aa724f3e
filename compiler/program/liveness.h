/* SPDX-License-Identifier: MIT */
/* When each value must keep its bytes, in steps of the schedule. */
#ifndef RNNCC_LIVENESS_H
#define RNNCC_LIVENESS_H

#include "program/program.h"

typedef struct Liveness {
  int end;           /* one past the last step: the end of the run */
  int *first, *last; /* by value id of a root; first = -1: never touched */
} Liveness;

/* Sets Item.step, and of each block the steps before and after it. Returns how many there are. */
int number_items(Program *program);

Liveness find_liveness(Program *program);

/* The value is needed at this step too. */
void live_at(Liveness *live, Value *value, int step);

/* A value that the context carries from run to run. */
bool is_state_value(const Graph *graph, const Value *root);

#endif
