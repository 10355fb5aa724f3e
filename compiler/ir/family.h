/* SPDX-License-Identifier: MIT */
/*
 * A kernel family knows how to run a set of ops with one group of templates. The op table names each op's family; the
 * passes call through this struct and know nothing of the kernels themselves.
 */
#ifndef RNNCC_FAMILY_H
#define RNNCC_FAMILY_H

#include "ir/graph.h"
#include "ir/op.h"
#include "ir/schedule.h"

typedef struct Program Program; /* program/program.h */

struct KernelFamily {
  const char *name;
  /* The layouts that the kernels can run the node in, beside row-major, which all can: a bit each (ir/layout.h). Asked
   * while shapes are known and layouts may not be, so the kernels need not look whether the tensors can_be_blocked(),
   * have few enough channels to be narrow, or fill wide blocks: possible_layouts() does. NULL: none. */
  LayoutSet (*layouts)(Graph *graph, const Node *node);
  /* Is a blocked layout worth a transform of row-major tensors? Other families run blocked where their input is. */
  bool seeks_blocked;
  /* How long the node should take if it is laid out so, in seconds at the dims' optimum; barriers are not counted. It
   * changes nothing. NULL: as long as it takes to move what it reads and writes. */
  double (*seconds)(Graph *graph, const Node *node, NodeLayout layout);
  /* The same by a schedule record; 0 where there is none. NULL: never any. */
  double (*recorded_seconds)(Graph *graph, const Node *node, NodeLayout layout);
  /* Sets node->schedule, which may hold planned knobs before. error_at(EXIT_UNSUPPORTED) for what the family cannot
   * run. NULL: nothing to choose. */
  void (*schedule)(Graph *graph, Node *node);
  /* Sets node->scratch to a Value of dtype U8 whose shape is its bytes, or leaves it NULL. NULL: never any. */
  void (*scratch)(Graph *graph, Node *node);
  /* Sets node->packed: constant Values in the layout the kernels read. NULL: constants are used as they are. */
  void (*pack)(Graph *graph, Node *node);
  /* The element-wise nodes this family's kernels can take as an epilogue. NULL: none. `host` is the producer. */
  bool (*takes_epilogue)(const Node *host, const Node *epilogue);
  /* The nodes on its first input that the kernels can do as they read it: Node.prologue. NULL: none. */
  bool (*takes_prologue)(Graph *graph, const Node *host, const Node *prologue);
  /* Can the kernels of the node's schedule write, instead of its result, the maxima of the windows of 2x2 side by side
   * (Node.pool)? NULL: never. */
  bool (*pools)(const Node *node);
  /* May the node's one output, of the same bytes, be written over this input, which nobody reads afterwards? Then every
   * worker reads of it, before it writes there, what it writes itself, and nothing else. Asked after choose_schedules;
   * the values' own memory, not parts. NULL: over none. */
  bool (*overwrites)(const Node *node, int input);
  /* For dumps: what is decided beside Schedule.knobs, every thing by name, on lines of two spaces' indent. NULL: none.
   */
  void (*dump_knobs)(Text *out, const Graph *graph, const Node *node);
  /* Adds the node's kernel calls, and what runs them, to the program. */
  void (*lower)(Program *program, Node *node);
};

/* Defined in kernels/<room>/family_<name>.c: those that ops.def names, and of nodes that only passes make. */
#define OP(name, in_min, in_max, out_min, out_max, types, layout, shape, reference, family, ...)                       \
  extern const KernelFamily family_##family;
#include "ir/ops.def"
extern const KernelFamily family_chain, family_layout;

/* How a node is run: all that was decided. Each family derives its own struct whose first member this is. */
struct Schedule {
  const char *text; /* e.g. "lstm_i256h256_p1": part of the kernel's name and of the profile; NULL: planned, no more */
  const ScheduleKind *kind; /* whose knobs these are; NULL: they have no text */
  Knobs knobs;
};

#endif
