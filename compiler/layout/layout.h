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
/* Are the node's kernels able to run on blocked tensors? */
bool can_run_blocked(Graph *graph, const Node *node);
/* Does a blocked node read this input, if it is row-major, in one block of its few channels? */
bool reads_narrow_image(Graph *graph, const Node *node, int input);
/* Does a blocked node read this input row-major: one value for all channels? */
bool reads_row_major(const Node *node, int input);
/* Is the value, which a blocked node writes, blocked then? What has no pixels left, [N, C], is not. */
bool has_pixels(const Value *value);

/* Sets Node.blocked and the layout of what the node writes, in blocks of a vector. */
void lay_out(Graph *graph, Node *node, bool blocked);
/* The same of a node whose kernels read or write blocks of two vectors. */
void lay_out_wide(Graph *graph, Node *node, bool reads, bool writes);
/* How a node that can_run_blocked() may be laid out so: WIDE_ bits (ir/family.h). All channels are in whole blocks.
 */
unsigned wide_ways(Graph *graph, const Node *node);

/* Greedily, and wide whatever can be. */
void choose_wide_layouts(Graph *graph);
/* NeoCPU section 3.2: convolutions run blocked, and whatever follows them that can. `follow`: false, nothing does. */
void choose_layouts_greedily(Graph *graph, bool follow);
/* Section 3.3.2: the assignment of least cost that graph->config->layout_search finds; the greedy one if that costs no
 * more. */
void search_layouts(Graph *graph);

/* Copies its input into its output's layout. It stands in no table of ops that a model could name. */
extern const OpInfo op_layout_transform;

#endif
