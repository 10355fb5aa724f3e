/* SPDX-License-Identifier: MIT */
/*
 * Whether the layers of a stack run one after the other, each on all workers, or as a wavefront: a turn is a chunk of
 * steps of as many layers as there are workers, each alone with its layer, and one barrier (runtime/wave.h).
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

/* The layers of a stack, lowest first; layer_by_layer_ns: what they take each on its own. */
StackCandidates stack_candidates(const Machine *machine, const LayerCase *layers, int count, double layer_by_layer_ns);

/* Of the stack's layers, the numbers and what they take by their own choices. */
const LayerCase *stack_cases(Graph *graph, const MmDag *dag, const Stack *stack, double *layer_by_layer_ns);

#endif
