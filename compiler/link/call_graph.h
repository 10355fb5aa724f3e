/* SPDX-License-Identifier: MIT */
/*
 * Which function of a module calls which, and what each takes of the stack. clang says the latter (stack_sizes.h).
 * Calls are read off the relocations of the objects: each function has a section of its own, so a call of another is
 * what the linker has to fill in. What the optimiser has inlined, cloned, or made a call of memset is there as it is.
 */
#ifndef RNNCC_CALL_GRAPH_H
#define RNNCC_CALL_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "support/arena.h"

typedef struct Function Function;
struct Function {
  const char *name;
  int object;       /* which of the objects has it */
  uint64_t section; /* there */
  bool is_global;
  bool is_taken;   /* code has its address, and calls it through a pointer */
  bool is_listed;  /* a table of constants has its address */
  int64_t frame;   /* bytes of the stack, with its return address */
  int64_t library; /* the most that a function of libc takes which it calls */
  int n_callees, callee_capacity;
  Function **callees; /* maybe repeatedly */
};

typedef struct CallGraph {
  Arena *arena;
  int n_functions;
  Function *functions; /* an object's stand together */
} CallGraph;

/* An object that clang has compiled. */
typedef struct CompiledObject {
  const char *path;
  int64_t vector_bytes; /* of the target; 0: it has no vectors on the stack */
  bool hides_vectors;   /* clang does not say how many bytes of them are in a frame */
  int pushed_arguments; /* the most with which a function is called, past those in registers */
} CompiledObject;

/* False: it cannot be told, since the architecture is not one of those whose calls are known, or a function's frame has
 * no fixed size, or a part that clang hides. */
bool call_graph_read(CallGraph *graph, Arena *arena, const CompiledObject *objects, int count);

#endif
