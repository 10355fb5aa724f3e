/* SPDX-License-Identifier: MIT */
/*
 * All ways to run a convolution if it is laid out so, and the one that is taken: what --conv forces, else what a
 * schedule record of the same work says, else the first candidate. Nothing here changes the node.
 */
#ifndef RNNCC_CANDIDATES_H
#define RNNCC_CANDIDATES_H

#include "kernels/conv/convolution.h"

/* What is worth trying, in order of the time that it should take, but for what is unusual. There is at least one, and
 * the first is what is taken where nothing else is said. */
ConvCandidates convolution_candidates(Graph *graph, const Node *node, NodeLayout layout);

/* The first of them, without listing the others. */
ConvCandidate convolution_first(Graph *graph, const Node *node, NodeLayout layout);

/* The schedule of a candidate of the node. */
ConvSchedule *convolution_schedule(Graph *graph, const Node *node, NodeLayout layout, const ConvCandidate *candidate);

/* The schedule that a whole text says, as convolution_text() writes it. NULL, with the reason in *why, where the text
 * is none, or not of this node: the algorithm does not run it, or not with these knobs. */
ConvSchedule *convolution_of_text(Graph *graph, const Node *node, NodeLayout layout, const char *text,
                                  const char **why);

/* Seconds of the node by a record of it, whose schedule is taken then; 0: there is none. */
double convolution_recorded_seconds(Graph *graph, const Node *node, NodeLayout layout);

/* The schedule that is taken; of one that was measured, seconds are those. */
ConvSchedule *convolution_choose(Graph *graph, const Node *node, NodeLayout layout);

#endif
