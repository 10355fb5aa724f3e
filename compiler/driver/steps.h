/* SPDX-License-Identifier: MIT */
/* The steps of passes.def, and a model's way through them; what the options ask for around each: times, checks, dumps.
 */
#ifndef RNNCC_STEPS_H
#define RNNCC_STEPS_H

#include "driver/options.h"
#include "emit/unit.h"
#include "ir/graph.h"
#include "program/plan_memory.h"

typedef enum StepName {
#define STEP(name, says) STEP_##name,
#define GRAPH_PASS(name, says) STEP(name, says)
#define SUB_PASS(group, name, says) STEP(name, says)
#include "passes.def"
  STEPS,
  LAST_LAYOUT_STEP = STEP_find_stacks,     /* the graph is as kernels are chosen for it */
  LAST_PROGRAM_STEP = STEP_verify_program, /* all that is emitted is decided */
} StepName;

/* A model on its way. What a step makes is set from that step on. */
typedef struct Compilation {
  const Options *options;
  Arena *arena;
  const Config *config; /* what the options ask of a graph */
  StepName next;        /* the first step that has not been taken */
  Graph *graph;         /* by load */
  Program *program;     /* by lower */
  MemoryPlan *plan;     /* by plan_memory */
  Unit *unit;           /* by emit */
  const char *folder;   /* by write_unit */
  int n_told;           /* of the graph's remarks */
} Compilation;

Compilation *compilation_new(const Options *options, Arena *arena);

/* All steps up to `last`, included, that have not been taken. */
void run_steps(Compilation *compilation, StepName last);

/* Names of steps and of groups of steps, for --dump-after: the step's own name, or that of the group's last step; NULL:
 * there is none. */
const char *step_find(const char *name);
void steps_list(void); /* to stdout */

#endif
