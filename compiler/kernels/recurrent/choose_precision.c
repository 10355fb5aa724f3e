/* SPDX-License-Identifier: MIT */
/*
 * --precision: nodes get the precision that it asks for, in place of what the model says: recurrent layers, and matrix
 * products where it is of weights alone. Of all nodes, those compute in it that can, and for each other recurrent layer
 * a warning says why not; a node that a pattern names must be able to. What decides on no node is told, too.
 */
#include "ir/bodies.h"
#include "ir/cell.h"
#include "ir/narrow.h"
#include "kernels/conv/convolution.h"
#include "kernels/matmul/convolutions_as_products.h"
#include "kernels/recurrent/int8.h"
#include "machine/targets.h"
#include "passes.h"
#include "passes/narrow_weights.h"
#include "shapes/build.h"

static bool is_recurrent(const Node *node) {
  return op_has_attribute(node->op, ATTR_precision) && cell_kind(node->op->kind);
}

/* Is it a node with weights, or a convolution that becomes a product if its weights are small, or multiplies numbers of
 * bf16? One that the rule leaves in f32 stays what it is. */
static bool may_be_small(Graph *graph, const Node *node, const PrecisionRule *rule) {
  NarrowWeights form = weights_form(rule, graph->config->target);
  bool rounds = !form.dtype || form.rounds_rows;
  if (!form.dtype) form.dtype = RNNCC_BF16;
  if (has_weights(node) || convolution_can_be_product(graph, node, &form)) return true;
  return rounds && convolution_multiplies_bf16(graph, node);
}

/* The rule that decides on this input of the node, INPUT_W or INPUT_R, of a product 1; NULL: none. Integers of each run
 * are for recurrent layers alone, and for both of their weights. */
static const PrecisionRule *rule_for(Graph *graph, const Node *node, int input) {
  const PrecisionRules *rules = &graph->config->precision;
  const PrecisionRule *rule = precision_rule_of(graph->arena, rules, node->name, NULL);
  bool dynamic = rule && rule->precision == PRECISION_int8_dynamic;
  if (is_recurrent(node)) {
    if (!dynamic) rule = precision_rule_of(graph->arena, rules, node->name, input == INPUT_W ? "W" : "R");
    return rule && !dynamic && rule->precision == PRECISION_int8_dynamic ? NULL : rule;
  }
  return rule && !dynamic && may_be_small(graph, node, rule) ? rule : NULL;
}

static int last_weights(const Node *node) { return is_recurrent(node) ? INPUT_R : INPUT_W; }

static const char *obstacle_of(const Node *node, Precision precision) {
  if (precision == PRECISION_int8_dynamic) return int8_obstacle(node);
  if (!is_recurrent(node)) return NULL;
  return precision_weights(precision) && !has_weights(node) ? "needs a constant W and R" : NULL;
}

/* False, and told: the node cannot do it. */
static bool can_follow(const Node *node, const PrecisionRule *rule) {
  const char *obstacle = obstacle_of(node, rule->precision);
  if (obstacle && rule->pattern)
    error_at(node->where, EXIT_UNSUPPORTED, "precision %s %s", precision_word(rule->precision), obstacle);
  if (obstacle && !rule->pattern)
    warn_at(node->where, "%s stays in f32: precision %s %s", node->op->name, precision_word(rule->precision), obstacle);
  return !obstacle;
}

static void choose(Graph *graph, Node *node) {
  for (int input = INPUT_W; input <= last_weights(node); input++) {
    const PrecisionRule *rule = rule_for(graph, node, input);
    if (!rule || !can_follow(node, rule)) continue;
    const NarrowWeights form = weights_form(rule, graph->config->target);
    if (is_recurrent(node))
      set_attribute(graph, node,
                    attribute_one_of(ATTR_precision,
                                     rule->precision == PRECISION_int8_dynamic ? PRODUCTS_int8_dynamic : PRODUCTS_f32));
    if (form.dtype) narrow_weights(graph, node, input, &form);
  }
}

static bool decides_on(Graph *graph, const Node *node, const PrecisionRule *rule) {
  for (int input = INPUT_W; input <= last_weights(node); input++)
    if (rule_for(graph, node, input) == rule) return true;
  return false;
}

/* Whether a rule decides on a node of the graph or of the bodies in it. */
static bool decides(Graph *graph, const PrecisionRule *rule) {
  for (int n = 0; n < graph->n_nodes; n++) {
    Attribute *bodies[MAX_BODIES];
    int count = node_bodies(graph->nodes[n], bodies);
    if (decides_on(graph, graph->nodes[n], rule)) return true;
    for (int b = 0; b < count; b++)
      if (decides(bodies[b]->graph, rule)) return true;
  }
  return false;
}

/* Does it ask for products of bf16 of a target that has none? There their kernels would take longer than those of f32,
 * which err less. */
static bool lacks_products(const Graph *graph, const PrecisionRule *rule) {
  return rule->precision == PRECISION_bf16_dynamic && !target_multiplies_bf16(graph->config->target);
}

/* One of the module's targets must have them; the others keep the weights so (weights_form). */
static void check_target(const Graph *graph, const PrecisionRule *rule) {
  if (lacks_products(graph, rule) && !graph->config->bf16_products)
    error_at(
        LOCATION_FILE(graph->file), EXIT_UNSUPPORTED,
        "--precision=%s: %s has no products of bf16, as x86-64-v4+bf16, x86-64-v4+amx and aarch64-linux-gnu+bf16 have; "
        "bf16 keeps the weights so on every target",
        precision_word(rule->precision), graph->config->target->name);
}

/* The nodes that a rule may decide on. */
static const char *computed_by(Precision precision) {
  if (precision == PRECISION_int8_dynamic) return "RNN, GRU or LSTM";
  return precision == PRECISION_bf16_dynamic ? "RNN, GRU, LSTM, MatMul, Gemm or Conv"
                                             : "RNN, GRU, LSTM, MatMul, Gemm or Conv of few windows";
}

static void check_rules(Graph *graph) {
  const PrecisionRules *rules = &graph->config->precision;
  for (int i = 0; i < rules->count; i++) {
    const PrecisionRule *rule = &rules->list[i];
    check_target(graph, rule);
    if (!lacks_products(graph, rule) && !decides(graph, rule))
      warn_at(LOCATION_FILE(graph->file), "--precision: no %s is computed by \"%s%s%s\"", computed_by(rule->precision),
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
