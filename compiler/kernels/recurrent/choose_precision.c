/* SPDX-License-Identifier: MIT */
/*
 * --precision: nodes get the precision that it asks for, in place of what the model says. Of all nodes, those compute
 * in it that can, and for each other recurrent layer a warning says why not; a node that a pattern names must be able
 * to. What decides on no node is told, too.
 */
#include "ir/bodies.h"
#include "ir/cell.h"
#include "kernels/recurrent/int8.h"
#include "passes.h"

static bool takes_precision(const Node *node) {
  return op_has_attribute(node->op, ATTR_precision) && cell_kind(node->op->kind);
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
  const PrecisionRule *rule = precision_rule_of(&graph->config->precision, node->name);
  if (!rule) return;
  const char *obstacle = rule->precision == PRECISION_int8_dynamic ? int8_obstacle(node) : NULL;
  if (obstacle && rule->pattern)
    error_at(node->where, EXIT_UNSUPPORTED, "precision %s %s", precision_word(rule->precision), obstacle);
  else if (obstacle)
    warn_at(node->where, "%s stays in f32: precision %s %s", node->op->name, precision_word(rule->precision), obstacle);
  else
    set_word(graph, node, rule->precision == PRECISION_int8_dynamic ? PRODUCTS_int8_dynamic : PRODUCTS_f32);
}

/* Whether a rule decides on a node of the graph or of the bodies in it. */
static bool decides(const Graph *graph, const PrecisionRules *rules, const PrecisionRule *rule) {
  for (int n = 0; n < graph->n_nodes; n++) {
    Attribute *bodies[MAX_BODIES];
    int count = node_bodies(graph->nodes[n], bodies);
    if (takes_precision(graph->nodes[n]) && precision_rule_of(rules, graph->nodes[n]->name) == rule) return true;
    for (int b = 0; b < count; b++)
      if (decides(bodies[b]->graph, rules, rule)) return true;
  }
  return false;
}

static void check_rules(const Graph *graph) {
  const PrecisionRules *rules = &graph->config->precision;
  for (int i = 0; i < rules->count; i++) {
    const PrecisionRule *rule = &rules->list[i];
    if (!decides(graph, rules, rule))
      warn_at(LOCATION_FILE(graph->file), "--precision: no RNN, GRU or LSTM is computed by \"%s%s%s\"",
              rule->pattern ? rule->pattern : "", rule->pattern ? "=" : "", precision_word(rule->precision));
  }
}

/* needs: infer_shapes, simplify (constant weights), reroll_rnn. keeps: everything except the attribute `precision`. */
void choose_precision(Graph *graph) {
  if (!graph->outer) check_rules(graph);
  for (int n = 0; n < graph->n_nodes; n++)
    if (takes_precision(graph->nodes[n])) choose(graph, graph->nodes[n]);
  stop_on_errors();
}
