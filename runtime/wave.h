/* SPDX-License-Identifier: MIT */
/*
 * A wavefront over consecutive layers: the steps are cut into chunks, and a layer may run a chunk once it has run the
 * chunk before and the layer before it has run this one. In a turn each worker runs a chunk of one layer, alone;
 * barriers separate the turns. Of the layers that may run, the deepest do: so no layer runs far ahead, and with more
 * layers than workers there is always enough work. Every worker computes the same assignment for itself.
 */
#ifndef RNNCC_WAVE_H
#define RNNCC_WAVE_H

#include <stdbool.h>

#include "team.h"

typedef struct Wave {
  int layers;
  int64_t steps, chunk; /* the last chunk may be shorter */
  int64_t *done;        /* [layers]: steps that have been given to a worker; all 0 at the start */
  int layer;            /* that this worker runs in this turn, -1: none; `count` steps of it from `first` on */
  int64_t first, count;
} Wave;

/* The next turn. False if all is done. */
static inline bool wave_turn(Wave *wave, const Team *team) {
  int taken = 0;
  wave->layer = -1;
  for (int layer = wave->layers - 1; layer >= 0 && taken < team->size; layer--) {
    int64_t first = wave->done[layer], ready = layer ? wave->done[layer - 1] : wave->steps;
    if (first == ready) continue;
    int64_t count = ready - first < wave->chunk ? ready - first : wave->chunk;
    wave->done[layer] += count;
    if (taken++ != team->rank) continue;
    wave->layer = layer;
    wave->first = first;
    wave->count = count;
  }
  return taken > 0;
}

#endif
