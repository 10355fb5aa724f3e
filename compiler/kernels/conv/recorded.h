/* SPDX-License-Identifier: MIT */
/* Convolutions in the words of schedule records. */
#ifndef RNNCC_CONVOLUTION_RECORDED_H
#define RNNCC_CONVOLUTION_RECORDED_H

#include "kernels/conv/convolution.h"
#include "schedules/records.h"

/* The version of the kernels. */
const char *convolution_kernels(Arena *arena, const Target *target);

/* Of a node, if it is laid out so. Nodes of one key are the same work: extents at their optimum, blocks, and what is
 * done beside the sums. */
RecordKey convolution_key(Graph *graph, const Node *node, NodeLayout layout);

#endif
