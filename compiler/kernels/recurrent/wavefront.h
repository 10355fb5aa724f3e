/* SPDX-License-Identifier: MIT */
/*
 * A stack runs layer by layer, each on all workers, or as a wavefront: in a turn each worker runs a chunk of steps of
 * its own layer, then a barrier (runtime/wave.h).
 */
#ifndef RNNCC_WAVEFRONT_H
#define RNNCC_WAVEFRONT_H

#include "kernels/recurrent/choose.h"
#include "kernels/recurrent/stack.h"

enum { MAX_CHUNKS = 8 };

typedef struct StackCandidate {
  int chunk; /* steps; 0: layer by layer */
  double total_ns;
} StackCandidate;

typedef struct StackCandidates {
  int count, chosen;
  StackCandidate list[MAX_CHUNKS]; /* the first is layer by layer */
} StackCandidates;

/* The layers of a stack, lowest first; layer_by_layer_ns: their time layer by layer. */
StackCandidates stack_candidates(const Machine *machine, const LayerCase *layers, int count, double layer_by_layer_ns);

/* The stack's layers in numbers, and their time with each one's own best variant. */
const LayerCase *stack_cases(Graph *graph, const MmDag *dag, const Stack *stack, double *layer_by_layer_ns);

#endif
