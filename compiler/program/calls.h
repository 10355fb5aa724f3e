/* SPDX-License-Identifier: MIT */
/* What the emitter holds once every node is lowered: specialised kernels and the calls of the schedule, in order. */
#ifndef RNNCC_CALLS_H
#define RNNCC_CALLS_H

#include "template/specialise.h"

typedef struct Argument {
  const char *parameter, *expression;
} Argument;

/* A value that a call touches, found in its arguments' expressions. */
typedef struct Access {
  Value *value;
  bool writes; /* through a parameter that is not const */
} Access;

/* A part of the schedule that runs not at all or again and again: the body of a loop, a branch. */
typedef struct Region {
  const struct Region *outer; /* NULL: the schedule itself */
  int first, last;            /* indices of the lines that open and close it */
} Region;

/* Lines of C between the calls, which every worker runs. They stand in the same list. */
typedef enum LineKind { LINE_NONE, LINE_PLAIN, LINE_OPENS, LINE_TURNS, LINE_CLOSES } LineKind;

struct KernelCall {
  Emitter *emitter;
  LineKind line; /* not LINE_NONE: `text`, and no kernel */
  const char *text;
  const Region *region; /* that it stands in; a line that opens or closes one stands outside */
  const Region *opens;  /* of a line */
  int step;             /* of a call: its row of the profile */
  const Node *node;
  const SpecialisedKernel *kernel;
  int n_arguments, n_accesses;
  Argument *arguments; /* one a parameter of the kernel */
  Access *accesses;
  const char *guard; /* a condition of the dims, without which there is nothing to do; NULL: there always is */
  int n_measured;
  const DimSymbol **measured; /* the dims that it finds */
  double flops, bytes;
  bool no_barrier_after;
  const Wavefront *wavefront; /* NULL: the call runs once, by the whole team */
  int layer;                  /* of the wavefront */
};

typedef struct RangeCheck {
  const Value *value;
  int64_t lo, hi;
  const Dim *hi_dim; /* NULL: none */
  const char *what;
} RangeCheck;

typedef struct EmittedKernel {
  const char *key;  /* template and choices: equal keys share a kernel */
  const Node *node; /* the first one it serves */
  const SpecialisedKernel *kernel;
} EmittedKernel;

struct Emitter {
  Arena *arena;
  Graph *graph;
  int n_kernels, kernel_capacity;
  EmittedKernel *kernels;
  int n_calls, call_capacity;
  KernelCall **calls;
  int n_steps, n_nodes;
  int n_values, value_capacity, home_capacity;
  Value **values;       /* of the graph and of all bodies in it, by id */
  const Region **homes; /* by id: where the value is made anew each time; NULL: in the schedule itself */
  const Region *region; /* that calls are made in now; NULL: the schedule itself */
  int n_checks, check_capacity;
  RangeCheck *checks;
  const Wavefront *wavefront; /* that calls are made of now, and of which layer; or NULL */
  int layer;
  bool may_fault; /* some kernel can find a value out of range while running */
};

/* The calls *first .. *last, inclusive, run interleaved with this one: those of its wavefront, or it alone. */
void calls_beside(const Emitter *emitter, int call, int *first, int *last);

bool identifier_char(char c); /* of a C identifier */

/* The root value's own region. */
const Region *home_of(const Emitter *emitter, const Value *root);

/* Runs every node's family. The values' places are decided afterwards, by plan_memory. */
Emitter *lower(Graph *graph);

#endif
