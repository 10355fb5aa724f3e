/* SPDX-License-Identifier: MIT */
/*
 * The variants of a recurrent layer that are worth a thought, their predicted times, and the one to take. The two
 * schedules that survive in phases.h and that kernels run, the input's products ahead or with their step, times each
 * degree of parallelism with the split that partition.h gives it, times what a kernel can do about barriers and about
 * weights that do not fit its cache.
 */
#ifndef RNNCC_CHOOSE_H
#define RNNCC_CHOOSE_H

#include "kernels/recurrent/cost.h"
#include "kernels/recurrent/variant.h"

typedef struct Candidate {
  RecurrentVariant variant;
  Split split;    /* of the time-dependent product */
  double traffic; /* of the split over the sequence, bytes: pcp_traffic() */
  RecurrentCost cost;
} Candidate;

typedef struct Candidates {
  int count, capacity;
  Candidate *list;
  int least;  /* of predicted time */
  int chosen; /* differs from `least` if that wins by so little that a simpler variant is taken */
} Candidates;

Candidates recurrent_candidates(Arena *arena, const Machine *machine, const LayerCase *layer);

/* How much longer a variant may be predicted to take than one with more to it, and be taken all the same. */
double variant_handicap(const RecurrentVariant *variant);

#endif
