/* SPDX-License-Identifier: MIT */
#include "differentiate/flow.h"

#include "ir/bodies.h"
#include "ir/op.h"
#include "shapes/control.h"

enum { FIRST = 1, SECOND = 2, THIRD = 4, FOURTH = 8, SIXTH = 32, SEVENTH = 64, EIGHTH = 128, ALL = ~0 };

static const GradientRow rows[N_OPS] = {
#define GRADIENT(op, set, with) [OP_##op] = {.inputs = (InputSet)(set), .rule = (with)},
#define FLAT(op) [OP_##op] = {.flat = true},
#include "differentiate/gradients.def"
};

const GradientRow *gradient_row(const Node *node) { return &rows[node->op->kind]; }

static bool is_of_floats(const Value *value) {
  return value && value->dtype != RNNCC_NONE && dtype_is_float(value->dtype);
}

static bool is_in_row(const GradientRow *row, int input) {
  return !row->rule || row->inputs == (InputSet)ALL || (input < 8 && row->inputs >> input & 1);
}

bool hands_back(const Node *node, int input) {
  const GradientRow *row = gradient_row(node);
  return !row->flat && is_of_floats(node->inputs[input]) && is_in_row(row, input);
}

static bool any_output(const Node *node, const bool *marked) {
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] && marked[node->outputs[i]->id]) return true;
  return false;
}

/* ---- bodies ---- */

int first_body_input(const Node *node, const Graph *body) { return node->n_inputs - body->n_inputs; }
int first_body_output(const Node *node) { return is_op(node, OP_Loop) ? 1 : 0; }

bool *marks_of_inputs(const Graph *graph, const Node *node, const bool *marks) {
  bool *own = ARENA_ARRAY(graph->arena, bool, node->n_inputs);
  for (int i = 0; i < node->n_inputs; i++) own[i] = hands_back(node, i) && marks[node->inputs[i]->id];
  return own;
}

bool *marks_of_outputs(const Graph *graph, const Node *node, const bool *marks) {
  bool *own = ARENA_ARRAY(graph->arena, bool, node->n_outputs);
  for (int i = 0; i < node->n_outputs; i++) own[i] = node->outputs[i] && marks[node->outputs[i]->id];
  return own;
}

/* What one iteration leaves to the next has the marks of either. True if there are new ones. */
static bool carry(const Node *node, const Graph *body, bool *marks, bool backwards) {
  const Control *control = node->control;
  bool any = false;
  for (int k = 0; k < control->n_carried; k++) {
    int before = body->inputs[control->n_leading + k]->id, after = body->outputs[first_body_output(node) + k]->id;
    bool *to = &marks[backwards ? after : before], from = marks[backwards ? before : after];
    any |= from && !*to;
    *to |= from;
  }
  return any;
}

bool *body_reached(const Node *node, const Graph *body, const bool *outputs) {
  bool *marks = ARENA_ARRAY(body->arena, bool, body->n_values);
  for (int k = 0; k < node->n_outputs; k++) marks[body->outputs[first_body_output(node) + k]->id] |= outputs[k];
  do mark_reached(body, marks);
  while (node->control->is_loop && carry(node, body, marks, true));
  return marks;
}

bool *body_trained(const Node *node, const Graph *body, const bool *inputs) {
  bool *marks = ARENA_ARRAY(body->arena, bool, body->n_values);
  for (int i = 0; i < body->n_inputs; i++) marks[body->inputs[i]->id] = inputs[first_body_input(node, body) + i];
  do mark_trained(body, marks);
  while (node->control->is_loop && carry(node, body, marks, false));
  return marks;
}

static void mark_inputs_of_bodies(const Graph *graph, const Node *node, bool *reached) {
  Attribute *bodies[MAX_BODIES];
  int count = node_bodies(node, bodies);
  const bool *outputs = marks_of_outputs(graph, node, reached);
  for (int b = 0; b < count; b++) {
    const Graph *body = bodies[b]->graph;
    const bool *inside = body_reached(node, body, outputs);
    for (int i = 0, first = first_body_input(node, body); i < body->n_inputs; i++)
      if (hands_back(node, first + i) && inside[body->inputs[i]->id]) reached[node->inputs[first + i]->id] = true;
  }
}

