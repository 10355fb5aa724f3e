/* SPDX-License-Identifier: MIT */
/*
 * The intermediate representation: a Graph of Nodes over Values, in SSA form. Front ends build it, passes change it,
 * families lower it. Everything is in the graph's arena.
 *
 * Invariants (checked by verify): every Value has one producer or is an input, a state or a constant; nodes are in
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

typedef struct Schedule Schedule;             /* ir/family.h */
typedef struct Stack Stack;                   /* kernels/recurrent/stack.h */
typedef struct LayoutPlan LayoutPlan;         /* layout/layout_plan.h */
typedef struct NarrowWeights NarrowWeights;   /* ir/narrow.h */
typedef struct MutableWeights MutableWeights; /* ir/mutable.h */
typedef struct Reordered Reordered;           /* ir/mutable.h */

enum { MAX_RANK = RNNCC_MAX_RANK };

/* Where a value is while the module runs; set by plan_memory. */
typedef enum Storage {
  STORAGE_NONE,      /* not planned yet, or not in memory */
  STORAGE_INPUT,     /* the caller's buffer, `slot` says which */
  STORAGE_OUTPUT,    /* the caller's buffer */
  STORAGE_ARENA,     /* arena + offset */
  STORAGE_WEIGHTS,   /* packed weights + offset */
  STORAGE_PARAMETER, /* the model's trained weights + offset */
  STORAGE_GRADIENT,  /* the context's gradients + offset: a parameter's has the parameter's */
  STORAGE_BLOCK,     /* a block of weights that can change, `slot` says which: ir/mutable.h */
} Storage;

static inline bool storage_is_read_only(Storage storage) {
  return storage == STORAGE_BLOCK || storage == STORAGE_INPUT || storage == STORAGE_WEIGHTS ||
         storage == STORAGE_PARAMETER;
}

/* least <= x <= most. */
typedef struct IntRange {
  int64_t least, most;
} IntRange;

struct Value {
  const char *name; /* the user's; in C text only in the name table */
  int id;           /* t<id> in dumps and in emitted C */
  DType dtype;
  int rank;          /* -1: unknown before infer_shapes */
  const Dim **shape; /* rank entries, NULL while unknown */

  Node *producer; /* NULL for inputs, states and constants */
  int producer_output;
  bool is_input;          /* of the graph; a state's input too */
  bool is_weight;         /* a constant that the model file declares as one, which no node made */
  bool refused;           /* a front end has told an error about it, or its node was not made; rank is -1 */
  const char *trained_as; /* of a weight that got another name: the model's, by which --train takes it; or NULL */

  const NarrowWeights *narrow; /* of weights: what its numbers stand for, ir/narrow.h; or NULL */
  const void *data;            /* constant: row-major, little-endian, sizeof dtype * product of shape; else NULL */
  const Dim **elements;        /* tensor whose elements are known symbolically (Shape of an input), else NULL */
  const int64_t *divisors;     /* of such floats: element i is elements[i] / divisors[i]; NULL: all 1 */

  /* Of a constant that the running module can change: its block, from 1 on; else 0. `data` is made up then, and says
   * nothing. A weight of the model, until derive_weights, is an input of a given shape. See ir/mutable.h. */
  int block;
  const Reordered *reordered; /* of a constant whose gates the front end has put in order: of which; else NULL */

  const IntRange *interval; /* of integers: holds every element, shapes/intervals.h; NULL: whatever the type allows */

  /* Layout NCHW[x]c with x = channel_block: [N][ceil(C/x)][H][W][x], see layout/blocked.h; 0: row-major. */
  int channel_block;

  /* Shares this value's memory: the same bytes in another shape (Reshape, Identity, ...), or, in a blocked layout, a
   * part of its channels, which begins at channel block `first_block` of each image. NULL: owns its memory. */
  Value *view_of;
  int64_t first_block;
  const Dim *at; /* of a slice of a value that a loop scans: byte offset in view_of; NULL: none */
  Storage storage;
  int slot;       /* of STORAGE_INPUT, STORAGE_OUTPUT and STORAGE_BLOCK */
  int64_t offset; /* bytes, but of STORAGE_INPUT and STORAGE_OUTPUT; a multiple of 64 */

  Location where;
};

struct Node {
  const char *name; /* the user's, or made from the op and position; in C text only in the name table */
  int id;           /* n<id>, dense, in topological order */
  const OpInfo *op;
  int n_inputs, n_outputs;
  Value **inputs;  /* NULL entry: optional input absent */
  int n_captures;  /* of a node with bodies: its last inputs are the outer values that the bodies read */
  Value **outputs; /* NULL entry: optional output not wanted */
  int n_attributes;
  Attribute *attributes; /* without defaults of the op table, which node_int() etc. apply */

  /* Set by fuse_epilogue: element-wise nodes applied to the result, in order. Their first input is the result so far,
   * their others are appended to this node's `inputs`. */
  int n_epilogue;
  Node **epilogue;

  /* Set by fuse_prologue: nodes applied to inputs[0], in order: a batch normalisation by constants, then element-wise
   * nodes. Their first input is the result so far, their others are constants. */
  int n_prologue;
  Node **prologue;

