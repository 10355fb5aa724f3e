/* SPDX-License-Identifier: MIT */
/* Recurrent cells that are written out become recurrent ops again. */
#ifndef RNNCC_REROLL_RNN_H
#define RNNCC_REROLL_RNN_H

#include "ir/graph.h"

void reroll_rnn(Graph *graph);

#endif
