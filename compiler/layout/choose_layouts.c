/* SPDX-License-Identifier: MIT */
/*
 * Which nodes run on blocked tensors: by NeoCPU's rule of section 3.2, or by its search of section 3.3.2.
 */
#include "emit/family.h"
#include "layout/layout.h"
#include "passes.h"

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
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i])
      node->outputs[i]->channel_block = blocked && has_pixels(node->outputs[i]) ? graph->target->lanes : 0;
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

/* needs: infer_shapes, fuse_epilogue; graph->target, and for a search graph->machine. keeps: all else. Sets
 * Node.blocked, and channel_block of what blocked nodes write. Until insert_layout_transforms, nodes may read layouts
 * that they cannot. What --conv forces is run, and not weighed against other layouts. */
void choose_layouts(Graph *graph) {
  bool none = graph->layout_search == LAYOUT_SEARCH_NONE;
  if (none || graph->layout_search == LAYOUT_SEARCH_GREEDY || graph->conv_form)
    choose_layouts_greedily(graph, !none);
  else
    search_layouts(graph);
}
