/* SPDX-License-Identifier: MIT */
/* Which copies pack a constant, found from where each of its elements comes. */
#ifndef RNNCC_WEIGHT_COPIES_H
#define RNNCC_WEIGHT_COPIES_H

#include "ir/mutable.h"

/* Where one element comes from. */
typedef struct Origin {
  int source; /* block */
  bool adds;
  int64_t from;
} Origin;

/* Collects the elements of one target, in order, as nests of loops with strides. */
typedef struct CopyFinder CopyFinder;
CopyFinder *copies_begin(Arena *scratch, int target, DType dtype);
void copies_element(CopyFinder *finder, int64_t to, Origin origin);
/* Adds the copies to those of `mutables`, in `arena`. */
void copies_end(CopyFinder *finder, Arena *arena, MutableWeights *mutables);

#endif
