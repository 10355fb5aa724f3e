/* SPDX-License-Identifier: MIT */
/*
 * Splits the graph in two: nodes that compute of weights that can change, and of constants, alone become the
 * derivation; the network has the rest. What it reads of the derivation, and of the weights themselves, are constants
 * from here on, so families pack them and fuse them as any others. Their numbers are made up.
 */
#include "ir/bodies.h"
#include "ir/mutable.h"
#include "ir/op.h"
#include "passes.h"

/* A result above this must not be larger than what it is of. */
enum { SMALL_BYTES = 1 << 16 };

typedef enum Kind { OF_RUN, CONSTANT, OF_WEIGHTS } Kind;

typedef struct Split {
  Graph *graph, *derivation;
  Kind *kinds;       /* by value id */
  bool *is_output;   /* by value id: of the graph, or a state's */
  Value **stand_ins; /* by value id: in the derivation for a weight or constant, in the network for a derived value */
} Split;

static Kind kind_of(const Split *split, const Value *value) {
  return value_is_for_shapes(value) ? CONSTANT : split->kinds[value->id];
}

/* ---- which nodes ---- */

static bool inputs_fit(const Split *split, const Node *node, int64_t *bytes) {
  bool any = false;
  *bytes = 0;
  for (int i = 0; i < node->n_inputs; i++) {
    if (!node->inputs[i]) continue;
    Kind kind = kind_of(split, node->inputs[i]);
    if (kind == OF_RUN) return false;
    any |= kind == OF_WEIGHTS;
    *bytes += value_max_bytes(node->inputs[i]);
  }
  return any;
}

static bool outputs_fit(const Split *split, const Node *node, int64_t *bytes) {
  *bytes = 0;
  for (int i = 0; i < node->n_outputs; i++) {
    const Value *output = node->outputs[i];
    if (!output) continue;
    if (!value_static(output) || value_count(output) == 0 || split->is_output[output->id]) return false;
    if (!dtype_is_float(output->dtype)) return false;
    *bytes += value_max_bytes(output);
  }
  return true;
}

static bool is_of_weights(const Split *split, const Node *node) {
  Attribute *bodies[MAX_BODIES];
  int64_t read, written;
  if (node_bodies(node, bodies) || op_draws(node->op)) return false;
  if (!inputs_fit(split, node, &read) || !outputs_fit(split, node, &written)) return false;
  return written <= SMALL_BYTES || written <= read;
}

static void mark(Split *split) {
  Graph *graph = split->graph;
  const MutableWeights *m = graph->mutables;
  split->kinds = ARENA_ARRAY(graph->arena, Kind, graph->n_values);
  split->is_output = graph_mark_outputs(graph);
  split->stand_ins = ARENA_ARRAY(graph->arena, Value *, graph->n_values);
  for (int i = 0; i < graph->n_values; i++)
    if (graph->values[i]->data) split->kinds[i] = CONSTANT;
  for (int i = 0; i < m->n_weights; i++)
    if (m->weights[i].value->id >= 0) split->kinds[m->weights[i].value->id] = OF_WEIGHTS;
}

/* ---- the derivation ---- */

static Graph *derivation_of(Graph *graph) {
  const MutableWeights *m = graph->mutables;
  Config *config = ARENA_NEW(graph->arena, Config);
  *config = *graph->config;
  config->precision = (PrecisionRules){0};
  config->mutable_weights = false;
  Graph *derivation = ARENA_NEW(graph->arena, Graph);
  *derivation = (Graph){.arena = graph->arena,
                        .dims = graph->dims,
                        .config = config,
                        .name = graph->name,
                        .version = "",
                        .file = graph->file,
                        .is_derivation = true,
                        .inputs = ARENA_ARRAY(graph->arena, Value *, m->n_weights),
                        .n_inputs = m->n_weights};
  for (int i = 0; i < m->n_weights; i++) {
    Value *value = m->weights[i].value;
    derivation->inputs[i] = graph_value_like(derivation, value->name, value->where, value);
    derivation->inputs[i]->is_input = true;
  }
  return derivation;
}

static Value *copy_of(Graph *graph, const Value *value) {
  Value *copy = ARENA_NEW(graph->arena, Value);
  *copy = *value;
  copy->id = -1;
  return copy;
}

/* What a node of the derivation reads in place of a value of the network. */
static Value *read_there(Split *split, Value *value) {
  if (value->producer) return value; /* by another such node */
  if (!split->stand_ins[value->id]) split->stand_ins[value->id] = copy_of(split->derivation, value);
  return split->stand_ins[value->id];
}

static void move(Split *split, Node *node) {
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i]) node->inputs[i] = read_there(split, node->inputs[i]);
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i]) split->kinds[node->outputs[i]->id] = OF_WEIGHTS;
  graph_append(split->derivation, node);
}

static void move_nodes(Split *split) {
  Graph *graph = split->graph;
  const MutableWeights *m = graph->mutables;
  for (int i = 0; i < m->n_weights; i++)
    if (m->weights[i].value->id >= 0) split->stand_ins[m->weights[i].value->id] = split->derivation->inputs[i];
  int kept = 0;
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n];
    if (is_of_weights(split, node))
      move(split, node);
    else
      graph->nodes[kept++] = node;
  }
  graph->n_nodes = kept;
}

/* ---- the network ---- */

/* What a node of the network reads in place of a value of the derivation. */
static Value *read_here(Split *split, Value *value) {
  if (kind_of(split, value) != OF_WEIGHTS || !value->producer) return value;
  if (!split->stand_ins[value->id]) split->stand_ins[value->id] = derived_constant(split->graph, value);
  return split->stand_ins[value->id];
}

static void read_derived(Split *split) {
  for (int n = 0; n < split->graph->n_nodes; n++) {
    const Node *node = split->graph->nodes[n];
    for (int i = 0; i < node->n_inputs; i++)
      if (node->inputs[i]) node->inputs[i] = read_here(split, node->inputs[i]);
  }
}

static void make_weights_constant(Graph *graph) {
  MutableWeights *m = graph->mutables;
  for (int i = 0; i < m->n_weights; i++) {
    Value *value = m->weights[i].value;
    value->is_input = false;
    value->data = made_up_numbers(graph->arena, value, value->block);
  }
}

/* needs: take_weights, and what computes with constants to be done. keeps: types and shapes. Sets the derivation, and
 * makes weights, and what is derived of them, constants with blocks. */
void derive_weights(Graph *graph) {
  MutableWeights *m = graph->mutables;
  if (!m) return;
  m->derivation = derivation_of(graph);
  Split split = {.graph = graph, .derivation = m->derivation};
  mark(&split);
  move_nodes(&split);
  read_derived(&split);
  make_weights_constant(graph);
  graph_renumber(graph);
  graph_remove_dead(m->derivation);
}
