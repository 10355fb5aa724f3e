/* SPDX-License-Identifier: MIT */
/*
 * What a Conv node computes, and the ways to compute it. An algorithm lists its candidates for a node, each a choice of
 * its knobs, with how long they should take (candidates.h). Channels are C, kernels (output channels) K, the window
 * R x S.
 */
#ifndef RNNCC_CONVOLUTION_H
#define RNNCC_CONVOLUTION_H

#include "ir/family.h"
#include "ir/schedule.h"
#include "shapes/shape.h"

/* One spatial axis as the kernels see it. Node attributes are resolved: auto_pad, defaults. */
typedef struct ConvAxis {
  int64_t kernel, stride, dilation;
  const Dim *in, *out, *pad_begin, *pad_end;
} ConvAxis;

/* Axis `from_end` of the window, 0 being the last; where it has fewer, one of a single element. */
ConvAxis convolution_axis(Graph *graph, const Node *node, const Window *window, int from_end);

/* A convolution over one axis is one over a plane of one row, one over two a volume of one plane. Only plain tensors
 * have more than one plane. */
typedef struct Convolution {
  ConvAxis d, h, w;
  int64_t groups, channels, kernels; /* channels and kernels of one group */
  const Value *x, *y;
  const Value *weights;  /* [groups * kernels][channels][Q][R][S]; constant or not */
  const Value *bias;     /* [groups * kernels], or NULL */
  const Value *residual; /* of y's shape, added before the epilogue; or NULL */
  int x_block, y_block;  /* channels of the blocks that x, and y with the residual, are in; 0: row-major */
} Convolution;

/* As it is if the node is laid out so. */
Convolution convolution_of(Graph *graph, const Node *node, NodeLayout layout);

/* Multiply-adds at the dims' optimum. */
double convolution_macs(const Convolution *conv);

/* Of the window's taps along the axis, those that lie in the input, on average over the output. Constant extents. */
double convolution_taps_inside(const ConvAxis *axis);

/* The chain that follows bias and residual, as the body of a hook `vec epilogue(vec x)`; NULL: none. */
const char *convolution_epilogue(Arena *arena, const Node *node);

typedef struct ConvAlgorithm ConvAlgorithm;
typedef struct KernelSpec KernelSpec; /* template/specialise.h */

enum { MAX_CONV_KERNELS = 2 };

/* A way to run a node. */
typedef struct ConvCandidate {
  const ConvAlgorithm *algorithm;
  Knobs knobs;
  double seconds; /* as estimated, or measured */
  bool usual;     /* of the kind that the estimate was made for: the others must be better by a margin */
  int order;      /* of two that should take the same time the one of less is preferred */
} ConvCandidate;

typedef struct ConvCandidates {
  Arena *arena;
  const ConvAlgorithm *algorithm; /* whose candidates are added */
  bool only_best;                 /* the list is no longer than 1 */
  int count, capacity;
  ConvCandidate *list;
} ConvCandidates;

const char *convolution_text(Arena *arena, const ConvCandidate *candidate); /* schedule_print() of it */

/* For ConvAlgorithm.list: those to prefer come first. */
void candidates_add(ConvCandidates *candidates, const Knobs *knobs, double seconds, bool usual);

/* Of a node; each algorithm derives its own struct whose first member this is. */
typedef struct ConvSchedule {
  Schedule base;
  Convolution conv;
  double seconds; /* as estimated, or measured */
  /* The kernel reads each element of the residual once, just before it writes that of y: y may stand in its place. Not
   * so where sums wait in y for a second pass over the channels. */
  bool reads_residual_last;
} ConvSchedule;

static inline const ConvSchedule *conv_schedule_of(const Node *node) { return (const ConvSchedule *)node->schedule; }

struct ConvAlgorithm {
  ScheduleKind kind; /* first, so that the algorithm is found by it; its name begins the schedules' texts too */
  /* Can it run the convolution on blocked tensors? NULL: it runs on plain ones, any convolution. */
  bool (*runs_blocked)(const Graph *graph, const Convolution *conv);
  /* Can it normalise and activate the input as it reads it (Node.prologue), where it runs blocked? NULL: never. */
  bool (*takes_prologue)(const Graph *graph, const Convolution *conv);
  bool takes_wide; /* does it read and write wide blocks of channels, where it runs blocked? */
  /* May it run the node in the blocks of `conv`? NULL: wherever it can. */
  bool (*suits)(const Graph *graph, const Node *node, const Convolution *conv);
  /* Adds what is worth trying of a node that it may run: at least one candidate, all of which fit. */
  void (*list)(Graph *graph, const Node *node, const Convolution *conv, ConvCandidates *candidates);
  /* Moves each knob to the nearest value that the kernel can run the node with. */
  void (*fit)(Graph *graph, const Node *node, const Convolution *conv, Knobs *knobs);
  /* The schedule of knobs that fit, with base.text, seconds and reads_residual_last set. */
  ConvSchedule *(*make)(Graph *graph, const Node *node, const Convolution *conv, const Knobs *knobs);
  /* The kernels that a node of such a schedule calls; how many, MAX_CONV_KERNELS at most. */
  int (*kernels)(const Graph *graph, const Node *node, KernelSpec **kernels);
  /* As in KernelFamily. scratch may be NULL. */
  void (*scratch)(Graph *graph, Node *node);
  void (*pack)(Graph *graph, Node *node);
  bool (*pools)(const Node *node); /* may be NULL */
  void (*lower)(Program *program, Node *node);
};

#define ALGORITHM(name) extern const ConvAlgorithm convolution_##name;
#include "kernels/conv/algorithms.def"
#undef ALGORITHM
/* All of them, and their kinds; NULL at the end. */
extern const ConvAlgorithm *const convolution_algorithms[];
extern const ScheduleKind *const convolution_kinds[];

static inline const ConvAlgorithm *algorithm_of(const ScheduleKind *kind) { return (const ConvAlgorithm *)kind; }
static inline const ConvAlgorithm *node_algorithm(const Node *node) { return algorithm_of(node->schedule->kind); }

#endif
