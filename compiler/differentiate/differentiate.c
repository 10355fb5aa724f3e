/* SPDX-License-Identifier: MIT */
/*
 * Reverse-mode differentiation: a network with a loss becomes one that also computes the loss's gradients. Its weights
 * become inputs, behind the network's own, and their gradients outputs, in the same order behind the others. Where the
 * loss is outside of the network, gradients of its outputs become inputs, and those of its inputs outputs, between.
 */
#include <string.h>

#include "differentiate/rule.h"
#include "ir/bodies.h"
#include "ir/op.h"
#include "passes.h"
#include "shapes/shape.h"
#include "support/list.h"

typedef unsigned InputSet;
enum { FIRST = 1, SECOND = 2, THIRD = 4, FOURTH = 8, SIXTH = 32, SEVENTH = 64, EIGHTH = 128, ALL = ~0 };

typedef struct Row {
  InputSet inputs;
  GradientRule *rule; /* NULL and `flat` false: no gradient */
  bool flat;
} Row;

static const Row rows[N_OPS] = {
#define GRADIENT(op, set, with) [OP_##op] = {.inputs = (InputSet)(set), .rule = (with)},
#define FLAT(op) [OP_##op] = {.flat = true},
#include "differentiate/gradients.def"
};

typedef struct Pass {
  Graph *graph;
  Value *loss;   /* NULL: it is outside */
  bool *reached; /* by value id: the loss may depend on it */
  bool *trained; /* by value id: depends on a parameter */
  Value **d;     /* by value id: the gradient so far; NULL: 0 */
  int n_values;  /* with these ids */
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
    fatal_at(LOCATION_FILE(graph->file), EXIT_INVALID, "--loss: expected one f32 number, found `%.200s`, %s", name,
             shape_text((Graph *)graph, graph->outputs[i]));
  }
  fatal_at(LOCATION_FILE(graph->file), EXIT_INVALID, "--loss: the model has no output `%.200s`", name);
}

/* ---- what is trained ---- */

static bool is_of_floats(const Value *value) {
  return value && value->dtype != RNNCC_NONE && dtype_is_float(value->dtype);
}

static bool is_in_row(const Row *row, int input) {
  return !row->rule || row->inputs == (InputSet)ALL || (input < 8 && row->inputs >> input & 1);
}

static bool hands_back(const Node *node, int input) {
  const Row *row = &rows[node->op->kind];
  return !row->flat && is_of_floats(node->inputs[input]) && is_in_row(row, input);
}

static bool any_output(const Node *node, const bool *marked) {
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] && marked[node->outputs[i]->id]) return true;
  return false;
}

/* Outside of the model a loss may depend on any number that comes out. */
static bool reaches_loss(const Pass *pass, const Value *output) {
  return pass->loss ? output == pass->loss : output->dtype == RNNCC_F32;
}

static void mark_reached(Pass *pass) {
  bool any = false;
  for (int i = 0; i < pass->graph->n_outputs; i++)
    any |= pass->reached[pass->graph->outputs[i]->id] = reaches_loss(pass, pass->graph->outputs[i]);
  if (!any)
    fatal_at(LOCATION_FILE(pass->graph->file), EXIT_INVALID, "--outer-loss: expected an output of f32; found none");
  for (int n = pass->graph->n_nodes - 1; n >= 0; n--) {
    const Node *node = pass->graph->nodes[n];
    if (!any_output(node, pass->reached)) continue;
    for (int i = 0; i < node->n_inputs; i++)
      if (hands_back(node, i)) pass->reached[node->inputs[i]->id] = true;
  }
}

