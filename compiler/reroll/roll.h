/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_ROLL_H
#define RNNCC_ROLL_H

#include "reroll/chains.h"

/* Each chain becomes one op; or several, where a step's x depends on an earlier step's result. The old nodes stay, but
 * their results are not read. Breaks the order of the nodes. */
void roll_chains(Graph *graph, const Chains *chains);

/* A Concat of the results of consecutive steps is what the op gives as a whole. Breaks the order of the nodes. */
void merge_stacks(Graph *graph);

#endif
