/* SPDX-License-Identifier: MIT */
/*
 * Which nodes run on blocked tensors: by NeoCPU's rule of section 3.2, or by its search of section 3.3.2.
 */
#include "ir/family.h"
#include "layout/layout.h"
#include "layout/passes.h"
#include "machine/targets.h"

bool has_pixels(const Value *value) { return value->rank > 2; }

static bool outputs_can_be_blocked(const Node *node) {
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] && has_pixels(node->outputs[i]) && !can_be_blocked(node->outputs[i])) return false;
  return true;
}

bool can_run_blocked(Graph *graph, const Node *node) {
  const KernelFamily *family = node->op->family;
  if (!family || !family->runs_blocked || node->n_inputs == 0 || !node->inputs[0]) return false;
  return can_be_blocked(node->inputs[0]) && outputs_can_be_blocked(node) && family->runs_blocked(graph, node);
}

void lay_out(Graph *graph, Node *node, bool blocked) {
  node->blocked = blocked;
  node->reads_wide = false;
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i])
      node->outputs[i]->channel_block = blocked && has_pixels(node->outputs[i]) ? graph->config->target->lanes : 0;
}

void lay_out_wide(Graph *graph, Node *node, bool reads, bool writes) {
  lay_out(graph, node, true);
  node->reads_wide = reads;
  for (int i = 0; writes && i < node->n_outputs; i++)
    if (node->outputs[i]) node->outputs[i]->channel_block = wide_block(graph);
}

/* Of one pixel, blocks of any width are the same bytes. */
static bool fills_wide_blocks(Graph *graph, const Value *value) {
  if (!can_be_blocked(value) || !has_pixels(value)) return false;
  return dim_value(value->shape[1]) % wide_block(graph) == 0 && !same_bytes(value, wide_block(graph));
}

static bool writes_whole_blocks(Graph *graph, const Node *node) {
  for (int i = 1; i < node->n_inputs; i++)
    if (node->inputs[i] && !node->inputs[i]->data && !fills_wide_blocks(graph, node->inputs[i])) return false;
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] && !fills_wide_blocks(graph, node->outputs[i])) return false;
  return true;
}

unsigned wide_ways(Graph *graph, const Node *node) {
  const KernelFamily *family = node->op->family;
  unsigned ways = family && family->wide ? family->wide(graph, node) : 0;
  if (ways && !fills_wide_blocks(graph, node->inputs[0])) ways &= WIDE_WRITES;
  if (ways && !writes_whole_blocks(graph, node)) ways &= WIDE_READS;
  return ways;
}

void choose_wide_layouts(Graph *graph) {
  choose_layouts_greedily(graph, true);
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n];
    unsigned ways = node->blocked ? wide_ways(graph, node) : 0;
    if (ways) lay_out_wide(graph, node, ways & (WIDE_BOTH | WIDE_READS), ways & (WIDE_BOTH | WIDE_WRITES));
  }
}

static bool reads_blocked(const Node *node) {
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] && node->inputs[i]->channel_block) return true;
  return false;
}

void choose_layouts_greedily(Graph *graph, bool follow) {
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n];
    const KernelFamily *family = node->op->family;
    bool asks = family && (family->seeks_blocked || (follow && reads_blocked(node)));
    lay_out(graph, node, asks && can_run_blocked(graph, node));
  }
}

/* needs: infer_shapes, fuse_epilogue; graph->config->target, and for a search graph->config->machine. keeps: all else.
 * Sets Node.blocked, and channel_block of what blocked nodes write. Until insert_layout_transforms, nodes may read
 * layouts that they cannot. What --conv forces is run, and not weighed against other layouts. */
void choose_layouts(Graph *graph) {
  bool none = graph->config->layout_search == LAYOUT_SEARCH_NONE;
  if (graph->config->layout_search == LAYOUT_SEARCH_WIDE)
    choose_wide_layouts(graph);
  else if (none || graph->config->layout_search == LAYOUT_SEARCH_GREEDY || graph->config->conv_schedule)
    choose_layouts_greedily(graph, !none);
  else
    search_layouts(graph);
}