/* A constant that the model declares, with axes, and whose name is chosen. */
static bool is_chosen(const Graph *graph, const Value *value) {
  return value_may_be_trained(graph, value) && value->data && value_count(value) > 0;
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

static void mark_trained(Pass *pass) {
  for (int i = 0; i < pass->n_values; i++) pass->trained[i] = is_parameter(pass, pass->graph->values[i]);
  for (int i = 0; i < pass->graph->n_inputs; i++)
    pass->trained[pass->graph->inputs[i]->id] |= has_wanted_gradient(pass, pass->graph->inputs[i]);
  for (int n = 0; n < pass->graph->n_nodes; n++) {
    const Node *node = pass->graph->nodes[n];
    bool any = false;
    for (int i = 0; i < node->n_inputs; i++) any |= hands_back(node, i) && pass->trained[node->inputs[i]->id];
    for (int i = 0; i < node->n_outputs; i++)
      if (node->outputs[i]) pass->trained[node->outputs[i]->id] = any;
  }
}

/* ---- backwards ---- */

static void no_gradient(const Node *node, const char *what) {
  error_at(node->where, EXIT_UNSUPPORTED, "--train: `%.200s`, %s, has no gradient%s%s, and the loss depends on it",
           node->name, node->op->name, what ? " for " : "", what ? what : "");
}

static void add_gradient(Pass *pass, const Formula *f, Value *value, Value *d) {
  Value **sum = &pass->d[value->id];
  *sum = *sum ? plus(f, *sum, d) : d;
}

static void differentiate_node(Pass *pass, Node *node) {
  Graph *graph = pass->graph;
  const Formula f = {graph, node->name, node->where};
  int n_inputs = node->n_inputs;
  Value **dy = ARENA_ARRAY(graph->arena, Value *, node->n_outputs), **dx = ARENA_ARRAY(graph->arena, Value *, n_inputs);
  bool *wanted = ARENA_ARRAY(graph->arena, bool, n_inputs), any = false;
  for (int i = 0; i < node->n_outputs; i++) dy[i] = node->outputs[i] ? pass->d[node->outputs[i]->id] : NULL;
  for (int i = 0; i < n_inputs; i++) any |= wanted[i] = hands_back(node, i) && pass->trained[node->inputs[i]->id];
  if (!any) return;
  const Row *row = &rows[node->op->kind];
  const char *lacking = row->rule ? row->rule(&(Gradient){&f, node, dy, wanted, dx}) : NULL;
  if (!row->rule || lacking) no_gradient(node, lacking);
  for (int i = 0; i < n_inputs; i++)
    if (dx[i]) add_gradient(pass, &f, node->inputs[i], dx[i]);
}

/* An operator without a gradient breaks the way to the loss: those before it are looked at as if it had one. */
static bool has_gradient(const Pass *pass, const Node *node) {
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] && pass->d[node->outputs[i]->id]) return true;
  return false;
}

/* Of inputs that depend on a trained weight, those that a rule cannot hand a gradient back to. */
static void tell_inputs(const Pass *pass, const Node *node, const Row *row) {
  for (int i = 0; i < node->n_inputs; i++) {
    if (!is_of_floats(node->inputs[i]) || !pass->trained[node->inputs[i]->id]) continue;
    if (!is_in_row(row, i))
      no_gradient(node, arena_format(pass->graph->arena, "input %d", i));
    else if (node->inputs[i]->dtype != RNNCC_F32)
      no_gradient(node, arena_format(pass->graph->arena, "elements of %s", dtype_name(node->inputs[i]->dtype)));
  }
}

/* A body would go on with the numbers that the weight begins with. */
static void refuse_body(const Node *node, const Value *weight) {
  error_at(node->where, EXIT_UNSUPPORTED,
           "--train: a body of `%.200s`, %s, reads the weight `%.200s`, and would not see it change; expected "
           "--train='!%.200s'",
           node->name, node->op->name, weight->name, weight->name);
}

static void tell_body_value(const Pass *pass, const Node *node, const Value *value) {
  if (value && is_chosen(pass->graph, value)) refuse_body(node, value);
}

/* Of weights that a body reads, those that would be trained if the graph around it read them. */
static void tell_body(const Pass *pass, const Node *node, const Graph *body) {
  for (int n = 0; n < body->n_nodes; n++) {
    const Node *inner = body->nodes[n];
    Attribute *bodies[MAX_BODIES];
    int count = node_bodies(inner, bodies);
    for (int i = 0; i < inner->n_inputs; i++) tell_body_value(pass, node, inner->inputs[i]);
    for (int b = 0; b < count; b++) tell_body(pass, node, bodies[b]->graph);
  }
  for (int i = 0; i < body->n_outputs; i++) tell_body_value(pass, node, body->outputs[i]);
}

static void tell_bodies(const Pass *pass, const Node *node) {
  Attribute *bodies[MAX_BODIES];
  int count = node_bodies(node, bodies);
  for (int b = 0; b < count; b++) tell_body(pass, node, bodies[b]->graph);
}

static void tell_missing(const Pass *pass, int n_nodes) {
  for (int n = 0; n < n_nodes; n++) {
    const Node *node = pass->graph->nodes[n];
    const Row *row = &rows[node->op->kind];
    if (row->flat || !any_output(node, pass->reached)) continue;
    tell_bodies(pass, node);
    if (row->rule)
      tell_inputs(pass, node, row);
    else if (any_output(node, pass->trained))
      no_gradient(node, NULL);
  }
  stop_on_errors();
}

static void begin_at_loss(Pass *pass) {
  const Formula f = {pass->graph, pass->loss->name, pass->loss->where};
  pass->d[pass->loss->id] = spread_to(&f, number(&f, pass->loss, 1), pass->loss);
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
    add_gradient(pass, &f, output, d);
  }
}

