/* SPDX-License-Identifier: MIT */
/* From cells to sequences: single cells, and cells that follow one another with the same weights. */
#ifndef RNNCC_CHAINS_H
#define RNNCC_CHAINS_H

#include "reroll/cell.h"

typedef struct Chains {
  int n;
  Cell **heads; /* first steps, in the graph's order; `next` leads on */
} Chains;

/* Afterwards `hidden` is known, except for a head whose h is zero. */
Chains find_chains(Graph *graph);

#endif
