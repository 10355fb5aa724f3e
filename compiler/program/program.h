/* SPDX-License-Identifier: MIT */
/*
 * What stands between graph and C: the items of the schedule, in the order in which every worker walks them, and the
 * specialised kernels that they call. Passes of this room add barriers and loads of dims to the items and give values
 * their memory; what an item touches is what its accesses say.
 */
#ifndef RNNCC_PROGRAM_H
#define RNNCC_PROGRAM_H

#include "ir/graph.h"
#include "template/specialise.h"

typedef struct Program Program;
typedef struct Item Item;
typedef struct Call Call;

/* ---- memory ---- */

typedef enum AccessMode { READ = 1, WRITE = 2, READ_WRITE = READ | WRITE } AccessMode;

/* Why two calls of one node may touch the same value without a barrier between, though one of them writes. */
typedef enum Sharing {
  SHARED_BY_ALL,    /* they may not: any worker may touch any byte */
  SHARED_APART,     /* each of the calls writes bytes that no other one touches */
  SHARED_BY_WORKER, /* each worker has a part of its own, the same one in all these calls */
} Sharing;

/* Memory that an item touches. */
typedef struct Access {
  Value *value;
  const Dim *offset, *bytes; /* from the value's first byte; bytes NULL: to its last one, or less */
  AccessMode mode;
  Sharing sharing;
} Access;

/* ---- operands ---- */

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
  int access; /* of the item's: the first one */
  int count;
  const Dim *const *dims; /* DIM: one of them */
  const int64_t *integers;
  double number;
  const DimSymbol *found; /* NULL: nobody asks */
  Supplied supplied;
} Operand;

/* ---- calls ---- */

/* Of a value, those that may be 0. */
typedef struct Extents {
  int count;
  const Dim **list;
} Extents;

struct Call {
  Program *program;
  Item *item;
  int row; /* of the profile */
  const SpecialisedKernel *kernel;
  Operand *operands; /* one a parameter of the kernel */
  int n_guard;
  Extents *guard; /* it has something to do where all extents of one of these are more than 0; NULL: always */
  int n_found;
  const DimSymbol **found; /* the dims that it finds */
  double flops, bytes;
  int layer; /* of a wavefront that it stands in */
};

/* ---- items ---- */

typedef enum ItemKind {
  ITEM_CALL,
  ITEM_BARRIER,      /* all workers meet */
  ITEM_LOAD_DIM,     /* each worker reads `symbol`, which a kernel has found */
  ITEM_SET_DIM,      /* symbol = dim, each worker for itself */
  ITEM_STORE_DIM,    /* one worker tells the runtime what `symbol` is */
  ITEM_BREAK_UNLESS, /* leaves the loop if what it reads is false */
  ITEM_IF,           /* block, if what it reads is true, else `other` */
  ITEM_LOOP,      /* block, for symbol = 0, 1, ... below `dim`, or if that is NULL below what it reads, if anything */
  ITEM_SCOPE,     /* block, once */
  ITEM_WAVEFRONT, /* block, a chunk of a layer after the other, see Wavefront */
} ItemKind;

/* Items in order. But for a wavefront's, a block is a region: what is at home in it is made anew each time it runs. */
typedef struct Block {
  const Item *owner;         /* NULL: the schedule itself */
  const struct Block *outer; /* NULL: the schedule itself */
  int count, capacity;
  Item **items;
  int first, last; /* steps before and after its items, set by number_items */
} Block;

/* Layers in a row run their steps in chunks, side by side (runtime/wave.h). All calls of a layer run once a chunk, by
 * one worker, which is their whole team. Its items are calls, layer by layer. With one layer there is nothing to run
 * beside it: the team runs each call together, and meets between them. */
typedef struct Wavefront {
  int layers, chunk;
  const Dim *steps;
  const DimSymbol *first, *count; /* the chunk's steps, for the operands of its calls */
} Wavefront;

struct Item {
  ItemKind kind;
  const Node *node; /* that it serves; NULL: none */
  int step;         /* when it runs, of all items but barriers and loads; set by number_items */
  int n_accesses, access_capacity;
  Access *accesses; /* its own, without those of items in its blocks */
  Call *call;
  const DimSymbol *symbol;
  const Dim *dim;
  Block *block, *other;
  Wavefront *wavefront;
};

/* ---- programs ---- */

/* The input is checked before anything runs. */
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
  Block *schedule;
  int n_kernels, kernel_capacity;
  ProgramKernel *kernels;
  int n_calls, call_capacity;
  Call **calls; /* all of them, in order */
  int n_nodes;
  int n_values, value_capacity, home_capacity;
  Value **values;      /* of the graph and of all bodies in it, by id */
  const Block **homes; /* by id: the region that the value is at home in */
  int n_checks, check_capacity;
  RangeCheck *checks;
  int64_t arena_bytes;   /* of one run; set by plan_memory */
  int64_t weights_bytes; /* set by place_weights */
  uint8_t *weights;      /* the constants that kernels read, weights_bytes long */
  bool may_fault;        /* some kernel can find a value out of range while running */
  Block *block;          /* that items are added to now */
  int layer;             /* of the wavefront that it is the block of */
};

/* The root value's own region. */
const Block *home_of(const Program *program, const Value *root);

/* Calls `visit` for all items, each before those in its blocks; `block` is the one that it stands in. */
void each_item(const Program *program, void (*visit)(Item *item, Block *block, void *context), void *context);

/* Must every worker know the symbol's value when the item, without those in its blocks, begins? */
bool item_needs(const Item *item, const DimSymbol *symbol);
/* The same of a wavefront with all its calls. */
bool wavefront_needs(const Item *item, const DimSymbol *symbol);

#endif
