/* SPDX-License-Identifier: MIT */
/* Replaces nodes of operators that have a formula, before any pass that rewrites the graph. */
#include "expand/expansion.h"
#include "expand/quantised.h"
#include "passes.h"
#include "reference/kernels.h"
#include "shapes/shape.h"

static Expansion *const expansions[N_OPS] = {
#define FORMULA(name, in_min, in_max, out_min, out_max, types, layout, shape, formula, ...) [OP_##name] = formula,
#define CHOICE(name, in_min, in_max, out_min, out_max, types, layout, shape, formula, reference, family, ...)          \
  [OP_##name] = formula,
#include "ir/ops.def"
};

static void check_result(Graph *graph, const Node *node, const Value *result, const Value *wanted) {
  if (!result || result->dtype != wanted->dtype || !shapes_agree(result, wanted))
    bug("%s expands to %s, not to %s", node->op->name, result ? shape_text(graph, result) : "nothing",
        shape_text(graph, wanted));
}

static bool made_since(const Graph *graph, const Value *value, int first_node) {
  const Node *node = value->producer;
  return node && node->id >= first_node && graph->nodes[node->id] == node &&
         node->outputs[value->producer_output] == value;
}

/* The producer of `result` writes `target` instead, also for its readers from `first_node` on. */
static void rename_result(Graph *graph, int first_node, Value *result, Value *target) {
  graph_read_instead(graph, first_node, result, target);
  graph_set_output(result->producer, result->producer_output, target);
}

/* Makes `target` the result of the expansion. A weight that may be trained is no other value's constant. */
static void settle(const Formula *f, int first_node, Value *result, Value *target) {
  target->producer = NULL;
  if (result->data && !value_may_be_trained(f->graph, result)) {
    target->data = result->data;
    return;
  }
  if (!made_since(f->graph, result, first_node)) result = apply(f, OP_Identity, result);
  rename_result(f->graph, first_node, result, target);
}

static void expand_node(Graph *graph, Node *node, Expansion *expansion) {
  const Formula f = {graph, node->name, node->where};
  Value **results = ARENA_ARRAY(graph->arena, Value *, node->n_outputs);
  int first_node = graph->n_nodes;
  expansion(&f, node, results);
  if (!results[0] && !op_is_expanded(node->op)) {
    graph_append(graph, node);
    return;
  }
  for (int i = 0; i < node->n_outputs; i++) {
    if (!node->outputs[i]) continue;
    check_result(graph, node, results[i], node->outputs[i]);
    settle(&f, first_node, results[i], node->outputs[i]);
  }
}

/* Never called: decompose runs before every reference kernel. */
const char *ref_expanded(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  (void)inputs, (void)outputs;
  bug("%s has not been expanded", node->op->name);
}

static void expand_all(Graph *graph, Expansion *const *by_op) {
  Node **nodes;
  int n_nodes = graph_take_nodes(graph, &nodes);
  for (int n = 0; n < n_nodes; n++) {
    Expansion *expansion = by_op[nodes[n]->op->kind];
    if (expansion)
      expand_node(graph, nodes[n], expansion);
    else
      graph_append(graph, nodes[n]);
  }
  graph_renumber(graph);
}

/* needs: infer_shapes. keeps: types and shapes, and all nodes of other ops, in order. breaks: nothing. Afterwards no
 * node's operator is a FORMULA. */
void decompose(Graph *graph) { expand_all(graph, expansions); }

/* What has a body. */
static Expansion *const searches[N_OPS] = {[OP_BeamSearch] = expand_beam_search};

static bool has_any(const Graph *graph, Expansion *const *by_op) {
  for (int n = 0; n < graph->n_nodes; n++)
    if (by_op[graph->nodes[n]->op->kind]) return true;
  return false;
}

/* needs: infer_shapes. keeps: types and shapes. breaks: nothing. Before any pass that rewrites bodies: they go through
 * the bodies of control flow, of which a BeamSearch is none. */
void expand_searches(Graph *graph) {
  if (has_any(graph, searches)) expand_all(graph, searches);
}

/* What convolutions of bytes may take. */
static Expansion *const sums[N_OPS] = {
    [OP_QLinearAdd] = expand_quantised_sum, [OP_QLinearLeakyRelu] = expand_quantised_leaky_relu};

/* needs: fuse_epilogue. keeps: types and shapes, and what is computed, to the bit. breaks: nothing. Afterwards no node
 * is a QLinearAdd or a QLinearLeakyRelu; those in epilogues are no nodes of the graph. */
void expand_sums(Graph *graph) {
  if (!has_any(graph, sums)) return;
  expand_all(graph, sums);
  fold_constants(graph);
}
