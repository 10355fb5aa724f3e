/* SPDX-License-Identifier: MIT */
/* Working memory where gradients will be. */
#ifndef RNNCC_GRADIENT_ROOM_H
#define RNNCC_GRADIENT_ROOM_H

#include "program/liveness.h"
#include "program/plan_memory.h"

/* Has spans that end before a gradient is written in its memory: sets their values' places, takes them out of the
 * plan's spans, and moves their intervals to in_gradients. For a plan with spans and without offsets. */
void use_gradient_room(Program *program, const Liveness *live, MemoryPlan *plan);

#endif
