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
  /* The layouts that the kernels can run the node in, besides row-major: a bit each (ir/layout.h). possible_layouts()
   * checks shapes: whether tensors can_be_blocked(), are narrow, or fill wide blocks. NULL: none. */
  LayoutSet (*layouts)(Graph *graph, const Node *node);
  /* Do the blocked kernels also run tensors of quantised numbers, u8 and i8, if `layouts` says so? */
  bool runs_bytes;
  /* Has the node no kernel of row-major tensors? NULL: every node has one. */
  bool (*needs_blocks)(const Node *node);
  /* Do the blocked kernels run planes whose height or width only the run knows? */
  bool runs_any_plane;
  /* Does input 0 get the layout that the node reads where it is a constant, too? Others pack their constants. */
  bool takes_constant_data;
  /* Worth inserting a layout transform for? Other families run blocked if their input is. */
  bool seeks_blocked;
  /* The predicted time of the node in a layout, in seconds at the dims' optimum, without barriers. Does not change the
   * graph. NULL: the time to move its inputs and outputs. */
  double (*seconds)(Graph *graph, const Node *node, NodeLayout layout);
  /* The time of a schedule record; 0: none. NULL: never any. */
  double (*recorded_seconds)(Graph *graph, const Node *node, NodeLayout layout);
  /* Sets node->schedule, which may have planned knobs before. error_at(EXIT_UNSUPPORTED) if the family cannot run the
   * node. NULL: nothing to choose. */
  void (*schedule)(Graph *graph, Node *node);
  /* Sets node->scratch, and node->in_place, to Values of dtype U8 whose shape is their bytes, or leaves them NULL.
   * NULL: never any. */
  void (*scratch)(Graph *graph, Node *node);
  /* Sets node->packed: constant Values in the layout the kernels read. NULL: constants are used as they are. */
  void (*pack)(Graph *graph, Node *node);
  /* The element-wise nodes this family's kernels can take as an epilogue. NULL: none. `host` is the producer. */
  bool (*takes_epilogue)(const Node *host, const Node *epilogue);
  /* The nodes that the kernels can take as a prologue on the first input (Node.prologue). NULL: none. */
  bool (*takes_prologue)(Graph *graph, const Node *host, const Node *prologue);
  /* Can the kernels of the node's schedule do a 2x2 MaxPool of stride 2 of the result (Node.pool)? NULL: never. */
  bool (*pools)(const Node *node);
  /* May node->in_place, or else the node's one output, of the same size, be written over this input, which is not read
   * afterwards? Then every worker reads exactly the bytes that it writes itself, before it writes others there. Called
   * after choose_schedules; not for parts. NULL: never. */
  bool (*overwrites)(const Node *node, int input);
  /* For dumps, also before choose_schedules: decisions besides Schedule.knobs, by name, on lines indented by two
   * spaces. NULL: none. */
  void (*dump_knobs)(Text *out, const Graph *graph, const Node *node);
  /* Of a node in the body of a loop: adds the calls that pack operands which no iteration changes, before the loop;
   * `lower` then reads what they have written. outer: by input, the value outside that it is; NULL: none. NULL: it
   * packs none. */
  void (*lower_once)(Program *program, Node *node, Value *const *outer);
  /* Adds the node's kernel calls, and what runs them, to the program. */
  void (*lower)(Program *program, Node *node);
};

/* Defined in kernels/<room>/family_<name>.c: those that ops.def names, and of nodes that only passes make. */
#define OP(name, in_min, in_max, out_min, out_max, types, layout, shape, reference, family, ...)                       \
  extern const KernelFamily family_##family;
#include "ir/ops.def"
extern const KernelFamily family_attention, family_chain, family_draw, family_layout, family_pixel_shuffle,
    family_reduced_chain, family_winograd_weights;

/* How a node is run: all that was decided. Each family derives its own struct whose first member this is. */
struct Schedule {
  const char *text; /* e.g. "lstm_i256h256_p1": part of the kernel's name and of the profile; NULL: planned, no more */
  const ScheduleKind *kind; /* whose knobs these are; NULL: they have no text */
  Knobs knobs;
};

#endif
