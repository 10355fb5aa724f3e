/* SPDX-License-Identifier: MIT */
/*
 * Shape arithmetic: tensors whose elements are expressions over the named dimensions, as exporters compute them from
 * Shape. Elements of floats are ratios, known only while f32 holds them exactly.
 */
#ifndef RNNCC_ELEMENTS_H
#define RNNCC_ELEMENTS_H

#include "ir/graph.h"

/* numerator / divisor; divisor > 0. */
typedef struct Ratio {
  const Dim *numerator;
  int64_t divisor;
} Ratio;

/* The elements of a small tensor of static shape, constant or symbolic, row-major; NULL if not known. */
Ratio *known_ratios(Graph *graph, const Value *value);

/* Were Range's operands known when its shape was inferred? Else the run reads them. */
bool range_is_known(Graph *graph, const Node *node);
/* Known operands; false with an error if one is no ratio. */
bool read_range(Graph *graph, const Node *node, Ratio *start, Ratio *limit, Ratio *delta);

/* Sets the known elements of the node's outputs. needs: their types and shapes. */
void infer_elements(Graph *graph, Node *node);

#endif
