/* SPDX-License-Identifier: MIT */
/* The memory plan as a picture. */
#ifndef RNNCC_DRAW_MEMORY_H
#define RNNCC_DRAW_MEMORY_H

#include "program/plan_memory.h"
#include "support/text.h"

/* An SVG: each value is a bar over the steps that it is live at, as high as its bytes, at its offset. Lines show the
 * end of the arena, the most bytes that are live at once, and those live at each step. */
Text draw_memory(const Program *program, const MemoryPlan *plan);

#endif
