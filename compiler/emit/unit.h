/* SPDX-License-Identifier: MIT */
/* The generated C unit, and which node each of its lines serves. */
#ifndef RNNCC_UNIT_H
#define RNNCC_UNIT_H

#include "program/program.h"

typedef struct UnitMark {
  size_t offset; /* in the text: from here on lines serve `node` */
  const Node *node;
} UnitMark;

typedef struct Unit {
  const Program *program;
  const char *name; /* its place's */
  const char *file; /* "network.c", "network_x86_64_v3.c" */
  Text text;
  int n_marks, mark_capacity;
  UnitMark *marks;
  int n_headers, header_capacity;
  const char **headers; /* template headers that the unit includes, each relative to templates/ */
} Unit;

/* The units of one module: one for each network of each target, then those of derivations (ir/mutable.h). */
typedef struct Units {
  int count, modules, networks; /* modules: without derivations; networks: of a target, the first target's come first */
  const Unit *const *list;
} Units;

/* Among the units of one module. */
typedef struct UnitPlace {
  const char *name;       /* by which its file and its Module differ from the others'; NULL: there are no others */
  bool has_weights;       /* for all of them */
  const char *derivation; /* the name of the unit of this network's derivation; NULL: it has none */
  bool is_derivation;
} UnitPlace;

/* needs: all passes over the program, and join_weights. `build` is the one-line build record. */
Unit *emit_unit(Program *program, const char *build, const UnitPlace *place);

/* The module's tables: names, shapes, states, checks, steps, and the Module itself. */
void emit_tables(Unit *unit, Program *program, const char *build, const UnitPlace *place);

/* Of weights that can change: the table `weights` of info, and `mutable_weights` of the Module. */
void emit_mutable(Text *out, const Program *program, const char *derivation);

/* The table of tensors `table`; nothing if there are none. */
void emit_tensors(Text *out, const char *table, Value *const *values, int count);

/* What `rnnrun inspect` reads of a module that it cannot load. */
void emit_note(Text *out, const Program *program, const char *build);

/* How many streams the state is of. */
int64_t state_slots(const State *state);

void emit_schedule(Unit *unit, Program *program);

/* Parses the unit with libclang, using the plain vocabulary at the target's width, which takes a tenth of the time.
 * Reports diagnostics at the node they came from; bug() after an error: emitted code must compile. `folder` has the
 * unit; its headers are found by `clang_args`. */
void check_unit(Arena *arena, const Unit *unit, const char *folder, const char *const *clang_args);

void mark_node(Unit *unit, const Node *node);

/* Bytes of memory that a context of the module takes, or a little more: with the arena all that is not constant. */
int64_t context_bytes(const Program *program);

/* What a header says of one network. */
typedef struct HeaderPart {
  const char *network; /* its name; NULL: it is of no bundle */
  const char *prefix;  /* with which names begin */
  Program *program;
  int64_t context_bytes;
} HeaderPart;

/* A C header for applications: sizes and names of the networks' inputs and outputs. `name`: of the module. */
Text emit_header(Arena *arena, const HeaderPart *parts, int count, const char *name);
/* The graph for Graphviz. */
Text emit_dot(Graph *graph);

#endif
