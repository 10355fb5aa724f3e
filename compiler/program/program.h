/* SPDX-License-Identifier: MIT */
/*
 * Between graph and C: the items of the schedule, in the order in which every worker walks them, and the specialised
 * kernels that they call. Passes of this room add barriers and loads of dims, and place values in memory. An item
 * touches exactly its accesses.
 */
#ifndef RNNCC_PROGRAM_H
#define RNNCC_PROGRAM_H

#include "ir/graph.h"
#include "support/files.h"
#include "template/specialise.h"

typedef struct Program Program;
typedef struct Item Item;
typedef struct Call Call;
typedef struct Wavefront Wavefront;

/* ---- memory ---- */

typedef enum AccessMode { READ = 1, WRITE = 2, READ_WRITE = READ | WRITE } AccessMode;

/* Why two calls of one node may touch the same value without a barrier between, though one of them writes. */
typedef enum Sharing {
  SHARED_BY_ALL,    /* not allowed: any worker may touch any byte */
  SHARED_APART,     /* each of the calls writes bytes that no other one touches */
  SHARED_BY_WORKER, /* each worker has its own part, the same one in all these calls */
} Sharing;

/* Memory that an item touches. */
typedef struct Access {
  Value *value;
  const Dim *offset, *bytes; /* from the value's first byte; bytes NULL: up to its last one */
  AccessMode mode;
  Sharing sharing;
} Access;

/* ---- operands ---- */

typedef enum OperandKind {
  OPERAND_NONE,     /* not given yet */
  OPERAND_VALUE,    /* the address of the access */
  OPERAND_VALUES,   /* an array of `count` such addresses */
  OPERAND_NULL,     /* a null pointer */
  OPERAND_DIM,      /* a dim expression */
  OPERAND_DIMS,     /* an array of `count` of them */
  OPERAND_INTEGER,  /* a constant */
  OPERAND_INTEGERS, /* an array of `count` of them, of the parameter's element type */
  OPERAND_FLOAT,    /* rounded to the parameter's type */
  OPERAND_FOUND,    /* where the kernel, on one worker, writes a data-dependent dim */
  OPERAND_SUPPLIED, /* supplied by the schedule, by the parameter's name */
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
  int access; /* index of the item's (first) access */
  int count;
  const Dim *const *dims; /* DIM: one of them */
  const int64_t *integers;
  double number;
  const DimSymbol *found; /* NULL: not used */
  Supplied supplied;
} Operand;

/* ---- calls ---- */

/* A part of what a call costs: a number, times extents of the run. */
typedef struct CostTerm {
  double each;
  int n;
  const Dim **extents;
} CostTerm;

/* The sum of the terms. In a wavefront, of all chunks together. */
typedef struct Cost {
  int count, capacity;
  CostTerm *terms;
} Cost;

/* The extents of a value that may be 0. */
typedef struct Extents {
  int count;
  const Dim **list;
} Extents;

struct Call {
  Program *program;
  Item *item;
  int row; /* of the profile */
  const SpecialisedKernel *kernel;
  Operand *operands;    /* one a parameter of the kernel */
  const char *schedule; /* where the node has several: the text of this one; NULL: the node's */
  const Dim *when;      /* the call runs only if it is positive; NULL: whatever it is */
  bool before_loop;     /* it packs before a loop around its node: KernelFamily.lower_once */
  int n_guard;
  Extents *guard; /* the call runs only if all extents of one of these are positive; NULL: always */
  int n_found, found_capacity;
  const DimSymbol **found; /* the data-dependent dims that it writes */
  double flops, bytes;     /* at the dims' optimum */
  Cost flops_terms, bytes_terms;
  rnncc_dtype products;       /* what it multiplies and adds; RNNCC_NONE: it does not, or that is not its work */
  const Wavefront *wavefront; /* in whose block it is; NULL: none */
  int layer;                  /* of it */
};

/* ---- items ---- */

typedef enum ItemKind {
  ITEM_CALL,
  ITEM_BARRIER,      /* all workers meet */
  ITEM_LOAD_DIM,     /* each worker reads `symbol`, which a kernel has found */
  ITEM_SET_DIM,      /* symbol = dim, each worker for itself */
  ITEM_STORE_DIM,    /* one worker stores `symbol` for the runtime */
  ITEM_BREAK_UNLESS, /* leaves the loop if its operand is false */
  ITEM_IF,           /* block if its operand is true, else `other` */
  ITEM_LOOP,         /* block, for symbol = 0, 1, ... below `dim`; if NULL, below its operand, if any */
  ITEM_SCOPE,        /* block, once */
  ITEM_WAVEFRONT,    /* block, in chunks of layers, see Wavefront */
} ItemKind;

