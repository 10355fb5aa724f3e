/* SPDX-License-Identifier: MIT */
/* Which layouts a node can run in, and the layout of its tensors in each. */
#include "ir/family.h"
#include "layout/layout.h"
#include "machine/targets.h"
#include "support/numbers.h"

bool has_pixels(const Value *value) { return value->rank > 2; }

int layout_block(const Graph *graph, const Value *value, Layout layout) {
  if (layout == LAYOUT_ROW_MAJOR) return 0;
  if (layout == LAYOUT_ANY) return value->channel_block;
  if (layout == LAYOUT_NARROW) {
    int channels = (int)dim_value(value->shape[1]);
    return dtype_is_byte(value->dtype) ? (int)round_up(channels, STEP_CHANNELS) : channels;
  }
  return layout == LAYOUT_WIDE ? wide_block(graph) : graph->config->target->lanes;
}

/* ---- inputs and outputs ---- */

/* Weights; and what is broadcast along channels, which is read without a transform. */
static bool reads_row_major(const Node *node, int input) {
  const Value *value = node->inputs[input];
  if (node->op->layout == LAYOUT_TOLERANT && input > 0 && input < node->op->max_inputs) return true;
  return node->op->layout == LAYOUT_OBLIVIOUS && dim_value(value->shape[1]) == 1 &&
         dim_value(node->outputs[0]->shape[1]) != 1;
}

Layout input_layout(const Node *node, NodeLayout layout, int input) {
  if (layout.writes == LAYOUT_ROW_MAJOR) return input == 0 ? layout.reads : LAYOUT_ROW_MAJOR;
  if (reads_row_major(node, input)) return LAYOUT_ROW_MAJOR;
  return input == 0 ? layout.reads : layout.writes;
}

int input_block(const Graph *graph, const Node *node, NodeLayout layout, int input) {
  const Value *value = node->inputs[input];
  return has_pixels(value) ? layout_block(graph, value, input_layout(node, layout, input)) : 0;
}

int output_block(const Graph *graph, const Node *node, NodeLayout layout, int output) {
  const Value *value = node->outputs[output];
  return has_pixels(value) ? layout_block(graph, value, layout.writes) : 0;
}

bool reads_any_blocks(const Node *node, int input) { return input == 0 && node->layout.reads == LAYOUT_ANY; }

void lay_out(Graph *graph, Node *node, NodeLayout layout) {
  node->layout = layout;
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i]) node->outputs[i]->channel_block = output_block(graph, node, layout, i);
}

/* ---- what is possible ---- */

static bool outputs_can_be_blocked(const Node *node) {
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] && has_pixels(node->outputs[i]) && !can_be_blocked(node->outputs[i])) return false;
  return true;
}

/* For one pixel, blocks of any width are the same bytes. */
static bool fills_wide_blocks(Graph *graph, const Value *value) {
  if (!can_be_blocked(value) || !has_pixels(value)) return false;
  return dim_value(value->shape[1]) % wide_block(graph) == 0 && !same_bytes(value, wide_block(graph));
}

static bool writes_whole_blocks(Graph *graph, const Node *node) {
  for (int i = 1; i < node->n_inputs; i++)
    if (node->inputs[i] && !node->inputs[i]->data && !value_is_for_shapes(node->inputs[i]) &&
        !fills_wide_blocks(graph, node->inputs[i]))
      return false;
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] && !fills_wide_blocks(graph, node->outputs[i])) return false;
  return true;
}

/* Only images of fewer channels than lanes, as a network's first convolution reads them, may be narrow. */
static LayoutSet that_fit(Graph *graph, const Node *node, LayoutSet set) {
  if (layout_block(graph, node->inputs[0], LAYOUT_NARROW) >= graph->config->target->lanes) set &= ~LAYOUT_SET_NARROW;
  if (set & LAYOUT_SET_READS_WIDE && !fills_wide_blocks(graph, node->inputs[0])) set &= ~LAYOUT_SET_READS_WIDE;
  if (set & LAYOUT_SET_WRITES_WIDE && !writes_whole_blocks(graph, node)) set &= ~LAYOUT_SET_WRITES_WIDE;
  return set;
}

static bool planes_are_constant(const Node *node) {
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] && !has_constant_plane(node->inputs[i])) return false;
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] && !has_constant_plane(node->outputs[i])) return false;
  return true;
}

/* Do the family's blocked kernels run tensors of these types? */
static bool types_fit(const Node *node) {
  bool bytes = dtype_is_byte(node->inputs[0]->dtype);
  for (int i = 0; i < node->n_outputs; i++) bytes |= node->outputs[i] && dtype_is_byte(node->outputs[i]->dtype);
  return !bytes || node->op->family->runs_bytes;
}

/* Only blocked kernels have a prologue. */
LayoutSet possible_layouts(Graph *graph, const Node *node) {
  const KernelFamily *family = node->op->family;
  bool needs_blocks = node->n_prologue || (family && family->needs_blocks && family->needs_blocks(node));
  LayoutSet plain = needs_blocks ? 0 : LAYOUT_SET_ROW_MAJOR;
  if (!family || !family->layouts || node->n_inputs == 0 || !node->inputs[0]) return plain;
  if (!can_be_blocked(node->inputs[0]) || !outputs_can_be_blocked(node) || !types_fit(node)) return plain;
  if (!family->runs_any_plane && !planes_are_constant(node)) return plain;
  return plain | that_fit(graph, node, family->layouts(graph, node));
}

LayoutSet *all_possible_layouts(Graph *graph) {
  LayoutSet *possible = ARENA_ARRAY(graph->arena, LayoutSet, graph->n_nodes);
  for (int n = 0; n < graph->n_nodes; n++) possible[n] = possible_layouts(graph, graph->nodes[n]);
  return possible;
}
