/* SPDX-License-Identifier: MIT */
/*
 * An AveragePool and the 1x1 convolution before it are exchanged: the convolution then runs on fewer pixels (a quarter
 * of them in DenseNet's transitions). A mean over pixels and a sum over channels commute, and the bias is the same for
 * all pixels.
 */
#include "passes.h"
#include "shapes/shape.h"

static bool maps_each_pixel(Graph *graph, const Node *node) {
  Window window;
  return is_op(node, OP_Conv) && read_window(graph, node, &window) && is_pointwise(&window) && !is_strided(&window);
}

/* An AveragePool without padding, with fewer windows than pixels. */
static bool is_shrinking_mean(Graph *graph, const Node *node) {
  Window window;
  if (!is_op(node, OP_AveragePool) || !read_window(graph, node, &window)) return false;
  return is_unpadded(&window) && is_strided(&window) && !window.partial;
}

/* needs: infer_shapes; no epilogues yet. keeps: types and shapes of what remains; results but for the order of sums. */
void pool_first(Graph *graph) {
  UseList uses = graph_uses(graph);
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *pool = graph->nodes[n], *conv = pool->n_inputs && pool->inputs[0] ? pool->inputs[0]->producer : NULL;
    if (!conv || !is_shrinking_mean(graph, pool) || uses.single[pool->inputs[0]->id] != pool) continue;
    if (!maps_each_pixel(graph, conv)) continue;
    Value *between = graph_value(graph, pool->outputs[0]->name, pool->where), *result = pool->outputs[0];
    pool->inputs[0] = conv->inputs[0];
    graph_set_output(pool, 0, between);
    if (!infer_node(graph, pool)) bug("a pooling does not fit where it fitted before");
    conv->inputs[0] = between;
    graph_set_output(conv, 0, result);
    graph->nodes[conv->id] = pool;
    graph->nodes[n] = conv;
    pool->id = conv->id;
    conv->id = n;
  }
  graph_renumber(graph);
}
