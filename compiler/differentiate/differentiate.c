/* SPDX-License-Identifier: MIT */
/*
 * Reverse-mode differentiation: a network with a loss becomes one that also computes the loss's gradients. Its weights
 * become inputs, behind the network's own, and their gradients outputs, in the same order behind the others. Where the
 * loss is outside of the network, gradients of its outputs become inputs, and those of its inputs outputs, between.
 */
#include <string.h>

#include "differentiate/backwards.h"
#include "differentiate/flow.h"
#include "differentiate/weights.h"
#include "ir/op.h"
#include "passes.h"
#include "shapes/shape.h"
#include "support/list.h"

typedef struct Pass {
  Graph *graph;
  Value *loss;   /* NULL: it is outside */
  bool *reached; /* by value id: the loss depends on it */
  Backwards way;
} Pass;

/* ---- the loss ---- */

static bool is_scalar(const Value *value) {
  return value->dtype == RNNCC_F32 && value_static(value) && value_count(value) == 1;
}

static Value *only_scalar(const Graph *graph) {
  Value *found = NULL;
  for (int i = 0; i < graph->n_outputs; i++) {
    if (!is_scalar(graph->outputs[i])) continue;
    if (found)
      fatal_at(LOCATION_FILE(graph->file), EXIT_INVALID,
               "`%.200s` and `%.200s` are both scalars: expected --loss=NAME, which says what is trained", found->name,
               graph->outputs[i]->name);
    found = graph->outputs[i];
  }
  if (!found)
    fatal_at(LOCATION_FILE(graph->file), EXIT_INVALID,
             "--train: expected an output that is one f32 number, the loss; found none");
  return found;
}

static Value *find_loss(const Graph *graph) {
  const char *name = graph->config->training.loss;
  if (!name) return only_scalar(graph);
  for (int i = 0; i < graph->n_outputs; i++) {
    if (strcmp(graph->outputs[i]->name, name) != 0) continue;
    if (is_scalar(graph->outputs[i])) return graph->outputs[i];
    fatal_at(LOCATION_FILE(graph->file), EXIT_INVALID, "--loss: expected one f32 number, found %s",
             shape_text((Graph *)graph, graph->outputs[i]));
  }
  fatal_at(LOCATION_FILE(graph->file), EXIT_INVALID, "--loss: the model has no output `%.200s`", name);
}

/* ---- what is trained ---- */

/* Outside of the model a loss may depend on any number that comes out. */
static bool reaches_loss(const Pass *pass, const Value *output) {
  return pass->loss ? output == pass->loss : output->dtype == RNNCC_F32;
}

/* By value id: does the loss depend on it? */
static bool *reached_values(const Pass *pass) {
  const Graph *graph = pass->graph;
  bool *reached = ARENA_ARRAY(graph->arena, bool, graph->n_values), any = false;
  for (int i = 0; i < graph->n_outputs; i++)
    any |= reached[graph->outputs[i]->id] = reaches_loss(pass, graph->outputs[i]);
  if (!any)
    fatal_at(LOCATION_FILE(graph->file), EXIT_INVALID, "--outer-loss: expected an output of f32, found %s",
             shape_text(pass->graph, graph->outputs[0]));
  mark_reached(graph, reached);
  return reached;
}

/* A trained weight: one that the loss depends on. */
static bool is_parameter(const Pass *pass, const Value *value) {
  return pass->reached[value->id] && is_chosen(pass->graph, value);
}

/* An input whose gradient the program wants. */
static bool has_wanted_gradient(const Pass *pass, const Value *input) {
  return !pass->loss && input->dtype == RNNCC_F32 && pass->reached[input->id] &&
         training_takes(&pass->graph->config->training, input->name);
}

static void mark_values(Pass *pass) {
  Backwards *way = &pass->way;
  for (int i = 0; i < way->n_values; i++) way->trained[i] = is_parameter(pass, pass->graph->values[i]);
  for (int i = 0; i < pass->graph->n_inputs; i++)
    way->trained[pass->graph->inputs[i]->id] |= has_wanted_gradient(pass, pass->graph->inputs[i]);
  mark_trained(pass->graph, way->trained);
}

/* ---- backwards ---- */

static void begin_at_loss(Pass *pass) {
  const Formula f = {pass->graph, pass->loss->name, pass->loss->where};
  add_gradient(&pass->way, &f, pass->loss, spread_to(&f, number(&f, pass->loss, 1), pass->loss));
}

static const char *gradient_name(const Graph *graph, const Value *value) {
  return arena_format(graph->arena, "%s.gradient", value->name);
}

/* Gradients of outputs become inputs. */
static void begin_at_outputs(Pass *pass) {
  Graph *graph = pass->graph;
  for (int i = 0; i < graph->n_outputs; i++) {
    Value *output = graph->outputs[i];
    if (!reaches_loss(pass, output)) continue;
    const Formula f = {graph, output->name, output->where};
    Value *d = graph_value_like(graph, gradient_name(graph, output), output->where, output);
    d->is_input = true;
    *LIST_APPEND(graph->arena, graph->output_gradients, graph->n_output_gradients) = i;
    *LIST_APPEND(graph->arena, graph->inputs, graph->n_inputs) = d;
    add_gradient(&pass->way, &f, output, d);
  }
}

/* ---- results ---- */

