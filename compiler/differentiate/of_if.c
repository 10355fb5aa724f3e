/* SPDX-License-Identifier: MIT */
/* The gradient of If: another one of the same condition, whose branches are the branches' gradients. */
#include "differentiate/body_back.h"
#include "ir/op.h"
#include "shapes/control.h"

typedef struct Branches {
  Back *back[2];
} Branches;

/* Both bodies have the same inputs. */
static void drop_unread_of_both(const Branches *both) {
  Slots *a = &both->back[0]->captured, *b = &both->back[1]->captured;
  int kept = 0;
  for (int i = 0; i < a->count; i++) {
    bool read =
        is_read_in(both->back[0]->f.graph, a->list[i].inside) || is_read_in(both->back[1]->f.graph, b->list[i].inside);
    a->list[kept] = a->list[i];
    b->list[kept] = b->list[i];
    kept += read;
  }
  a->count = b->count = kept;
}

/* Extents of a result that the branch decides are, within it, the branch's own. */
static Back *branch_gradient(const Gradient *g, const Graph *branch) {
  Back *back = back_new(g, branch);
  Value **dy = ARENA_ARRAY(g->f->graph->arena, Value *, g->node->n_outputs);
  capture_all(back);
  for (int k = 0; k < g->node->n_outputs; k++)
    if (g->dy[k]) dy[k] = capture(back, branch->outputs[k], g->dy[k]);
  begin_way(back);
  for (int k = 0; k < g->node->n_outputs; k++)
    if (dy[k]) go_back(back, k, dy[k]);
  go_backwards(&back->way);
  return back;
}

const char *of_if(const Gradient *g) {
  const Node *node = g->node;
  Graph *graph = g->f->graph, *bodies[2];
  Branches both;
  int n = 0, *given = ARENA_ARRAY(graph->arena, int, node->n_inputs);
  static const AttributeName names[] = {ATTR_then_branch, ATTR_else_branch};
  for (int b = 0; b < 2; b++) both.back[b] = branch_gradient(g, node_attribute(node, names[b])->graph);
  for (int i = 1; i < node->n_inputs; i++) {
    if (!g->wanted[i] || (!gradient_of(both.back[0], i - 1) && !gradient_of(both.back[1], i - 1))) continue;
    for (int b = 0; b < 2; b++) put_out(both.back[b], gradient_or_zeros(both.back[b], i - 1));
    given[n++] = i;
  }
  if (!n) return NULL;
  for (int b = 0; b < 2; b++) graph_remove_dead(both.back[b]->f.graph);
  drop_unread_of_both(&both);
  Value **outside = ARENA_ARRAY(graph->arena, Value *, both.back[0]->captured.count);
  for (int b = 0; b < 2; b++) {
    bodies[b] = both.back[b]->f.graph;
    bodies[b]->n_inputs = 0;
    list_inputs(both.back[b], &both.back[b]->captured, outside);
    graph_renumber(bodies[b]);
  }
  Node *back = build_if(g->f, node->inputs[0], bodies, bodies[0]->n_inputs, outside);
  for (int k = 0; k < n; k++) g->dx[given[k]] = back->outputs[k];
  return NULL;
}
