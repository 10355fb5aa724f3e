/* SPDX-License-Identifier: MIT */
/*
 * Layers in a row, side by side: the steps are cut into chunks, and a layer may run a chunk once it has run the one
 * before, and the layer before it has run this one. In a turn each worker runs a chunk of one layer, alone; turns are
 * kept apart by barriers. The deepest layers that may run do: so no layer runs far ahead, and with more layers than
 * workers these are never short of work. Every worker finds out for itself who runs what, with the same result.
 */
#ifndef RNNCC_WAVE_H
#define RNNCC_WAVE_H

#include <stdbool.h>

#include "team.h"

typedef struct Wave {
  int layers;
  int64_t steps, chunk; /* the last chunk may be shorter */
  int64_t *done;        /* [layers]: steps that have been given to somebody; all 0 at the start */
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