/* A copy of it is an output of its own. */
static void add_result(Graph *graph, const Value *of, Value *result, const char *name) {
  const Formula f = {graph, of->name, of->where};
  result = apply(&f, OP_Identity, result);
  result->name = name;
  *LIST_APPEND(graph->arena, graph->outputs, graph->n_outputs) = result;
}

static void add_gradient_of(Pass *pass, Value *value) {
  const Formula f = {pass->graph, value->name, value->where};
  Value *d = pass->way.d[value->id];
  add_result(pass->graph, value, d ? d : zeros_like(&f, value), gradient_name(pass->graph, value));
}

static void take_input_gradients(Pass *pass, int n_inputs) {
  Graph *graph = pass->graph;
  for (int i = 0; i < n_inputs; i++) {
    if (!has_wanted_gradient(pass, graph->inputs[i])) continue;
    *LIST_APPEND(graph->arena, graph->input_gradients, graph->n_input_gradients) = i;
    add_gradient_of(pass, graph->inputs[i]);
  }
}

/* ---- parameters ---- */

/* The weight becomes an input. */
static void add_weight(Graph *graph, Value *weight) {
  Value *initial = graph_value_like(graph, weight->name, weight->where, weight);
  initial->data = weight->data;
  weight->data = NULL;
  weight->is_input = true;
  *LIST_APPEND(graph->arena, graph->initials, graph->n_parameters) = initial;
  *LIST_APPEND(graph->arena, graph->inputs, graph->n_inputs) = weight;
}

static void add_parameter(Pass *pass, Value *weight) {
  add_weight(pass->graph, weight);
  add_gradient_of(pass, weight);
}

static void add_statistic(Graph *graph, const Statistic *statistic) {
  Value *weight = statistic->weight;
  add_weight(graph, weight);
  add_result(graph, weight, statistic->next, arena_format(graph->arena, "%s.next", weight->name));
}

static int index_of_loss(const Pass *pass) {
  int loss = 0;
  if (!pass->loss) return -1;
  while (pass->graph->outputs[loss] != pass->loss) loss++;
  return loss;
}

static const Statistic *earlier(const Statistic *list, const Statistic *statistic) {
  for (; list < statistic; list++)
    if (list->weight == statistic->weight) return list;
  return NULL;
}

/* Those of a name that is trained; the others stay as they are. */
static void take_statistics(Pass *pass) {
  Graph *graph = pass->graph;
  int taken = 0;
  for (int i = 0; i < graph->n_statistics; i++)
    if (training_takes(&graph->config->training, graph->statistics[i].weight->name))
      graph->statistics[taken++] = graph->statistics[i];
  graph->n_statistics = taken;
  for (int i = 0; i < taken; i++) {
    const Statistic *statistic = &graph->statistics[i];
    if (statistic->weight->is_input)
      error_at(statistic->next->where, EXIT_UNSUPPORTED,
               "--train: `%.200s` is a running statistic, and the loss depends on it; expected --train='!%.200s'",
               statistic->weight->name, statistic->weight->name);
    else if (earlier(graph->statistics, statistic))
      error_at(statistic->next->where, EXIT_UNSUPPORTED,
               "--train: `%.200s` is the running statistic of two nodes; expected one", statistic->weight->name);
  }
  stop_on_errors();
  for (int i = 0; i < taken; i++) add_statistic(graph, &graph->statistics[i]);
}

static void take_parameters(Pass *pass) {
  Graph *graph = pass->graph;
  graph->loss = index_of_loss(pass);
  for (int i = 0; i < pass->way.n_values; i++)
    if (is_parameter(pass, graph->values[i])) add_parameter(pass, graph->values[i]);
  if (!graph->n_parameters)
    fatal_at(LOCATION_FILE(graph->file), EXIT_INVALID,
             "--train: the loss%s%.200s%s depends on no weight that is trained", pass->loss ? " `" : "",
             pass->loss ? pass->loss->name : "", pass->loss ? "`" : "");
  take_statistics(pass);
}

/* ---- the pass ---- */

/* Bodies and the graph around them then read the same weights. */
static void settle_weights(const Pass *pass) {
  graph_renumber(pass->graph);
  join_copies(pass->graph);
  capture_weights(pass->graph, reached_values(pass));
  stop_on_errors();
}

/* needs: infer_shapes, decompose. keeps: types, shapes, and all nodes, in order; some get outputs that they lacked.
 * breaks: weights that are trained are inputs. Sets parameters, loss, and which inputs and outputs have gradients. */
void differentiate(Graph *graph) {
  if (!graph->config || !graph->config->training.wanted || graph->outer) return;
  int n_inputs = graph->n_inputs;
  Pass pass = {.graph = graph, .loss = graph->config->training.outer_loss ? NULL : find_loss(graph)};
  settle_weights(&pass);
  pass.way = backwards_new(graph);
  pass.reached = reached_values(&pass);
  mark_values(&pass);
  tell_missing(graph, pass.reached, pass.way.trained);
  stop_on_errors();
  if (pass.loss)
    begin_at_loss(&pass);
  else
    begin_at_outputs(&pass);
  go_backwards(&pass.way);
  stop_on_errors();
  take_input_gradients(&pass, n_inputs);
  take_parameters(&pass);
  graph_remove_dead(graph);
}
