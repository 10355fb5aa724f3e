/* SPDX-License-Identifier: MIT */
/* What stands between graph and C: specialised kernels and the calls of the schedule, in order. */
#ifndef RNNCC_PROGRAM_H
#define RNNCC_PROGRAM_H

#include "ir/graph.h"
#include "template/specialise.h"

typedef struct Program Program;
typedef struct Call Call;

typedef enum AccessMode { READ = 1, WRITE = 2, READ_WRITE = READ | WRITE } AccessMode;

/* Why two calls of one node may touch the same value without a barrier between, though one of them writes. */
typedef enum Sharing {
  SHARED_BY_ALL,    /* they may not: any worker may touch any byte */
  SHARED_APART,     /* each of the calls writes bytes that no other one touches */
  SHARED_BY_WORKER, /* each worker has a part of its own, the same one in all these calls */
} Sharing;

/* Memory that a call touches. */
typedef struct Access {
  Value *value;
  const Dim *offset, *bytes; /* from the value's first byte; bytes NULL: to its last one, or less */
  AccessMode mode;
  Sharing sharing;
} Access;

typedef enum OperandKind {
  OPERAND_NONE,     /* not given yet */
  OPERAND_VALUE,    /* the address that the access begins at */
  OPERAND_VALUES,   /* an array of `count` such addresses */
  OPERAND_NULL,     /* a null pointer */
  OPERAND_DIM,      /* an integer that dims make */
  OPERAND_DIMS,     /* an array of `count` of them */
  OPERAND_INTEGER,  /* a constant */
  OPERAND_INTEGERS, /* an array of `count` of them, of the element type that the parameter points to */
  OPERAND_FLOAT,    /* rounded to the parameter's type */
  OPERAND_FOUND,    /* where the kernel, on one worker, writes a data-dependent dim */
  OPERAND_SUPPLIED, /* what the schedule itself has, by the parameter's name */
} OperandKind;

typedef enum Supplied {
  SUPPLIED_TEAM,
  SUPPLIED_ALONE, /* the team of one that a layer of a wavefront runs on */
  SUPPLIED_RUN,
  SUPPLIED_FAULT,
  SUPPLIED_TURN
} Supplied;

typedef struct Operand {
  OperandKind kind;
  int access; /* of the call's: the first one */
  int count;
  const Dim *const *dims; /* DIM: one of them */
  const int64_t *integers;
  double number;
  const DimSymbol *found; /* NULL: nobody asks */
  Supplied supplied;
} Operand;

/* Of a value, those that may be 0. */
typedef struct Extents {
  int count;
  const Dim **list;
} Extents;

/* A part of the schedule that runs not at all or again and again: the body of a loop, a branch. */
typedef struct Region {
  const struct Region *outer; /* NULL: the schedule itself */
  int first, last;            /* indices of the lines that open and close it */
} Region;

/* Lines of C between the calls, which every worker runs. They stand in the same list. */
typedef enum LineKind { LINE_NONE, LINE_PLAIN, LINE_OPENS, LINE_TURNS, LINE_CLOSES } LineKind;

/* A wavefront: layers in a row run their steps in chunks, side by side (runtime/wave.h). All calls of a layer run once
 * a chunk, by one worker, which is their whole team. The calls of a wavefront follow each other, layer by layer. With
 * one layer there is nothing to run beside it: the team runs each call together, and meets between them. */
typedef struct Wavefront {
  int layers, chunk;
  const Dim *steps;
  const DimSymbol *first, *count; /* the chunk's steps, for the operands of its calls */
} Wavefront;

struct Call {
  Program *program;
  LineKind line; /* not LINE_NONE: `text`, and no kernel */
  const char *text;
  const Region *region; /* that it stands in; a line that opens or closes one stands outside */
  const Region *opens;  /* of a line */
  int step;             /* of a call: its row of the profile */
  const Node *node;
  const SpecialisedKernel *kernel;
  Operand *operands; /* one a parameter of the kernel */
  int n_accesses, access_capacity;
  Access *accesses;
  int n_guard;
  Extents *guard; /* it has something to do where all extents of one of these are more than 0; NULL: always */
  int n_found;
  const DimSymbol **found; /* the dims that it finds */
  double flops, bytes;
  const Wavefront *wavefront; /* NULL: the call runs once, by the whole team */
  int layer;                  /* of the wavefront */
};

typedef struct RangeCheck {
  const Value *value;
  int64_t lo, hi;
  const Dim *hi_dim; /* NULL: none */
  const char *what;
} RangeCheck;

typedef struct ProgramKernel {
  const char *key;  /* template and choices: equal keys share a kernel */
  const Node *node; /* the first one it serves */
  const SpecialisedKernel *kernel;
} ProgramKernel;

struct Program {
  Arena *arena;
  Graph *graph; /* while a body is lowered: the body */
  int n_kernels, kernel_capacity;
  ProgramKernel *kernels;
  int n_calls, call_capacity;
  Call **calls;
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
void calls_beside(const Program *program, int call, int *first, int *last);

/* The root value's own region. */
const Region *home_of(const Program *program, const Value *root);

/* Runs every node's family. The values' places are decided afterwards, by plan_memory. */
Program *lower(Graph *graph);

void skip_empty(Program *program);

#endif
