/* SPDX-License-Identifier: MIT */
/* Which nodes run on blocked tensors: by the rule of NeoCPU section 3.2, or by the search of section 3.3.2. */
#include "ir/family.h"
#include "layout/layout.h"
#include "passes.h"

/* ---- by rule ---- */

static bool reads_blocked(const Node *node) {
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] && node->inputs[i]->channel_block) return true;
  return false;
}

static NodeLayout row_major_of(LayoutSet possible) {
  bool any = possible & LAYOUT_BIT(LAYOUT_ANY, LAYOUT_ROW_MAJOR);
  return (NodeLayout){any ? LAYOUT_ANY : LAYOUT_ROW_MAJOR, LAYOUT_ROW_MAJOR};
}

void choose_layouts_greedily(Graph *graph, const LayoutSet *possible, bool follow) {
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n];
    const KernelFamily *family = node->op->family;
    bool asks = family && (family->seeks_blocked || (follow && reads_blocked(node)));
    bool blocked = asks && (possible[n] & LAYOUT_SET_BLOCKED);
    lay_out(graph, node, blocked ? (NodeLayout){LAYOUT_BLOCKED, LAYOUT_BLOCKED} : row_major_of(possible[n]));
  }
}

/* A blocked layout with as many wide tensors as possible. */
static NodeLayout widened(NodeLayout layout, LayoutSet possible) {
  static const NodeLayout wide[] = {
      {LAYOUT_WIDE, LAYOUT_WIDE}, {LAYOUT_WIDE, LAYOUT_BLOCKED}, {LAYOUT_BLOCKED, LAYOUT_WIDE}};
  for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
    if (possible & LAYOUT_BIT(wide[i].reads, wide[i].writes)) return wide[i];
  return layout;
}

static void choose_wide_layouts(Graph *graph, const LayoutSet *possible) {
  choose_layouts_greedily(graph, possible, true);
  for (int n = 0; n < graph->n_nodes; n++)
    if (is_blocked(graph->nodes[n])) lay_out(graph, graph->nodes[n], widened(graph->nodes[n]->layout, possible[n]));
}

/* Reads row-major images of few channels narrow. Without layout planning all tensors are row-major. */
static void choose_narrow_images(Graph *graph, const LayoutSet *possible) {
  bool all_row_major = graph->config->layout_search == LAYOUT_SEARCH_NONE;
  for (int n = 0; n < graph->n_nodes; n++) {
    NodeLayout *layout = &graph->nodes[n]->layout;
    if (layout->reads != LAYOUT_BLOCKED || !(possible[n] & LAYOUT_BIT(LAYOUT_NARROW, layout->writes))) continue;
    if (all_row_major || !graph->nodes[n]->inputs[0]->channel_block) layout->reads = LAYOUT_NARROW;
  }
}

static void choose_by_rule(Graph *graph) {
  const LayoutSet *possible = all_possible_layouts(graph);
  if (graph->config->layout_search == LAYOUT_SEARCH_WIDE)
    choose_wide_layouts(graph, possible);
  else
    choose_layouts_greedily(graph, possible, graph->config->layout_search != LAYOUT_SEARCH_NONE);
  choose_narrow_images(graph, possible);
}

/* needs: infer_shapes, fuse_epilogue; graph->config. keeps: all else. Sets Node.layout, and channel_block of what
 * blocked nodes write. Until insert_layout_transforms, inputs may be in another layout than the node reads. With --conv
 * the rule chooses, and nothing is searched. */
void choose_layouts(Graph *graph) {
  LayoutSearch search = graph->config->layout_search;
  bool by_rule = search == LAYOUT_SEARCH_WIDE || search == LAYOUT_SEARCH_NONE || search == LAYOUT_SEARCH_GREEDY;
  if (by_rule || graph->config->conv_schedule)
    choose_by_rule(graph);
  else
    search_layouts(graph);
}
