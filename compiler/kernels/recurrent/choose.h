/* SPDX-License-Identifier: MIT */
/*
 * The candidates of a recurrent layer with predicted times, and the chosen one: each schedule that survives in phases.h
 * and that kernels run, with each degree of parallelism and its split by partition.h, with and without hiding barriers
 * and blocking the depth.
 */
#ifndef RNNCC_CHOOSE_H
#define RNNCC_CHOOSE_H

#include "kernels/recurrent/cost.h"
#include "kernels/recurrent/phase_window.h"
#include "kernels/recurrent/variant.h"

typedef struct Candidate {
  const LayerSchedule *schedule; /* one of Candidates.schedules */
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
  int chosen; /* differs from `least` if a simpler variant is hardly slower */
} Candidates;

/* The candidates of each survivor that kernels run, in the survivors' order. */
Candidates recurrent_candidates(Arena *arena, const Machine *machine, const LayerWindow *window,
                                const LayerCase *layer);

/* The same for a layer of the graph. */
Candidates layer_candidates(Graph *graph, const MmDag *dag, const MmLayer *layer);

#endif
