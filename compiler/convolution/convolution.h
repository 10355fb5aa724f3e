/* SPDX-License-Identifier: MIT */
/*
 * What a Conv node computes, and the ways to compute it. An algorithm proposes its best schedule for a node and tells
 * how long it should take; the cheapest is run. Channels are C, kernels (output channels) K, the window R x S.
 */
#ifndef RNNCC_CONVOLUTION_H
#define RNNCC_CONVOLUTION_H

#include "emit/family.h"
#include "graph/shape.h"

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
} Convolution;

Convolution convolution_of(Graph *graph, const Node *node);

/* Multiply-adds at the dims' optimum. */
double convolution_macs(const Convolution *conv);

/* The chain that follows bias and residual, as the body of a hook `vec epilogue(vec x)`; NULL: none. */
const char *convolution_epilogue(Arena *arena, const Node *node);

typedef struct ConvAlgorithm ConvAlgorithm;

/* Chosen knobs; each algorithm derives its own struct whose first member this is. */
typedef struct ConvSchedule {
  Schedule base;
  const ConvAlgorithm *algorithm;
  Convolution conv;
  double seconds; /* as estimated */
  /* The kernel reads each element of the residual once, just before it writes that of y: y may stand in its place. Not
   * so where sums wait in y for a second pass over the channels. */
  bool reads_residual_last;
} ConvSchedule;

static inline const ConvSchedule *conv_schedule_of(const Node *node) { return (const ConvSchedule *)node->schedule; }

struct ConvAlgorithm {
  const char *name; /* the first word of its schedules' texts */
  /* Can it run the convolution on blocked tensors? NULL: it runs on plain ones, any convolution. */
  bool (*runs_blocked)(const Graph *graph, const Convolution *conv);
  /* Can it normalise and activate the input as it reads it (Node.prologue), where it runs blocked? NULL: never. */
  bool (*takes_prologue)(const Graph *graph, const Convolution *conv);
  /* Its best schedule for a node that it can run, with base.text and seconds set; NULL to stand back. */
  ConvSchedule *(*choose)(Graph *graph, const Node *node, const Convolution *conv);
  /* As in KernelFamily. scratch may be NULL. */
  void (*scratch)(Graph *graph, Node *node);
  void (*pack)(Graph *graph, Node *node);
  void (*emit)(Emitter *emitter, Node *node);
};

#define ALGORITHM(name) extern const ConvAlgorithm convolution_##name;
#include "convolution/algorithms.def"
#undef ALGORITHM

#endif
