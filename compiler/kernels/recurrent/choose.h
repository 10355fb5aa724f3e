/* SPDX-License-Identifier: MIT */
/*
 * The variants of a recurrent layer that are worth a thought, their predicted times, and the one to take. The schedules
 * that survive in phases.h and that kernels run, times each degree of parallelism with the split that partition.h gives
 * it, times what a kernel can do about barriers and about weights that do not fit its cache.
 */
#ifndef RNNCC_CHOOSE_H
#define RNNCC_CHOOSE_H

#include "kernels/recurrent/cost.h"
#include "kernels/recurrent/phase_window.h"
#include "kernels/recurrent/variant.h"

typedef struct Candidate {
  const LayerSchedule *schedule; /* that the variant runs: one of Candidates.schedules */
  RecurrentVariant variant;
  Split split;    /* of the time-dependent product */
  double traffic; /* of the split over the sequence, bytes: pcp_traffic() */
  RecurrentCost cost;
} Candidate;

typedef struct Candidates {
  const LayerWindow *window;
  LayerSchedules schedules; /* the survivors, whether kernels run them or not */
  int count, capacity;
  Candidate *list;
  int least;  /* of predicted time */
  int chosen; /* differs from `least` if that wins by so little that a simpler variant is taken */
} Candidates;

/* Of each survivor of the window that kernels run, in the survivors' order. */
Candidates recurrent_candidates(Arena *arena, const Machine *machine, const LayerWindow *window,
                                const LayerCase *layer);

/* The same of a layer of the graph. */
Candidates layer_candidates(Graph *graph, const MmDag *dag, const MmLayer *layer);

/* How much longer a variant may be predicted to take than one with more to it, and be taken all the same. */
double variant_handicap(const RecurrentVariant *variant);

#endif
