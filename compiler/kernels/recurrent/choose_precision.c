/* SPDX-License-Identifier: MIT */
/*
 * --precision: nodes get the precision that it asks for, in place of what the model says: recurrent layers, and matrix
 * products where it is of weights alone. Of all nodes, those compute in it that can, and for each other recurrent layer
 * a warning says why not; a node that a pattern names must be able to. What decides on no node is told, too.
 */
#include "ir/bodies.h"
#include "ir/cell.h"
#include "ir/narrow.h"
#include "kernels/recurrent/int8.h"
#include "passes.h"
#include "passes/convolutions_as_products.h"
#include "passes/narrow_weights.h"

static bool is_recurrent(const Node *node) {
  return op_has_attribute(node->op, ATTR_precision) && cell_kind(node->op->kind);
}

/* The rule that decides on the node; NULL: none. Integers of each run are for recurrent layers alone. */
static const PrecisionRule *rule_for(Graph *graph, const Node *node) {
  const PrecisionRule *rule = precision_rule_of(&graph->config->precision, node->name);
  if (!rule || is_recurrent(node)) return rule;
  bool takes =
      rule->precision != PRECISION_int8_dynamic && (has_weights(node) || convolution_can_be_product(graph, node));
  return takes ? rule : NULL;
}

static const char *obstacle_of(const Node *node, Precision precision) {
  if (precision == PRECISION_int8_dynamic) return int8_obstacle(node);
  return precision_weights(precision) && !has_weights(node) ? "needs a constant W and R" : NULL;
}

static void set_word(Graph *graph, Node *node, int64_t word) {
  for (int i = 0; i < node->n_attributes; i++) {
    if (node->attributes[i].id != ATTR_precision) continue;
    node->attributes[i].i = word;
    return;
  }
  Attribute *attributes = ARENA_ARRAY(graph->arena, Attribute, node->n_attributes + 1);
  for (int i = 0; i < node->n_attributes; i++) attributes[i] = node->attributes[i];
  attributes[node->n_attributes++] = (Attribute){.id = ATTR_precision,
                                                 .name = attribute_name(ATTR_precision),
                                                 .kind = ATTRIBUTE_WORD,
                                                 .i = word,
                                                 .where = node->where};
  node->attributes = attributes;
}

static void choose(Graph *graph, Node *node) {
  const PrecisionRule *rule = rule_for(graph, node);
  if (!rule) return;
  const char *obstacle = obstacle_of(node, rule->precision);
  if (obstacle && rule->pattern)
    error_at(node->where, EXIT_UNSUPPORTED, "precision %s %s", precision_word(rule->precision), obstacle);
  if (obstacle && !rule->pattern)
    warn_at(node->where, "%s stays in f32: precision %s %s", node->op->name, precision_word(rule->precision), obstacle);
  if (obstacle) return;
  if (is_recurrent(node))
    set_word(graph, node, rule->precision == PRECISION_int8_dynamic ? PRODUCTS_int8_dynamic : PRODUCTS_f32);
  if (precision_weights(rule->precision))
    narrow_weights(graph, node, &(NarrowWeights){.dtype = precision_weights(rule->precision), .group = rule->group});
}

/* Whether a rule decides on a node of the graph or of the bodies in it. */
static bool decides(Graph *graph, const PrecisionRule *rule) {
  for (int n = 0; n < graph->n_nodes; n++) {
    Attribute *bodies[MAX_BODIES];
    int count = node_bodies(graph->nodes[n], bodies);
    if (rule_for(graph, graph->nodes[n]) == rule) return true;
    for (int b = 0; b < count; b++)
      if (decides(bodies[b]->graph, rule)) return true;
  }
  return false;
}

static void check_rules(Graph *graph) {
  const PrecisionRules *rules = &graph->config->precision;
  for (int i = 0; i < rules->count; i++) {
    const PrecisionRule *rule = &rules->list[i];
    bool products = rule->precision != PRECISION_int8_dynamic;
    if (!decides(graph, rule))
      warn_at(LOCATION_FILE(graph->file), "--precision: no %s is computed by \"%s%s%s\"",
              products ? "RNN, GRU, LSTM, MatMul, Gemm or Conv of one window" : "RNN, GRU or LSTM",
              rule->pattern ? rule->pattern : "", rule->pattern ? "=" : "", precision_word(rule->precision));
  }
}

/* needs: infer_shapes, simplify (constant weights), reroll_rnn. keeps: everything except the attribute `precision`, and
 * weights, which are rounded. */
void choose_precision(Graph *graph) {
  if (!graph->outer) check_rules(graph);
  for (int n = 0; n < graph->n_nodes; n++) choose(graph, graph->nodes[n]);
  stop_on_errors();
}
