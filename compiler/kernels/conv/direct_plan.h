/* SPDX-License-Identifier: MIT */
/*
 * The blocking and order of a direct convolution: the knobs of templates/conv_direct.c, and the best of them by an
 * analytic cost, that of the slowest core: its multiply-adds or loads, and the traffic from L2, L3 and memory, of which
 * prefetchers hide most.
 */
#ifndef RNNCC_DIRECT_PLAN_H
#define RNNCC_DIRECT_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/graph.h"
#include "machine/machine.h"
#include "support/text.h"

/* A convolution in numbers. With a 1x1 window without stride or padding a plane is one row. */
typedef struct DirectLayer {
  int64_t images;
  int64_t lanes;
  int64_t in_block, depth; /* channels of a block of the input; input channels that an output channel's sum is over */
  int64_t span;            /* channel blocks that they are in */
  int64_t oc_vectors;      /* of all output channels */
  int64_t group_vectors;   /* the vectors of an oc group must divide this; 0: any */
  int64_t in_h, in_w, out_h, out_w, window_h, window_w, stride_h, stride_w;
  int64_t up_h, up_w; /* of a transposed convolution: so many planes, as described, share the window; 0: it is none */
  double step;        /* the time of a step's product, of a multiply-add's of floats */
  double taps;        /* of the window, inside the input, on average; others are skipped */
  bool residual, prologue;
  bool of_bytes; /* quantised tensors; a channel of the input is a step of four bytes */
  bool by_two;   /* of these: two columns and two steps at once; depth and span are even */
} DirectLayer;

/* Channels of a turn of the inner loop where registers are few. */
enum { DIRECT_LONG_TURN = 8 };

typedef struct DirectPlan {
  int oc_vectors;                  /* of a tile */
  int columns;                     /* of a tile, at most */
  int unroll;                      /* input channels unrolled in the inner loop */
  int64_t pass;                    /* blocks of input channels in a pass; partial sums are in the output; 0: all */
  int64_t group_chunk, tile_chunk; /* oc groups and tiles of a chunk; 0: all, but see direct_tile_chunk */
  double seconds;
} DirectPlan;

/* The predicted time; also sets plan->seconds. */
double direct_seconds(const Target *target, const Machine *machine, const DirectLayer *layer, DirectPlan *plan);

/* Calls `visit` with each candidate plan and its predicted time, preferred ones first. The usual ones have the widest
 * tiles that fit, and one pass. */
void direct_each_plan(const Target *target, const Machine *machine, const DirectLayer *layer,
                      void (*visit)(void *argument, const DirectPlan *plan, bool usual), void *argument);

/* Moves the plan's knobs to the nearest values that the template can run the layer with. */
void direct_fit(const DirectLayer *layer, DirectPlan *plan);

/* Its part of a schedule's text: "oc2px14u2", then a pass, and chunks. */
void direct_plan_text(Text *text, const DirectPlan *plan);

/* Tiles of a row, and of the plane. */
int64_t direct_row_tiles(const DirectLayer *layer, const DirectPlan *plan);

/* Tiles of a chunk. With few weights, "all" means one chunk a core: each core reads all weights and writes all channels
 * of its own pixels, which the next kernel will read on it. */
int64_t direct_tile_chunk(const Machine *machine, const DirectLayer *layer, const DirectPlan *plan);
/* The same as the kernel's operand: of a plane that only the run knows, in as many chunks as at the dims' optimum. */
const Dim *direct_chunk_dim(const Graph *graph, const DirectLayer *layer, const DirectPlan *plan, const Dim *out_h,
                            const Dim *out_w);

#endif