static void mark_outputs_of_bodies(const Graph *graph, const Node *node, bool *trained) {
  Attribute *bodies[MAX_BODIES];
  const Control *control = node->control;
  int count = node_bodies(node, bodies);
  const bool *inputs = marks_of_inputs(graph, node, trained);
  for (int k = 0; k < node->n_outputs; k++)
    if (node->outputs[k]) /* a loop may have no iteration */
      trained[node->outputs[k]->id] = control->is_loop && k < control->n_carried && inputs[control->first_carried + k];
  for (int b = 0; b < count; b++) {
    const Graph *body = bodies[b]->graph;
    const bool *inside = body_trained(node, body, inputs);
    for (int k = 0; k < node->n_outputs; k++)
      if (node->outputs[k]) trained[node->outputs[k]->id] |= inside[body->outputs[first_body_output(node) + k]->id];
  }
}

/* ---- graphs ---- */

void mark_reached(const Graph *graph, bool *reached) {
  for (int n = graph->n_nodes - 1; n >= 0; n--) {
    const Node *node = graph->nodes[n];
    if (!any_output(node, reached)) continue;
    if (node->control)
      mark_inputs_of_bodies(graph, node, reached);
    else
      for (int i = 0; i < node->n_inputs; i++)
        if (hands_back(node, i)) reached[node->inputs[i]->id] = true;
  }
}

void mark_trained(const Graph *graph, bool *trained) {
  for (int n = 0; n < graph->n_nodes; n++) {
    const Node *node = graph->nodes[n];
    bool any = false;
    if (node->control) {
      mark_outputs_of_bodies(graph, node, trained);
      continue;
    }
    for (int i = 0; i < node->n_inputs; i++) any |= hands_back(node, i) && trained[node->inputs[i]->id];
    for (int i = 0; i < node->n_outputs; i++)
      if (node->outputs[i]) trained[node->outputs[i]->id] = any;
  }
}

/* ---- what has no gradient ---- */

void no_gradient(const Node *node, const char *what) {
  error_at(node->where, EXIT_UNSUPPORTED, "--train: `%.200s`, %s, has no gradient%s%s, and the loss depends on it",
           node->name, node->op->name, what ? " for " : "", what ? what : "");
}

/* Of inputs that depend on a trained weight, those that a rule cannot hand a gradient back to. The loss may depend on
 * some of a body's alone. */
static void tell_inputs(const Graph *graph, const Node *node, const bool *reached, const bool *trained) {
  const GradientRow *row = gradient_row(node);
  for (int i = 0; i < node->n_inputs; i++) {
    if (!is_of_floats(node->inputs[i]) || !trained[node->inputs[i]->id]) continue;
    if (!is_in_row(row, i))
      no_gradient(node, arena_format(graph->arena, "input %d", i));
    else if (node->inputs[i]->dtype != RNNCC_F32 && reached[node->inputs[i]->id])
      no_gradient(node, arena_format(graph->arena, "elements of %s", dtype_name(node->inputs[i]->dtype)));
  }
}

static void tell_bodies(const Graph *graph, const Node *node, const bool *reached, const bool *trained) {
  Attribute *bodies[MAX_BODIES];
  int count = node_bodies(node, bodies);
  const bool *inputs = marks_of_inputs(graph, node, trained), *outputs = marks_of_outputs(graph, node, reached);
  for (int b = 0; b < count; b++) {
    const Graph *body = bodies[b]->graph;
    tell_missing(body, body_reached(node, body, outputs), body_trained(node, body, inputs));
  }
}

void tell_missing(const Graph *graph, const bool *reached, const bool *trained) {
  for (int n = 0; n < graph->n_nodes; n++) {
    const Node *node = graph->nodes[n];
    const GradientRow *row = gradient_row(node);
    if (row->flat || !any_output(node, reached)) continue;
    if (node->control) tell_bodies(graph, node, reached, trained);
    if (row->rule)
      tell_inputs(graph, node, reached, trained);
    else if (any_output(node, trained))
      no_gradient(node, NULL);
  }
}
