/* SPDX-License-Identifier: MIT */
/* What `rnncc inspect --explain=rnn` says: how each recurrent layer could run, what was ruled out and why. */
#ifndef RNNCC_EXPLAIN_H
#define RNNCC_EXPLAIN_H

#include "ir/graph.h"
#include "support/text.h"

/* in_full: lists every pruned schedule, however many. */
Text explain_recurrent(Graph *graph, bool in_full);

#endif
