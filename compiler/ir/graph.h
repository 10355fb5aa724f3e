/* SPDX-License-Identifier: MIT */
/*
 * The intermediate representation: a Graph of Nodes over Values, in SSA form. Both front ends build it, every pass
 * takes it, families lower it. Everything lives in the graph's arena.
 *
 * Invariants (checked by verify): every Value has one producer or is an input, a state or a constant; nodes stand in
 * topological order; ids are dense after graph_renumber(); shape and dtype are set after infer_shapes.
 */
#ifndef RNNCC_GRAPH_H
#define RNNCC_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/attribute.h"
#include "ir/config.h"
#include "ir/dim.h"
#include "ir/layout.h"
#include "support/arena.h"
#include "support/diagnostics.h"

typedef struct Schedule Schedule;     /* ir/family.h */
typedef struct Stack Stack;           /* kernels/recurrent/stack.h */
typedef struct LayoutPlan LayoutPlan; /* layout/layout_plan.h */

enum { MAX_RANK = RNNCC_MAX_RANK };

/* Where a value lives while the module runs; decided by plan_memory. */
typedef enum Storage {
  STORAGE_NONE,    /* not planned yet, or never materialised */
  STORAGE_INPUT,   /* the caller's buffer, `slot` says which */
  STORAGE_OUTPUT,  /* the caller's buffer */
  STORAGE_ARENA,   /* arena + offset */
  STORAGE_WEIGHTS, /* packed weights + offset */
} Storage;

struct Value {
  const char *name; /* the user's; never enters C text but for the name table */
  int id;           /* t<id> in dumps and in emitted C */
  DType dtype;
  int rank;          /* -1: unknown before infer_shapes */
  const Dim **shape; /* rank entries, NULL while unknown */

  Node *producer; /* NULL for inputs, states and constants */
  int producer_output;
  bool is_input; /* of the graph; a state's input too */

  const void *data;        /* constant: row-major, little-endian, sizeof dtype * product of shape; else NULL */
  const Dim **elements;    /* tensor whose elements are known symbolically (Shape of an input), else NULL */
  const int64_t *divisors; /* of such floats: element i is elements[i] / divisors[i]; NULL: all 1 */

  /* Layout NCHW[x]c with x = channel_block: [N][ceil(C/x)][H][W][x], see layout/blocked.h; 0: row-major. */
  int channel_block;

  /* Shares this value's memory: the same bytes in another shape (Reshape, Identity, ...), or, in a blocked layout, a
   * part of its channels, which begins at channel block `first_block` of each image. NULL: owns its memory. */
  Value *view_of;
  int64_t first_block;
  const Dim *at; /* of a view into what a loop passes over: bytes from the start of view_of; NULL: none */
  Storage storage;
  int slot;       /* of STORAGE_INPUT and STORAGE_OUTPUT */
  int64_t offset; /* bytes, of STORAGE_ARENA and STORAGE_WEIGHTS; a multiple of 64 */

  Location where;
};

struct Node {
  const char *name; /* the user's or made from the op and position; never enters C text but for the name table */
  int id;           /* n<id>, dense, in topological order */
  const OpInfo *op;
  int n_inputs, n_outputs;
  Value **inputs;  /* NULL entry: optional input absent */
  int n_captures;  /* the last inputs of a node with bodies: what these read from outside, in the order of theirs */
  Value **outputs; /* NULL entry: optional output not wanted */
  int n_attributes;
  Attribute *attributes; /* defaults of the op table are not in here; node_int() and friends know them */

  /* Set by fuse_epilogue: element-wise nodes folded into this one, in order; each one's first input is the result so
   * far, its others are extra inputs of this node, appended to `inputs`. */
  int n_epilogue;
  Node **epilogue;

  /* Set by fuse_prologue: what becomes of inputs[0] before this node uses it, in order: a batch normalisation by
   * constants, element-wise nodes. Their first inputs are the result so far, their others constants. */
  int n_prologue;
  Node **prologue;

  Node *pool; /* set by fuse_pools: the pooling of its result that its kernels do, which outputs[0] is of; or NULL */

  /* Of a chain (kernels/elementwise/fuse_chains.c): the element-wise nodes that it stands for, in order, each of one
   * output. What they read is made by one before, an input of this node, or a constant; `outputs` are those that others
   * read. */
  int n_members;
  Node **members;

  struct Control *control; /* of If, Loop and Scan: shapes/control.h; set by infer_shapes */

