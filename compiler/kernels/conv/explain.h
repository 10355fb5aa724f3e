/* SPDX-License-Identifier: MIT */
/* What `rnncc inspect --explain=conv` says: how each distinct convolution could run, and what is chosen. */
#ifndef RNNCC_EXPLAIN_CONVOLUTIONS_H
#define RNNCC_EXPLAIN_CONVOLUTIONS_H

#include "ir/graph.h"
#include "support/text.h"

/* needs: layouts. in_full: lists every candidate, however many. */
Text explain_convolutions(Graph *graph, bool in_full);

#endif
