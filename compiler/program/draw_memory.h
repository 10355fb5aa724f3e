/* SPDX-License-Identifier: MIT */
/* The memory plan as a picture. */
#ifndef RNNCC_DRAW_MEMORY_H
#define RNNCC_DRAW_MEMORY_H

#include "program/plan_memory.h"
#include "support/text.h"

/* An SVG: each value is a bar over the steps at which it is live, with its bytes as height, at its offset. Lines show
 * the end of the arena, the peak of live bytes, and the bytes live at each step. */
Text draw_memory(const Program *program);

#endif
