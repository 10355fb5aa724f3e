/* SPDX-License-Identifier: MIT */
/*
 * The predicted time of a variant of a recurrent layer: multiply-adds or bytes read at each level of cache, whichever
 * is longer; the cells' functions; and barriers. For one run at the dims' optimum, with warm weights, as after the
 * first run.
 */
#ifndef RNNCC_COST_H
#define RNNCC_COST_H

#include "kernels/recurrent/mm_dag.h"
#include "kernels/recurrent/partition.h"
#include "machine/machine.h"

/* A layer in numbers. A panel has all gates of some units, with padding. */
typedef struct LayerCase {
  int directions, gates, lanes;
  int rows, vectors;             /* of a block: samples, with sums in registers, and vectors of a panel */
  int parts;                     /* of one sample's sums, which hide the latency of an addition */
  int input_rows, input_vectors; /* of a block of the input's product */
  int phases;                    /* barriers of a step: GRU with the reset gate before its product has two */
  int functions;                 /* exp, tanh, sigmoid of a unit and step */
  bool int8;                     /* products of integers (int8.h) */
  double weight;                 /* bytes of a weight */
  int dot;                       /* int8: instructions of a vector's products, where f32 has a multiply-add */
  bool tiles;                    /* int8: half of one for each row of a pair */
  int bf16_rows, bf16_depth;     /* products of bf16: samples of a tile, steps of an instruction; 0: none */
  bool matrices, input_matrices; /* products with R, with W, of up to 16 rows and columns by an instruction */
  int row_parts, input_parts;    /* of a state, of an input: rows of these that one becomes, as the sum of so many */
  bool from_zero;                /* no initial state: the first step's product is zero */
  bool takes_steps;              /* INPUT_WITH_STEP can run it */
  bool takes_hide;               /* RecurrentVariant.hide can */
  bool takes_chunks;             /* RecurrentVariant.chunk can be set outside a stack */
  int64_t steps, batch, inputs, hidden, panels, panel_units;
  int64_t most_steps, most_batch;
} LayerCase;

LayerCase layer_case(const MmLayer *layer, const Target *target);

typedef struct RecurrentCost { /* nanoseconds of the slowest worker */
  double input;                /* the input's products, if made ahead */
  double products, cells, waits;
  double total;
} RecurrentCost;

RecurrentCost recurrent_cost(const Machine *machine, const LayerCase *layer, const RecurrentVariant *variant);

/* The time of a barrier; 0 for one worker. */
double meeting_ns(const Machine *machine, int workers);
/* Bytes of weights that a core's L2 keeps. */
int64_t usable_l2(const Machine *machine);
/* The part of bytes, swept in alternating direction, that a core finds in its own caches, 0 to 1. */
double kept_in_l2(const Machine *machine, double bytes);
/* Bytes of W and R, all directions. */
double weight_bytes(const LayerCase *layer);

/* The workers that one direction can have. */
int crew_size(const Machine *machine, const LayerCase *layer);
/* The time-dependent product as partition.h sees it. */
MmExtents hidden_extents(const LayerCase *layer, InputProduct input);

#endif
