/* SPDX-License-Identifier: MIT */
/* The passes over a Program, in their order. The contract of each stands above its definition. */
#ifndef RNNCC_PROGRAM_PASSES_H
#define RNNCC_PROGRAM_PASSES_H

#include "program/plan_memory.h"
#include "program/program.h"

Program *lower(Graph *graph);
void skip_empty(Program *program);
MemoryPlan *plan_memory(Program *program);
void place_weights(Program *program);
void place_barriers(Program *program);
void load_dims(Program *program);
void verify_program(Program *program);

#endif
