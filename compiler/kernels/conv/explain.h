/* SPDX-License-Identifier: MIT */
/* `rnncc inspect --explain=conv`: the candidates of each distinct convolution, and the chosen one. */
#ifndef RNNCC_EXPLAIN_CONVOLUTIONS_H
#define RNNCC_EXPLAIN_CONVOLUTIONS_H

#include "ir/graph.h"
#include "support/text.h"

/* needs: layouts. in_full: lists every candidate. */
Text explain_convolutions(Graph *graph, bool in_full);

#endif
