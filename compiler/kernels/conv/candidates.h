/* SPDX-License-Identifier: MIT */
/*
 * All ways to run a convolution as it is laid out (node->blocked, channel_block of its values), and the one that is
 * taken: what --conv forces, else what a schedule record of the same work says, else the first candidate.
 */
#ifndef RNNCC_CANDIDATES_H
#define RNNCC_CANDIDATES_H

#include "kernels/conv/convolution.h"

/* What is worth trying, in order of the time that it should take, but for what is unusual. There is at least one, and
 * the first is what is taken where nothing else is said. */
ConvCandidates convolution_candidates(Graph *graph, const Node *node);

/* The first of them, without listing the others. */
ConvCandidate convolution_first(Graph *graph, const Node *node);

/* The schedule of a candidate of the node. */
ConvSchedule *convolution_schedule(Graph *graph, const Node *node, const ConvCandidate *candidate);

/* The schedule that a whole form says, as convolution_form() writes it. NULL, with the reason in *why, where the form
 * is none, or not of this node: the algorithm does not run it, or not with these knobs. */
ConvSchedule *convolution_of_form(Graph *graph, const Node *node, const char *form, const char **why);

/* Seconds of the node by a record of it, whose schedule is taken then; 0: there is none. */
double convolution_recorded_seconds(Graph *graph, const Node *node);

/* The schedule that is taken; of one that was measured, candidate.seconds are those. */
ConvSchedule *convolution_choose(Graph *graph, const Node *node);

/* The node as it would be in blocks of a vector, or wide ones where it is said; its values are copies. An input that
 * stands in one block of few channels does so still. */
const Node *convolution_in_blocks(Graph *graph, const Node *node, bool reads_wide, bool writes_wide);

#endif
