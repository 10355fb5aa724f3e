/* SPDX-License-Identifier: MIT */
/* `rnncc inspect --explain=rnn`: the schedules of each recurrent layer, which were ruled out and why. */
#ifndef RNNCC_EXPLAIN_H
#define RNNCC_EXPLAIN_H

#include "ir/graph.h"
#include "support/text.h"

/* in_full: lists every pruned schedule. */
Text explain_recurrent(Graph *graph, bool in_full);

#endif
