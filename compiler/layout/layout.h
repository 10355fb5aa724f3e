/* SPDX-License-Identifier: MIT */
/* What the layout passes share: which layout a node asks of its inputs, and the node that changes a tensor's layout. */
#ifndef RNNCC_LAYOUT_H
#define RNNCC_LAYOUT_H

#include "ir/op.h"
#include "layout/blocked.h"

/* The value in blocks of `block` channels, 0: row-major, by a node that is appended. */
Value *layout_transform(Graph *graph, Value *value, int block);

/* Does the node, though it writes row-major, read this input in whatever blocks it stands? */
bool reads_any_blocks(const Node *node, int input);
/* Is the value, which a blocked node writes, blocked then? What has no pixels left, [N, C], is not. */
bool has_pixels(const Value *value);

/* Is the node's row-major tensor of these bytes in blocks of `block` as it is? */
bool is_as_wanted(const Graph *graph, const Value *value, int block);

/* The layouts that the node can run in, by its family and by the shapes of its tensors. */
LayoutSet possible_layouts(Graph *graph, const Node *node);
/* Of all nodes, by place in graph->nodes. */
LayoutSet *all_possible_layouts(Graph *graph);

/* The layout that a node, laid out so, reads an input in. */
Layout input_layout(const Node *node, NodeLayout layout, int input);
/* The block of channels of a value that a node, laid out so, reads or writes; 0: row-major. Constants are as they are:
 * the kernels' families pack them. */
int input_block(const Graph *graph, const Node *node, NodeLayout layout, int input);
int output_block(const Graph *graph, const Node *node, NodeLayout layout, int output);
/* The block of channels that a layout of the value means; 0: row-major. */
int layout_block(const Graph *graph, const Value *value, Layout layout);

/* Sets the node's layout and that of what it writes. */
void lay_out(Graph *graph, Node *node, NodeLayout layout);

/* NeoCPU section 3.2: convolutions run blocked, and whatever follows them that can. `follow`: false, nothing does.
 * possible: by place in graph->nodes. */
void choose_layouts_greedily(Graph *graph, const LayoutSet *possible, bool follow);
/* Section 3.3.2: the assignment of least cost that graph->config->layout_search finds; the greedy one if that costs no
 * more. */
void search_layouts(Graph *graph);

/* Copies its input into its output's layout. It stands in no table of ops that a model could name. */
extern const OpInfo op_layout_transform;

#endif
