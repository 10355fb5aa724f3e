/* SPDX-License-Identifier: MIT */
/* What the emitter holds once every node is lowered: specialised kernels and the calls of the schedule, in order. */
#ifndef RNNCC_CALLS_H
#define RNNCC_CALLS_H

#include "emit/specialise.h"

typedef struct Argument {
  const char *parameter, *expression;
} Argument;

/* A value that a call touches, found in its arguments' expressions. */
typedef struct Access {
  Value *value;
  bool writes; /* through a parameter that is not const */
} Access;

struct KernelCall {
  Emitter *emitter;
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
  int n_checks, check_capacity;
  RangeCheck *checks;
  const Wavefront *wavefront; /* that calls are made of now, and of which layer; or NULL */
  int layer;
  bool may_fault; /* some kernel can find a value out of range while running */
};

/* The calls *first .. *last, inclusive, run interleaved with this one: those of its wavefront, or it alone. */
void calls_beside(const Emitter *emitter, int call, int *first, int *last);

bool identifier_char(char c); /* of a C identifier */

/* Runs every node's family. The values' places are decided afterwards, by plan_memory. */
Emitter *lower(Graph *graph);

#endif
