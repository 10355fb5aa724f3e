/* SPDX-License-Identifier: MIT */
/* Constants that are one weight, wherever they are read. */
#ifndef RNNCC_DIFFERENTIATE_WEIGHTS_H
#define RNNCC_DIFFERENTIATE_WEIGHTS_H

#include "ir/graph.h"

/* A constant that the model declares, with axes, and whose name is chosen. */
bool is_chosen(const Graph *graph, const Value *value);

/* A loop that was unrolled has a copy of each constant for each turn: of copies of a weight one stays. */
void join_copies(Graph *graph);

/* Bodies have constants of their own. Those that are weights which steps change (chosen, and the loss depends on them,
 * or running statistics) become captures: of the same value of the graph everywhere. `reached`: by value id, of the
 * graph.
 */
void capture_weights(Graph *graph, const bool *reached);

#endif
