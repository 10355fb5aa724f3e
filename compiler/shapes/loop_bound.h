/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_LOOP_BOUND_H
#define RNNCC_LOOP_BOUND_H

#include "ir/graph.h"

/* What nodes pass on that copy, or also convert: exporters cast conditions to bool, and a 1, which all types have. */
const Value *skip_copies(const Value *value);
const Value *skip_conversions(const Value *value);

/* The most iterations that a Loop's condition allows, if the body compares a number that rises in every iteration with
 * one that has a maximum; else INT64_MAX. `body` is as it was read. */
int64_t most_by_condition(Graph *graph, const Node *node, const Graph *body);

#endif
