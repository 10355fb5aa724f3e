/* SPDX-License-Identifier: MIT */
/* "Did you mean ...?": the candidate that a slip of the finger turns into the word at hand. And what there is to choose
 * from, the nearest first. */
#ifndef RNNCC_CLOSEST_H
#define RNNCC_CLOSEST_H

#include "support/arena.h"

typedef struct Closest {
  const char *word, *best; /* best: NULL if no candidate so far is close */
  int distance;            /* of best */
} Closest;

Closest closest_to(const char *word);
void closest_try(Closest *closest, const char *candidate);
/* `; did you mean "axis"?`, or "". */
const char *closest_hint(Arena *arena, const Closest *closest);

/* `"hN", "y" and 12 more`; `none`. */
const char *nearest_names(Arena *arena, const char *word, const char *const *names, int count);

#endif
