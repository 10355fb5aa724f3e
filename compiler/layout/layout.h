/* SPDX-License-Identifier: MIT */
/* What the layout passes share: which layout a node asks of its inputs, and the node that changes a tensor's layout. */
#ifndef RNNCC_LAYOUT_H
#define RNNCC_LAYOUT_H

#include "ir/op.h"
#include "layout/blocked.h"

/* The block of channels that the node reads its input in; 0: row-major. Constants are as they are: the kernels'
 * families pack them. */
int wanted_block(Graph *graph, const Node *node, int input);

/* The value in blocks of `block` channels, 0: row-major, by a node that is appended. */
Value *layout_transform(Graph *graph, Value *value, int block);

/* Does the node, though it runs on plain tensors, read this one in whatever blocks it stands? */
bool reads_any_blocks(const Node *node, int input);

/* Copies its input into its output's layout. It stands in no table of ops that a model could name. */
extern const OpInfo op_layout_transform;

#endif
