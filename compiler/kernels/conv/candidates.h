/* SPDX-License-Identifier: MIT */
/*
 * All schedules of a convolution in a layout, and the chosen one: that of --conv, else of a schedule record, else the
 * first candidate. Nothing here changes the node.
 */
#ifndef RNNCC_CANDIDATES_H
#define RNNCC_CANDIDATES_H

#include "kernels/conv/convolution.h"

/* Does an algorithm that runs the convolution in this layout take the node? See ConvAlgorithm.suits. */
bool convolution_suits(const ConvAlgorithm *algorithm, const Graph *graph, const Node *node, const Convolution *conv);

/* The candidates by predicted time, with a margin on unusual ones. There is at least one, and the first is chosen by
 * default. */
ConvCandidates convolution_candidates(Graph *graph, const Node *node, NodeLayout layout);

/* The first of them only. */
ConvCandidate convolution_first(Graph *graph, const Node *node, NodeLayout layout);

/* The schedule of a candidate of the node. */
ConvSchedule *convolution_schedule(Graph *graph, const Node *node, NodeLayout layout, const ConvCandidate *candidate);

/* The schedule of a complete text, as convolution_text() writes it. NULL, with the reason in *why, if the text is wrong
 * or the algorithm cannot run the node with these knobs. */
ConvSchedule *convolution_of_text(Graph *graph, const Node *node, NodeLayout layout, const char *text,
                                  const char **why);

/* The algorithm of --conv; NULL: each node has its own. */
const ConvAlgorithm *convolution_forced(const Graph *graph);

/* The measured time of the node's record; 0: none. */
double convolution_recorded_seconds(Graph *graph, const Node *node, NodeLayout layout);

/* The chosen schedule, with the measured time if it is recorded. */
ConvSchedule *convolution_choose(Graph *graph, const Node *node, NodeLayout layout);

#endif