  Node *pool; /* set by fuse_pools: a pooling of the result, whose output is outputs[0]; or NULL */

  /* Of a chain (kernels/elementwise/fuse_chains.c): its element-wise nodes, in order, each with one output. They read
   * outputs of earlier members, inputs of this node, or constants; `outputs` are those with readers outside. */
  int n_members;
  Node **members;

  Node *reduction; /* of a reduced chain (kernels/reduce/reduce.h): what reduces the last member's result; or NULL */

  struct FusedAttention *attention; /* kernels/attention/fused_attention.h; set by fuse_attention */

  struct Control *control; /* of If, Loop and Scan: ir/control.h; set by infer_shapes */

  NodeLayout layout; /* set by choose_layouts; row-major before */
  bool exact;        /* a convolution of integers that f32 adds exactly: no Winograd */

  Schedule *schedule; /* of a recurrent op planned by plan_recurrent; set by choose_schedules */
  Value *scratch;     /* working memory of the kernel, live only during the node; or NULL */
  Value *in_place;    /* more of it, which may be written over an input (KernelFamily.overwrites); or NULL */
  int n_packed;       /* constants in the layout that the kernel reads, made by pack_weights */
  Value **packed;
  Location where;
};

/* NULL: the input is absent, the output not wanted. i: -1 where the operator has no such input. */
static inline Value *node_input(const Node *node, int i) {
  return i >= 0 && i < node->n_inputs ? node->inputs[i] : NULL;
}
static inline Value *node_output(const Node *node, int i) { return i < node->n_outputs ? node->outputs[i] : NULL; }

/* Does it write blocked tensors? */
static inline bool is_blocked(const Node *node) { return node->layout.writes != LAYOUT_ROW_MAJOR; }

/* An input/output pair that the context carries from run to run. */
typedef struct State {
  Value *input, *output;
  int batch_axis;   /* -1: none */
  bool counts_runs; /* for random numbers; made by number_draws */
} State;

/* A weight that a step of training changes without a gradient, and its next value. */
typedef struct Statistic {
  Value *weight, *next;
} Statistic;

/* A body of If, Loop or Scan is a graph too, which shares the arena, the dims and the config. Its last inputs are the
 * node's captures. */
struct Graph {
  Arena *arena;
  Graph *outer; /* of a body: the graph of its node; else NULL */
  DimTable *dims;
  const Config *config;          /* the user's request; NULL: of a model that is not compiled */
  const LayoutPlan *layout_plan; /* result of the layout search; NULL: none */
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

  /* Of a graph that is trained; set by differentiate. The last inputs are its parameters, the weights that are trained,
   * then its statistics; the last outputs are gradients and next values, in the same order. */
  int n_parameters; /* with the statistics */
  int n_statistics;
  Statistic *statistics; /* set by decompose */
  Value **initials;      /* by parameter: the constant that it begins as */
  int loss;              /* index of the output that is the loss; -1: it is outside of the model */
  /* With --outer-loss: the inputs before the parameters are gradients of outputs, which backward is given; the outputs
   * before the parameters' gradients are those of inputs. The lists say of which. */
  int n_output_gradients, n_input_gradients;
  int *output_gradients, *input_gradients;

  MutableWeights *mutables; /* of a whole network: weights that can change; NULL: none */
  bool is_derivation;       /* it computes of such weights alone: ir/mutable.h */

  int n_stacks; /* recurrent layers that can run as a wavefront; set by find_stacks */
  Stack *stacks;

  int n_remarks, remark_capacity;
  const char **remarks; /* messages of passes for the user, a line each */

  int64_t fold_room; /* bytes of constants that folding may yet make; 0: none was made. Of shapes/fold_node.c alone */

  Value *slots; /* scratch shared by nodes: n_slots slots of slot_bytes, one a worker; or NULL */
  int64_t n_slots, slot_bytes;
};

/* Where the parameters begin in the inputs, and their gradients in the outputs. */
static inline int graph_first_parameter(const Graph *graph) { return graph->n_inputs - graph->n_parameters; }
static inline int graph_first_gradient(const Graph *graph) { return graph->n_outputs - graph->n_parameters; }

/* How many of the inputs and outputs are the model's own: all but parameters, all but gradients. */
static inline int graph_own_inputs(const Graph *graph) {
  return graph_first_parameter(graph) - graph->n_output_gradients;
}
static inline int graph_own_outputs(const Graph *graph) {
  return graph_first_gradient(graph) - graph->n_input_gradients;
}

