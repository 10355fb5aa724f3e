/* SPDX-License-Identifier: MIT */
/*
 * How much of a thread's stack calls of a module take, for rnncc_info: known when clang has compiled all of it, and
 * then written into the objects, where the constants are.
 */
#ifndef RNNCC_STACK_NEED_H
#define RNNCC_STACK_NEED_H

#include "link/call_graph.h"

/* A generated unit. */
typedef struct StackUnit {
  CompiledObject object;
  const char *module; /* the symbol of its Module */
  int derivation;     /* the index of the unit that computes its derived weights; -1: there is none */
} StackUnit;

/* Where it cannot be told the fields stay 0. Ends with EXIT_ENVIRONMENT if an object cannot be written. */
void write_stack_needs(Arena *arena, const StackUnit *units, int count, const char *runtime);

#endif
