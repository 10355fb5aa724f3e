/* SPDX-License-Identifier: MIT */
/*
 * How a direct convolution is blocked and ordered: the knobs of templates/conv_direct.c, and the best of them by an
 * analytic cost. What a schedule costs is what the slowest core does: its multiply-adds or loads, with what comes from
 * L2, L3 and memory meanwhile, of which the prefetchers hide most. As in winograd_plan.h each weight comes from memory
 * once, the rest from caches.
 */
#ifndef RNNCC_DIRECT_PLAN_H
#define RNNCC_DIRECT_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "machine/machine.h"

/* A convolution in numbers; a plane under a 1x1 window without stride or padding is one row. */
typedef struct DirectLayer {
  int64_t images;
  int64_t lanes;
  int64_t in_block, depth; /* channels of a block of the input; input channels that an output channel's sum is over */
  int64_t span;            /* channel blocks that they are in */
  int64_t oc_vectors;      /* of all output channels */
  int64_t group_vectors;   /* a number that an oc group's divide; 0: any */
  int64_t in_h, in_w, out_h, out_w, window_h, window_w, stride_h, stride_w;
  double taps; /* of the window that lie in the input, on average: the others are skipped */
  bool residual, prologue;
} DirectLayer;

typedef struct DirectPlan {
  int oc_vectors;                  /* of a tile */
  int columns;                     /* of a tile, at most */
  int unroll;                      /* input channels that the inner loop takes at once */
  int64_t pass;                    /* blocks of input channels between which sums wait in the output; 0: all */
  int64_t group_chunk, tile_chunk; /* oc groups and tiles of a chunk; 0: all, but see direct_tile_chunk */
  double seconds;
} DirectPlan;

/* As estimated; sets plan->seconds too. */
double direct_seconds(const Target *target, const Machine *machine, const DirectLayer *layer, DirectPlan *plan);

/* Calls `visit` with each plan that is worth trying, its seconds estimated; those to prefer at equal seconds first.
 * The usual ones have the widest tiles that fit, and no sums wait. */
void direct_each_plan(const Target *target, const Machine *machine, const DirectLayer *layer,
                      void (*visit)(void *argument, const DirectPlan *plan, bool usual), void *argument);

/* Moves what the plan says into what the template can run the layer with. */
void direct_fit(const DirectLayer *layer, DirectPlan *plan);

/* Tiles of a row, and of the plane. */
int64_t direct_row_tiles(const DirectLayer *layer, const DirectPlan *plan);

/* Tiles of a chunk. All of them are as many chunks as there are cores where the weights are little beside the output: a
 * core reads them all, and writes pixels of its own, all channels of them, which the next kernel will read on it. */
int64_t direct_tile_chunk(const Machine *machine, const DirectLayer *layer, const DirectPlan *plan);

#endif
