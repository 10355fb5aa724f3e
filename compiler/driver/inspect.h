/* SPDX-License-Identifier: MIT */
/* `rnncc inspect` and `rnncc targets`: tables for people, on stdout. */
#ifndef RNNCC_INSPECT_H
#define RNNCC_INSPECT_H

#include "driver/options.h"
#include "driver/steps.h"
#include "program/plan_memory.h"

void inspect_module(const Options *options, Program *program);
/* rnncc inspect --explain */
void inspect_verdict(const Options *options, const Program *program);
void inspect_choices(const Options *options, Graph *graph);
/* Which nodes run on integers: takes the steps on which that depends. */
void inspect_int8(Compilation *compilation);
void inspect_targets(Arena *arena);

#endif
