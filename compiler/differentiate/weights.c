/* SPDX-License-Identifier: MIT */
#include "differentiate/weights.h"

#include <string.h>

#include "differentiate/flow.h"
#include "ir/bodies.h"
#include "support/list.h"

bool is_chosen(const Graph *graph, const Value *value) {
  return value_may_be_trained(graph, value) && value->data && value_count(value) > 0;
}

static bool same_weight(const Value *a, const Value *b) {
  return a->data == b->data && a->is_weight && b->is_weight && strcmp(weight_name(a), weight_name(b)) == 0;
}

/* ---- copies in one graph ---- */

static Value *first_of(Value *const *values, Value *value) {
  if (!value->is_weight || !value->data) return value;
  while (!same_weight(*values, value)) values++;
  return *values;
}

void join_copies(Graph *graph) {
  Value **first = ARENA_ARRAY(graph->arena, Value *, graph->n_values);
  for (int i = 0; i < graph->n_values; i++) first[i] = first_of(graph->values, graph->values[i]);
  for (int n = 0; n < graph->n_nodes; n++)
    for (int i = 0; i < graph->nodes[n]->n_inputs; i++)
      if (graph->nodes[n]->inputs[i]) graph->nodes[n]->inputs[i] = first[graph->nodes[n]->inputs[i]->id];
  for (int i = 0; i < graph->n_outputs; i++) graph->outputs[i] = first[graph->outputs[i]->id];
  for (int i = 0; i < graph->n_statistics; i++) graph->statistics[i].weight = first[graph->statistics[i].weight->id];
  graph_renumber(graph);
}

/* ---- which weights ---- */

typedef struct Weights {
  Arena *arena;
  int count, capacity;
  const Value **list;
} Weights;

static bool is_listed(const Weights *weights, const Value *value) {
  for (int i = 0; i < weights->count; i++)
    if (same_weight(weights->list[i], value)) return true;
  return false;
}

static void list_weight(Weights *weights, const Value *value) {
  if (!is_listed(weights, value)) *LIST_ADD(weights->arena, weights->list, weights->count, weights->capacity) = value;
}

static void list_reached(Weights *weights, const Graph *graph, const bool *reached) {
  for (int i = 0; i < graph->n_values; i++)
    if (reached[i] && is_chosen(graph, graph->values[i])) list_weight(weights, graph->values[i]);
  for (int n = 0; n < graph->n_nodes; n++) {
    const Node *node = graph->nodes[n];
    Attribute *bodies[MAX_BODIES];
    int count = node_bodies(node, bodies);
    const bool *outputs = count ? marks_of_outputs(graph, node, reached) : NULL;
    for (int b = 0; b < count; b++)
      list_reached(weights, bodies[b]->graph, body_reached(node, bodies[b]->graph, outputs));
  }
}

/* ---- captures ---- */

/* The weight in the graph, which may be a body itself. */
static Value *weight_in(Graph *graph, const Value *weight) {
  for (int i = 0; i < graph->n_values; i++)
    if (same_weight(graph->values[i], weight)) return graph->values[i];
  const char *name = graph->outer ? weight->name : graph_new_name(graph, weight->name);
  Value *value = graph_value_like(graph, name, weight->where, weight);
  value->data = weight->data;
  value->is_weight = true;
  value->trained_as = weight_name(weight);
  return value;
}

/* Which of the captures it is, from the first one on. */
static int capture_of(Graph *graph, Node *node, Value *value) {
  int first = node->n_inputs - node->n_captures;
  Attribute *bodies[MAX_BODIES];
  int count = node_bodies(node, bodies);
  for (int i = first; i < node->n_inputs; i++)
    if (node->inputs[i] == value) return i - first;
  *LIST_APPEND(graph->arena, node->inputs, node->n_inputs) = value;
  for (int b = 0; b < count; b++) {
    Graph *body = bodies[b]->graph;
    Value *input = graph_value_like(body, value->name, value->where, value);
    input->is_input = true;
    *LIST_APPEND(body->arena, body->inputs, body->n_inputs) = input;
  }
  return node->n_captures++;
}

static void capture_place(Graph *graph, Node *node, Graph *body, const Weights *weights, Value **place) {
  if (!*place || !is_listed(weights, *place)) return;
  int capture = capture_of(graph, node, weight_in(graph, *place));
  *place = body->inputs[body->n_inputs - node->n_captures + capture];
}

/* Bodies within bodies first: what they capture is a weight that the body around them reads. */
static void capture_in_bodies(Graph *graph, const Weights *weights) {
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n];
    Attribute *bodies[MAX_BODIES];
    int count = node_bodies(node, bodies);
    for (int b = 0; b < count; b++) {
      Graph *body = bodies[b]->graph;
      capture_in_bodies(body, weights);
      for (int k = 0; k < body->n_nodes; k++)
        for (int i = 0; i < body->nodes[k]->n_inputs; i++)
          capture_place(graph, node, body, weights, &body->nodes[k]->inputs[i]);
      for (int i = 0; i < body->n_outputs; i++) capture_place(graph, node, body, weights, &body->outputs[i]);
    }
  }
}

/* ---- statistics ---- */

static void refuse_statistics(Graph *graph) {
  for (int i = 0; graph->outer && i < graph->n_statistics; i++) {
    const Statistic *statistic = &graph->statistics[i];
    const char *name = statistic->weight->name;
    if (training_takes(&graph->config->training, name))
      error_at(statistic->next->where, EXIT_UNSUPPORTED,
               "--train: `%.200s` is a running statistic of a node in a body, which no step would change; expected "
               "--train='!%.200s'",
               name, name);
  }
}

void capture_weights(Graph *graph, const bool *reached) {
  Weights weights = {.arena = graph->arena};
  graph_each(graph, refuse_statistics);
  list_reached(&weights, graph, reached);
  for (int i = 0; i < graph->n_statistics; i++)
    if (training_takes(&graph->config->training, graph->statistics[i].weight->name))
      list_weight(&weights, graph->statistics[i].weight);
  capture_in_bodies(graph, &weights);
  graph_each(graph, graph_renumber);
}
