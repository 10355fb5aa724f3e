/* SPDX-License-Identifier: MIT */
/*
 * A MaxPool of 2x2 with stride 2 moves into the kernel that writes its input, whose tiles hold whole windows in
 * registers: a quarter of the result goes to memory. Schedules are those of the kernel without pooling: which one is
 * fastest hardly depends on it, so records of the same work remain useful.
 */
#include "ir/family.h"
#include "passes.h"
#include "shapes/shape.h"

/* The last pixel of an odd extent is in no window. */
static bool halves(DimTable *dims, const Window *window, const Value *x, int axis) {
  return window->kernel[axis] == 2 && window->stride[axis] == 2 && window->dilation[axis] == 1 &&
         window->out[axis] == dim_div(dims, x->shape[2 + axis], dim_const(dims, 2));
}

static bool is_maximum_of_2x2(Graph *graph, const Node *node) {
  Window window;
  if (!is_op(node, OP_MaxPool) || !read_window(graph, node, &window)) return false;
  bool indices = node_output(node, 1);
  return !indices && window.n_spatial == 2 && is_unpadded(&window) &&
         halves(graph->dims, &window, node->inputs[0], 0) && halves(graph->dims, &window, node->inputs[0], 1);
}

/* The node whose kernel can pool; NULL: none. */
static Node *host_of(Graph *graph, const UseList *uses, const Node *pool) {
  const Value *between = pool->n_inputs ? pool->inputs[0] : NULL;
  Node *host = between ? between->producer : NULL;
  if (!host || !host->op->family || !host->op->family->pools || host->pool) return NULL;
  bool same_blocks = between->channel_block && between->channel_block == pool->outputs[0]->channel_block;
  if (!same_blocks || between->view_of || uses->single[between->id] != pool) return NULL;
  return is_maximum_of_2x2(graph, pool) && host->op->family->pools(host) ? host : NULL;
}

static void fuse(Graph *graph, Node *host, Node *pool) {
  host->pool = pool;
  host->schedule->text = arena_format(graph->arena, "%s_max2x2", host->schedule->text);
  pool->inputs[0]->producer = NULL;
  graph_set_output(host, 0, pool->outputs[0]);
}

/* needs: choose_schedules, alias_views, dense ids. keeps: types and shapes of what remains, schedules except
 * their text. */
void fuse_pools(Graph *graph) {
  UseList uses = graph_uses(graph);
  int kept = 0;
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n], *host = host_of(graph, &uses, node);
    if (host)
      fuse(graph, host, node);
    else
      graph->nodes[kept++] = node;
  }
  graph->n_nodes = kept;
  graph_renumber(graph);
}
