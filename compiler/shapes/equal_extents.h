/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_EQUAL_EXTENTS_H
#define RNNCC_EQUAL_EXTENTS_H

#include "ir/graph.h"

/* NonZero, Compress, or the sum of conditions that an earlier node has counted becomes a copy of its result, of which
 * both have the length then; NonZero of a list of ones becomes a Range. needs: the inputs' shapes. */
void share_counts(Graph *graph, Node *node);

/* Where extents of the node's inputs must be equal, and only the run tells whether they are: appends ExpectExtent nodes
 * for the node to read, with which they are one. needs: the inputs' shapes. */
void expect_extents(Graph *graph, Node *node);

#endif
