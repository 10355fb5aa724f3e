/* SPDX-License-Identifier: MIT */
/* A node that transforms the weights of Winograd's algorithm while the module runs: templates/winograd_weights.c. */
#ifndef RNNCC_WINOGRAD_TRANSFORM_H
#define RNNCC_WINOGRAD_TRANSFORM_H

#include "ir/graph.h"
#include "kernels/conv/winograd_weights.h"

/* Appends the node to the graph. w: [groups * kernels][channels][taps_h][taps_w]. Returns what it writes. */
Value *winograd_transform(Graph *graph, Value *w, const WinogradWeights *packed, int64_t groups);

#endif