Graph *graph_new(Arena *arena);
Value *graph_value(Graph *graph, const char *name, Location where); /* new, of unknown shape and dtype */
Value *graph_value_like(Graph *graph, const char *name, Location where, const Value *like); /* of its type and shape */
Value *graph_constant(Graph *graph, const char *name, DType dtype, int rank, const int64_t *shape, const void *data);
const char *graph_new_name(Graph *graph, const char *name); /* of no value: this one, or with `_` behind it */
Node *graph_node(Graph *graph, const OpInfo *op, const char *name, int n_inputs, int n_outputs); /* appended */
void graph_append(Graph *graph, Node *node);                 /* an existing node, for passes that rebuild the list */
void graph_withdraw(Graph *graph, Node *node);               /* after an error: its outputs stay unknown */
void graph_close_gaps(Graph *graph);                         /* removes NULLs from the list, and renumbers */
int graph_take_nodes(Graph *graph, Node ***nodes);           /* empties the list into *nodes; returns how many */
void values_remove(Value **values, int *n, int at);          /* of a list, which is then one shorter */
void graph_set_output(Node *node, int output, Value *value); /* and the value's producer */
void graph_read_instead(Graph *graph, int first_node, const Value *value, Value *other); /* nodes from that one on */
int node_own_inputs(const Node *node);                     /* without those of its epilogue, which come last */
bool node_makes_any(const Node *node, const bool *marked); /* is one of its outputs marked, by value id? */
bool node_makes_nothing(const Node *node);                 /* has each of its outputs, in all runs, no element? */
void graph_scratch(Graph *graph, Node *node, const char *name, const Dim *bytes);  /* sets node->scratch */
void graph_in_place(Graph *graph, Node *node, const char *name, const Dim *bytes); /* sets node->in_place */

void graph_pack(Graph *graph, Node *node, Value *value); /* appends to node->packed */
/* The same of a new constant of rank 1. */
void graph_pack_floats(Graph *graph, Node *node, const char *name, int64_t count, const float *data);

void graph_remark(Graph *graph, const char *format, ...) __attribute__((format(printf, 2, 3)));
void graph_renumber(Graph *graph); /* dense ids for nodes and for the values that are still reachable */

/* Sorts the nodes topologically, close to the order before. False after an error, one for each cycle. */
bool sort_nodes(Graph *graph);

/* Users of each value. Valid until the graph changes. */
typedef struct UseList {
  int *count;    /* by value id: uses as a node's input (epilogue nodes count as the host's), graph outputs included */
  Node **single; /* by value id: the using node where there is exactly one use and it is a node */
} UseList;
UseList graph_uses(Graph *graph);

/* By value id: is it an output of the graph, or a state's next value? needs: dense ids. */
bool *graph_mark_outputs(const Graph *graph);

/* Marks, by symbol, the dims of what the node reads and writes, in its bodies, too. */
void node_mark_dims(const Node *node, bool *marks);
/* Has a result of the node an extent that depends on one of these dims, which nothing depends on that it reads? */
bool node_finds_dim(const Graph *graph, const Node *node, const bool *marks);

/* Drops nodes without used outputs which find no extent that others have, and unused outputs where the op allows it. */
void graph_remove_dead(Graph *graph);

/* After a pass that put NULL in the place of nodes and appended others for them: their order, ids, and no dead ones. */
void graph_tidy(Graph *graph);

/* By node id: do the model's own outputs and states need it? Else only gradients do. needs: dense ids. */
const bool *graph_forward_nodes(const Graph *graph);

bool value_is_constant(const Value *value);
bool value_is_known(const Value *value);     /* a constant, and no program can set it: its numbers may be looked at */
bool value_static(const Value *value);       /* every axis constant */
const char *weight_name(const Value *value); /* in the model */
bool value_may_be_trained(const Graph *graph, const Value *value); /* a weight whose name --train takes */
/* The extent of the last axis is number 1, that of the axis before it number 2. */
static inline const Dim *extent_from_end(const Value *value, int number) { return value->shape[value->rank - number]; }
/* Is it a list of known elements that only shape rules read? No node writes it, and no kernel has it. */
static inline bool value_is_for_shapes(const Value *value) {
  return value->elements && !value->producer && !value->is_input && !value->data;
}
int64_t value_count(const Value *value);     /* elements, of a static shape */
int64_t value_max_count(const Value *value); /* elements in memory at the dims' maxima; saturates */
int64_t value_max_bytes(const Value *value);
/* The most pixels of a plane that kernels of blocked tensors take: they count its elements, in blocks of up to 32
 * channels, in an int, which is the type of an enumerator. Extents that only the run knows are in 64 bits. */
enum { MAX_PLANE_PIXELS = (1 << 26) - 1 };
/* Are there more, of the axes from the third whose extents are constant? */
bool value_plane_is_large(const Value *value);
double value_optimum(const Value *value); /* elements at the dims' optimum */
double value_optimum_bytes(const Value *value);
const Dim *value_count_dim(Graph *graph, const Value *value, int first_axis, int end_axis); /* product of axes */
Value *value_root(Value *value);                                                            /* follows view_of */
bool value_is_part(const Value *value); /* is it some channels of view_of? */
/* The axis from the end (-1) or the start, in 0..rank-1; -1 if out of range. */
int normal_axis(int64_t axis, int rank);

/* A text form that diffs well: one line a value and a node. */
void graph_dump(Text *out, const Graph *graph);
void value_dump_place(Text *out, const char *before,
                      const Value *value); /* "input 0", "arena+64"; "" without a place */

#endif