static void walk_back(Pass *pass, int n_nodes) {
  if (pass->loss)
    begin_at_loss(pass);
  else
    begin_at_outputs(pass);
  for (int n = n_nodes - 1; n >= 0; n--)
    if (has_gradient(pass, pass->graph->nodes[n])) differentiate_node(pass, pass->graph->nodes[n]);
  stop_on_errors();
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
  Value *d = pass->d[value->id];
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

/* Bodies have copies of constants. */
static bool body_reads(const Graph *body, const Value *weight) {
  for (int n = 0; n < body->n_nodes; n++) {
    Attribute *bodies[MAX_BODIES];
    int count = node_bodies(body->nodes[n], bodies);
    for (int i = 0; i < body->nodes[n]->n_inputs; i++)
      if (body->nodes[n]->inputs[i] && body->nodes[n]->inputs[i]->data == weight->data) return true;
    for (int b = 0; b < count; b++)
      if (body_reads(bodies[b]->graph, weight)) return true;
  }
  for (int i = 0; i < body->n_outputs; i++)
    if (body->outputs[i]->data == weight->data) return true;
  return false;
}

static void refuse_bodies(const Pass *pass, const Value *weight) {
  for (int n = 0; n < pass->graph->n_nodes; n++) {
    const Node *node = pass->graph->nodes[n];
    Attribute *bodies[MAX_BODIES];
    int count = node_bodies(node, bodies);
    for (int b = 0; b < count; b++)
      if (body_reads(bodies[b]->graph, weight)) refuse_body(node, weight);
  }
}

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
    refuse_bodies(pass, statistic->weight);
  }
  stop_on_errors();
  for (int i = 0; i < taken; i++) add_statistic(graph, &graph->statistics[i]);
}

static void take_parameters(Pass *pass) {
  Graph *graph = pass->graph;
  graph->loss = index_of_loss(pass);
  for (int i = 0; i < pass->n_values; i++)
    if (is_parameter(pass, graph->values[i])) refuse_bodies(pass, graph->values[i]);
  stop_on_errors();
  for (int i = 0; i < pass->n_values; i++)
    if (is_parameter(pass, graph->values[i])) add_parameter(pass, graph->values[i]);
  if (!graph->n_parameters)
    fatal_at(LOCATION_FILE(graph->file), EXIT_INVALID,
             "--train: the loss%s%.200s%s depends on no weight that is trained", pass->loss ? " `" : "",
             pass->loss ? pass->loss->name : "", pass->loss ? "`" : "");
  take_statistics(pass);
}

/* ---- copies ---- */

static Value *first_of(Value *const *values, Value *value) {
  if (!value->is_weight || !value->data) return value;
  while ((*values)->data != value->data || !(*values)->is_weight || strcmp((*values)->name, value->name) != 0) values++;
  return *values;
}

/* A loop that was unrolled has a copy of each constant for each turn: of copies of a weight one stays. */
static void join_copies(Graph *graph) {
  Value **first = ARENA_ARRAY(graph->arena, Value *, graph->n_values);
  for (int i = 0; i < graph->n_values; i++) first[i] = first_of(graph->values, graph->values[i]);
  for (int n = 0; n < graph->n_nodes; n++)
    for (int i = 0; i < graph->nodes[n]->n_inputs; i++)
      if (graph->nodes[n]->inputs[i]) graph->nodes[n]->inputs[i] = first[graph->nodes[n]->inputs[i]->id];
  for (int i = 0; i < graph->n_outputs; i++) graph->outputs[i] = first[graph->outputs[i]->id];
  for (int i = 0; i < graph->n_statistics; i++) graph->statistics[i].weight = first[graph->statistics[i].weight->id];
  graph_renumber(graph);
}

/* needs: infer_shapes, decompose. keeps: types, shapes, and all nodes, in order; some get outputs that they lacked.
 * breaks: weights that are trained are inputs. Sets parameters, loss, and which inputs and outputs have gradients. */
void differentiate(Graph *graph) {
  if (!graph->config || !graph->config->training.wanted || graph->outer) return;
  graph_renumber(graph);
  join_copies(graph);
  bool outside = graph->config->training.outer_loss;
  Pass pass = {.graph = graph, .n_values = graph->n_values, .loss = outside ? NULL : find_loss(graph)};
  int n_nodes = graph->n_nodes, n_inputs = graph->n_inputs;
  pass.reached = ARENA_ARRAY(graph->arena, bool, pass.n_values);
  pass.trained = ARENA_ARRAY(graph->arena, bool, pass.n_values);
  pass.d = ARENA_ARRAY(graph->arena, Value *, pass.n_values);
  mark_reached(&pass);
  mark_trained(&pass);
  tell_missing(&pass, n_nodes);
  walk_back(&pass, n_nodes);
  take_input_gradients(&pass, n_inputs);
  take_parameters(&pass);
  graph_remove_dead(graph);
}
