/* SPDX-License-Identifier: MIT */
/* The distinct convolutions of a model and of its bodies, each once: what there is to tune. */
#ifndef RNNCC_WORKLOADS_H
#define RNNCC_WORKLOADS_H

#include "kernels/conv/candidates.h"
#include "schedules/records.h"

typedef struct Workload {
  RecordKey key;
  const Node *node;          /* the first of them, */
  NodeLayout layout;         /* as the model has laid it out, or as it may be */
  ConvCandidates candidates; /* two at least; the first is what is taken without records */
  int occurrences;
  int most_trials;   /* 0: as many as usual */
  bool other_blocks; /* the layout is another than the model's: times of another choice of layouts */
  double macs;
} Workload;

typedef struct Workloads {
  int count;
  Workload *list; /* those first on which the network should spend most of its time */
} Workloads;

/* needs: layouts. Of `shards` machines' shares the `shard`-th, from 1: together they are all, and no two have one in
 * common, whatever each machine thinks of its own speed. */
Workloads find_workloads(Graph *graph, int shard, int shards);

#endif
