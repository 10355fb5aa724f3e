/* SPDX-License-Identifier: MIT */
/* Shared by the layout passes: the layout of each tensor of a node, and the node that transforms a layout. */
#ifndef RNNCC_LAYOUT_H
#define RNNCC_LAYOUT_H

#include "ir/op.h"
#include "layout/blocked.h"

/* Appends a node that transforms the value to blocks of `block` channels; 0: row-major. */
Value *layout_transform(Graph *graph, Value *value, int block);

/* Does the node, though it writes row-major, read this input in any layout? */
bool reads_any_blocks(const Node *node, int input);
/* Has the value spatial axes? A blocked node writes a value without, [N, C], row-major. */
bool has_pixels(const Value *value);

/* Can the value be read in blocks of `block` (0: row-major) without a transform? */
bool is_as_wanted(const Graph *graph, const Value *value, int block);

/* The layouts that the node can run in: those of its family that the shapes allow. */
LayoutSet possible_layouts(Graph *graph, const Node *node);
/* The same for all nodes, by index in graph->nodes. */
LayoutSet *all_possible_layouts(Graph *graph);

/* The layout of an input of a node that runs in `layout`. */
Layout input_layout(const Node *node, NodeLayout layout, int input);
/* The channel block of an input or output of a node that runs in `layout`; 0: row-major. Not for constants: their
 * family packs them. */
int input_block(const Graph *graph, const Node *node, NodeLayout layout, int input);
int output_block(const Graph *graph, const Node *node, NodeLayout layout, int output);
/* The channel block of the value in a layout; 0: row-major. */
int layout_block(const Graph *graph, const Value *value, Layout layout);

/* Sets the layout of the node and of its outputs. */
void lay_out(Graph *graph, Node *node, NodeLayout layout);

/* NeoCPU section 3.2: convolutions run blocked; with `follow`, so do all nodes that read blocked tensors and can.
 * possible: by index in graph->nodes. */
void choose_layouts_greedily(Graph *graph, const LayoutSet *possible, bool follow);
/* NeoCPU section 3.3.2: the assignment that graph->config->layout_search finds, if it costs less than the greedy one.
 */
void search_layouts(Graph *graph);

/* Copies its input to its output's layout. Not in ops.def: models cannot name it. */
extern const OpInfo op_layout_transform;

#endif
