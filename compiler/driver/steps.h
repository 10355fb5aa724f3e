/* SPDX-License-Identifier: MIT */
/* Runs the steps of passes.def, with the times, checks and dumps that the options ask for. */
#ifndef RNNCC_DRIVER_STEPS_H
#define RNNCC_DRIVER_STEPS_H

#include "driver/options.h"
#include "emit/unit.h"
#include "ir/graph.h"

typedef enum StepName {
#define STEP(name, says) STEP_##name,
#define GRAPH_PASS(name, says) STEP(name, says)
#define SUB_PASS(group, name, says) STEP(name, says)
#define PROGRAM_PASS(name, settles, says) STEP(name, says)
#include "passes.def"
  STEPS,
  LAST_LAYOUT_STEP = STEP_find_stacks,   /* layouts are final; kernels are not chosen yet */
  LAST_PROGRAM_STEP = STEP_join_weights, /* the program is final */
} StepName;

/* What is compiled of one network for one target. A field is set from the step on that makes it. */
typedef struct Branch Branch;
struct Branch {
  const PlannedModel *model;
  const Config *config;     /* what the options ask of a graph */
  Graph *graph;             /* by load */
  Program *program;         /* by lower */
  Unit *unit;               /* by emit */
  int n_told;               /* remarks of the graph that are printed */
  const Branch *derivation; /* of its weights that can change, by add_derivation; NULL: none */
};

/* A compilation between steps. Each step is done for all branches before the next one. */
typedef struct Compilation {
  const Options *options;
  Arena *arena;
  StepName next; /* the next step */
  int n_branches, n_derivations;
  ModelFiles files;   /* by load */
  Branch *branches;   /* in the order of the options' targets, and for each in that of their models; then derivations */
  const char *folder; /* by write_unit */
} Compilation;

/* Of all networks, for all targets. */
Compilation *compilation_new(const Options *options, Arena *arena);
/* Of the first network, with this config in place of the one that the options ask for. */
Compilation *compilation_of_model(const Options *options, Arena *arena, const Config *config);
/* Of a graph of no network, from the step `next` on. */
Compilation *compilation_of_graph(const Options *options, Graph *graph, StepName next);

/* The header for applications. A network's context is that of the target which needs the largest. */
Text application_header(const Compilation *compilation);

/* For a device: the memory that each network needs, to stdout. */
void tell_sizes(const Compilation *compilation);

/* Runs the remaining steps up to and including `last`. */
void run_steps(Compilation *compilation, StepName last);

/* For --dump-after: the name of a step, or of a group's last step; NULL: none. */
const char *step_find(const char *name);
const char *steps_near(Arena *arena, const char *name); /* of such names, the nearest first */
void steps_list(void);                                  /* to stdout */

#endif
