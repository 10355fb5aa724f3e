/* SPDX-License-Identifier: MIT */
/*
 * Value ranges: an interval that holds every element of an integer tensor, in every run. They bound what depends on
 * data: the length of a Range, the iterations of a Loop.
 */
#ifndef RNNCC_INTERVALS_H
#define RNNCC_INTERVALS_H

#include "ir/graph.h"

/* The interval of the value's elements; at most that of its type. Of floats and u64: everything. */
IntRange value_interval(Graph *graph, const Value *value);

/* For messages, after "an integer that has a maximum: ". */
extern const char interval_hint[];

/* Sets the intervals of the node's outputs. needs: their types, shapes and elements. */
void infer_intervals(Graph *graph, Node *node);

#endif
