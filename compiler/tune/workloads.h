/* SPDX-License-Identifier: MIT */
/* The distinct convolutions of a model and of its bodies, each once: the tasks of a tuning. */
#ifndef RNNCC_WORKLOADS_H
#define RNNCC_WORKLOADS_H

#include "kernels/conv/candidates.h"
#include "schedules/records.h"

typedef struct Workload {
  RecordKey key;
  const Node *node;          /* the first of them, */
  NodeLayout layout;         /* the model's, or another possible one */
  ConvCandidates candidates; /* two at least; the first is the choice without records */
  int occurrences;
  int most_trials;   /* 0: as many as usual */
  bool other_blocks; /* the layout is not the model's: its times may change the choice of layouts */
  double macs;
} Workload;

typedef struct Workloads {
  int count;
  Workload *list; /* by their predicted share of the network's time, largest first */
} Workloads;

/* needs: layouts. The `shard`-th of `shards` shares, from 1. The shares are disjoint and together all workloads: they
 * do not depend on how fast a machine believes that it is. */
Workloads find_workloads(Graph *graph, int shard, int shards);

#endif