  NodeLayout layout; /* set by choose_layouts; row-major before */
  bool exact;        /* a convolution of whole numbers that f32 adds exactly: it stays as it is, without Winograd */

  Schedule *schedule; /* how it is run: of a recurrent op planned by plan_recurrent; of all set by choose_schedules */
  Value *scratch;     /* working memory of the kernel, planned like an output but live only during the node; or NULL */
  int n_packed;       /* constants in the layout the kernel streams, made by pack_weights */
  Value **packed;
  Location where;
};

/* Do its kernels run on blocked tensors? */
static inline bool is_blocked(const Node *node) { return node->layout.writes != LAYOUT_ROW_MAJOR; }

/* An input/output pair that the context carries from run to run. */
typedef struct State {
  Value *input, *output;
  int batch_axis; /* -1: none */
} State;

/* A body of If, Loop or Scan is a graph of its own, which shares the arena, the dims and the config. Its last inputs
 * stand for what it reads from outside: the node's captures. */
struct Graph {
  Arena *arena;
  Graph *outer; /* of a body: the graph of its node; else NULL */
  DimTable *dims;
  const Config *config;          /* what was asked for; NULL until the model has been read */
  const LayoutPlan *layout_plan; /* what a search of layouts has found; NULL: no search */
  const char *name, *version;    /* version: "" if absent */
  const char *file;              /* the model file as given */
  uint8_t model_sha256[32];      /* over the model file and its weights */

  int n_nodes, node_capacity;
  Node **nodes; /* topological order */
  int n_values, value_capacity;
  Value **values; /* all of them, by id */
  int n_inputs, n_outputs, n_states;
  Value **inputs, **outputs; /* without the states */
  State *states;

  int n_stacks; /* recurrent layers that can run as a wavefront; set by find_stacks */
  Stack *stacks;

  int n_remarks, remark_capacity;
  const char **remarks; /* what passes have done that a user wants to know, a line each */

  Value *slots; /* the scratch that nodes share of which each worker has a slot, n_slots of slot_bytes; or NULL */
  int64_t n_slots, slot_bytes;
};

Graph *graph_new(Arena *arena);
Value *graph_value(Graph *graph, const char *name, Location where); /* new, of unknown shape and dtype */
Value *graph_constant(Graph *graph, const char *name, DType dtype, int rank, const int64_t *shape, const void *data);
Node *graph_node(Graph *graph, const OpInfo *op, const char *name, int n_inputs, int n_outputs); /* appended */
void graph_append(Graph *graph, Node *node); /* one that is on no list: for passes that rebuild it in order */
void graph_set_output(Node *node, int output, Value *value);                      /* and the value's producer */
void graph_scratch(Graph *graph, Node *node, const char *name, const Dim *bytes); /* sets node->scratch */

void graph_remark(Graph *graph, const char *format, ...) __attribute__((format(printf, 2, 3)));
void graph_renumber(Graph *graph); /* dense ids for nodes and for the values that are still reachable */

/* Sorts the nodes so that each stands after those it reads from, close to the order before; an error for each cycle. */
void sort_nodes(Graph *graph);

/* Users of each value. Valid until the graph changes. */
typedef struct UseList {
  int *count;    /* by value id: uses as a node's input (epilogue nodes count as the host's), graph outputs included */
  Node **single; /* by value id: the using node where there is exactly one use and it is a node */
} UseList;
UseList graph_uses(Graph *graph);

/* Drops nodes without used outputs, and node outputs that nobody reads where the op allows it. */
void graph_remove_dead(Graph *graph);

bool value_is_constant(const Value *value);
bool value_static(const Value *value);       /* every axis constant */
int64_t value_count(const Value *value);     /* elements, of a static shape */
int64_t value_max_count(const Value *value); /* elements in memory at the dims' maxima; saturates */
int64_t value_max_bytes(const Value *value);
const Dim *value_count_dim(Graph *graph, const Value *value, int first_axis, int end_axis); /* product of axes */
Value *value_root(Value *value);                                                            /* follows view_of */
bool value_is_part(const Value *value); /* some of the channels of the value that it is a view of */
/* The axis from the end (-1) or the start, in 0..rank-1; -1 if out of range. */
int normal_axis(int64_t axis, int rank);

/* A text form that diffs well: one line a value and a node. */
void graph_dump(Text *out, const Graph *graph);

#endif
