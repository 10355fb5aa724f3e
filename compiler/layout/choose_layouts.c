/* SPDX-License-Identifier: MIT */
/*
 * Which nodes run on blocked tensors (NeoCPU section 3.2): convolutions, and whatever follows them that can, up to the
 * ops that need the row-major layout. So a tensor is laid out once, where a network's first convolution reads it.
 */
#include "emit/family.h"
#include "layout/layout.h"
#include "passes.h"

/* A blocked node writes what has no pixels left, [N, C], row-major. */
static bool has_pixels(const Value *value) { return value->rank > 2; }

static bool outputs_can_be_blocked(const Node *node) {
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] && has_pixels(node->outputs[i]) && !can_be_blocked(node->outputs[i])) return false;
  return true;
}

static bool can_run_blocked(Graph *graph, const Node *node) {
  const KernelFamily *family = node->op->family;
  if (!family || !family->runs_blocked || node->n_inputs == 0 || !node->inputs[0]) return false;
  return can_be_blocked(node->inputs[0]) && outputs_can_be_blocked(node) && family->runs_blocked(graph, node);
}

static bool reads_blocked(const Node *node) {
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] && node->inputs[i]->channel_block) return true;
  return false;
}

/* needs: infer_shapes, fuse_epilogue; graph->target. keeps: all else. Sets Node.blocked, and channel_block
 * of what blocked nodes write. Until insert_layout_transforms, nodes may read layouts that they cannot. */
void choose_layouts(Graph *graph) {
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n];
    const KernelFamily *family = node->op->family;
    if (!family || (!family->seeks_blocked && !reads_blocked(node))) continue;
    node->blocked = can_run_blocked(graph, node);
    for (int i = 0; node->blocked && i < node->n_outputs; i++)
      if (node->outputs[i] && has_pixels(node->outputs[i])) node->outputs[i]->channel_block = graph->target->lanes;
  }
}