/* Items in order. Except a wavefront's, a block is a region: its values are written anew each time it runs. */
typedef struct Block {
  const Item *owner;         /* NULL: the schedule itself */
  const struct Block *outer; /* NULL: the schedule itself */
  int count, capacity;
  Item **items;
  int first, last; /* steps before and after its items, set by find_liveness */
} Block;

/* Consecutive layers run in parallel, in chunks of steps (runtime/wave.h). Its items are calls, layer by layer; for
 * each chunk one worker, which is their whole team, runs a layer's calls. A single layer is run by the whole team, with
 * barriers between its calls. */
struct Wavefront {
  int layers, chunk;
  const Dim *steps;
  const DimSymbol *first, *count; /* the chunk's steps, for the operands of its calls */
};

struct Item {
  ItemKind kind;
  const Node *node; /* NULL: none */
  int step;         /* when it runs; not of barriers and loads; set by find_liveness */
  int n_accesses, access_capacity;
  Access *accesses; /* its own, without those of items in its blocks */
  Call *call;
  const DimSymbol *symbol;
  const Dim *dim;
  Block *block, *other;
  Wavefront *wavefront;
};

/* ---- programs ---- */

/* A check of an input before the run. */
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

/* The constants of one program, or of those of several targets and networks, which have equal ones in one place. */
typedef struct WeightsFile {
  int n_parts, part_capacity;
  FileBytes *parts; /* the constants, each with what is between it and the next one; they are copied nowhere */
  int64_t bytes;
  const char *sha256; /* once weights_sha256 was called */
} WeightsFile;

typedef struct MemoryPlan MemoryPlan; /* program/plan_memory.h */

struct Program {
  Arena *arena;
  Graph *graph; /* while a body is lowered: the body */
  Block *schedule;
  const Item *backward; /* of a graph that is trained: the first item that only gradients need; NULL: none */
  int n_parts;
  const Item **parts; /* of a derivation, by part: its first item; NULL: it has none */
  int n_kernels, kernel_capacity;
  ProgramKernel *kernels;
  int n_calls, call_capacity;
  Call **calls; /* all of them, in order */
  int n_nodes;
  int n_values, value_capacity, home_capacity;
  Value **values;      /* of the graph and all bodies, by id */
  const Block **homes; /* by id: the region of the value */
  int n_checks, check_capacity;
  RangeCheck *checks;
  MemoryPlan *plan;        /* set by plan_memory */
  int64_t arena_bytes;     /* of one run; set by plan_memory */
  int64_t parameter_bytes; /* of the trained weights, and of their gradients; set by plan_memory */
  int64_t trained_bytes;   /* of these without the statistics */
  int n_weights, weights_capacity;
  Value **weights;           /* the constants that kernels read, in the order of their places */
  int64_t weights_bytes;     /* of all of them; set by place_weights */
  WeightsFile *weights_file; /* where they are; set by join_weights */
  bool may_fault;            /* some kernel may fault */
  double share_from;         /* as of Module; set by find_share_from */
  Block *block;              /* that items are added to */
  int layer;                 /* of the wavefront whose block is open */
};

/* Nodes become calls of kernels; a value of If, Loop and Scan's bodies gets an id of its own. */
Program *lower(Graph *graph);

/* Where a constant of the weights ends: each begins on such a boundary. */
enum { WEIGHT_ALIGNMENT = 64 };
int64_t weight_end(const Value *value);

/* Does the extent depend on a dim that the call itself finds? */
bool call_finds(const Call *call, const Dim *extent);

/* The text of the schedule that it runs; NULL: it has none. */
const char *call_schedule(const Call *call);

/* needs: place_weights of each program. keeps: the places of the first one's constants. Writes the file of the weights
 * of all, which has those behind it that the first one has not. */
void join_weights(Program *const *programs, int count);

/* needs: place_weights. "60000 bytes of f32, 128 of i64", without what is between constants; "" if there are none. */
const char *weights_by_type(const Program *program);

/* needs: place_weights, of a program whose weights can change. By weight: does a model keep it besides what is packed
 * of it? And the bytes of all that a model keeps. */
const bool *kept_weights(const Program *program);
int64_t mutable_bytes(const Program *program);

/* Of the file, in hexadecimal digits. */
const char *weights_sha256(const Program *program);

/* The root value's own region. */
const Block *home_of(const Program *program, const Value *root);

/* Calls `visit` for all items, each before those in its blocks; `block` is the item's own. */
void each_item(const Program *program, void (*visit)(Item *item, Block *block, void *context), void *context);

/* Must every worker know the symbol's value when the item, without those in its blocks, begins? */
bool item_needs(const Item *item, const DimSymbol *symbol);
/* The same for a wavefront with all its calls. */
bool wavefront_needs(const Item *item, const DimSymbol *symbol);

#endif
