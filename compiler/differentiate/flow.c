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

/* ---- bodies ---- */

/* The node's inputs that are the body's, one for one; an If has a condition before them. */
static int first_body_input(const Node *node, const Graph *body) { return node->n_inputs - body->n_inputs; }
int first_body_output(const Node *node) { return is_op(node, OP_Loop) ? 1 : 0; }

static bool *marks_of_inputs(const Graph *graph, const Node *node, const bool *marks) {
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

/* The marks of a node's body. They only grow, as those of the graph around it do: so each body is gone through as often
 * as it has values to mark at most, however deep it lies. */
typedef struct Inner Inner;
struct Inner {
  const Node *node;
  const Graph *body;
  bool *given, *marks; /* of the node's inputs or outputs, by which the marks began; by value id */
  Inner *next;
};

/* What is known of all bodies within a graph. */
typedef struct Bodies {
  Inner *first;
} Bodies;

static void reach(Bodies *bodies, const Graph *graph, bool *reached);
static void train(Bodies *bodies, const Graph *graph, bool *trained);

static Inner *inner_of(Bodies *bodies, const Node *node, const Graph *body, int n_given) {
  Inner *inner = bodies->first;
  while (inner && (inner->node != node || inner->body != body)) inner = inner->next;
  if (inner) return inner;
  inner = ARENA_NEW(body->arena, Inner);
  *inner = (Inner){node, body, ARENA_ARRAY(body->arena, bool, n_given), ARENA_ARRAY(body->arena, bool, body->n_values),
                   bodies->first};
  return bodies->first = inner;
}

/* Marks one more of the node's values, and the body's that is the same. True if it is new. */
static bool begin_at(Inner *inner, int place, const Value *inside) {
  if (inner->given[place]) return false;
  inner->given[place] = inner->marks[inside->id] = true;
  return true;
}

static const bool *reach_body(Bodies *bodies, const Node *node, const Graph *body, const bool *outputs) {
  Inner *inner = inner_of(bodies, node, body, node->n_outputs);
  bool grows = false;
  for (int k = 0; k < node->n_outputs; k++)
    grows |= outputs[k] && begin_at(inner, k, body->outputs[first_body_output(node) + k]);
  while (grows) {
    reach(bodies, body, inner->marks);
    grows = node->control->is_loop && carry(node, body, inner->marks, true);
  }
  return inner->marks;
}

static const bool *train_body(Bodies *bodies, const Node *node, const Graph *body, const bool *inputs) {
  int first = first_body_input(node, body);
  Inner *inner = inner_of(bodies, node, body, node->n_inputs);
  bool grows = false;
  for (int i = 0; i < body->n_inputs; i++) grows |= inputs[first + i] && begin_at(inner, first + i, body->inputs[i]);
  while (grows) {
    train(bodies, body, inner->marks);
    grows = node->control->is_loop && carry(node, body, inner->marks, false);
  }
  return inner->marks;
}

static void mark_inputs_of_bodies(Bodies *all, const Graph *graph, const Node *node, bool *reached) {
  Attribute *bodies[MAX_BODIES];
  int count = node_bodies(node, bodies);
  const bool *outputs = marks_of_outputs(graph, node, reached);
  for (int b = 0; b < count; b++) {
    const Graph *body = bodies[b]->graph;
    const bool *inside = reach_body(all, node, body, outputs);
    for (int i = 0, first = first_body_input(node, body); i < body->n_inputs; i++)
      if (hands_back(node, first + i) && inside[body->inputs[i]->id]) reached[node->inputs[first + i]->id] = true;
  }
}

static void mark_outputs_of_bodies(Bodies *all, const Graph *graph, const Node *node, bool *trained) {
  Attribute *bodies[MAX_BODIES];
  const Control *control = node->control;
  int count = node_bodies(node, bodies);
  const bool *inputs = marks_of_inputs(graph, node, trained);
  for (int k = 0; k < node->n_outputs; k++)
    if (node->outputs[k]) /* a loop may have no iteration */
      trained[node->outputs[k]->id] = control->is_loop && k < control->n_carried && inputs[control->first_carried + k];
  for (int b = 0; b < count; b++) {
    const Graph *body = bodies[b]->graph;
    const bool *inside = train_body(all, node, body, inputs);
    for (int k = 0; k < node->n_outputs; k++)
      if (node->outputs[k]) trained[node->outputs[k]->id] |= inside[body->outputs[first_body_output(node) + k]->id];
  }
}

/* ---- graphs ---- */

static void reach(Bodies *bodies, const Graph *graph, bool *reached) {
  for (int n = graph->n_nodes - 1; n >= 0; n--) {
    const Node *node = graph->nodes[n];
    if (!node_makes_any(node, reached)) continue;
    if (node->control)
      mark_inputs_of_bodies(bodies, graph, node, reached);
    else
      for (int i = 0; i < node->n_inputs; i++)
        if (hands_back(node, i)) reached[node->inputs[i]->id] = true;
  }
}

static void train(Bodies *bodies, const Graph *graph, bool *trained) {
  for (int n = 0; n < graph->n_nodes; n++) {
    const Node *node = graph->nodes[n];
    bool any = false;
    if (node->control) {
      mark_outputs_of_bodies(bodies, graph, node, trained);
      continue;
    }
    for (int i = 0; i < node->n_inputs; i++) any |= hands_back(node, i) && trained[node->inputs[i]->id];
    for (int i = 0; i < node->n_outputs; i++)
      if (node->outputs[i]) trained[node->outputs[i]->id] = any;
  }
}

void mark_reached(const Graph *graph, bool *reached) { reach(&(Bodies){NULL}, graph, reached); }
void mark_trained(const Graph *graph, bool *trained) { train(&(Bodies){NULL}, graph, trained); }

const bool *body_reached(const Node *node, const Graph *body, const bool *outputs) {
  return reach_body(&(Bodies){NULL}, node, body, outputs);
}

const bool *body_trained(const Node *node, const Graph *body, const bool *inputs) {
  return train_body(&(Bodies){NULL}, node, body, inputs);
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
    if (row->flat || !node_makes_any(node, reached)) continue;
    if (node->control) tell_bodies(graph, node, reached, trained);
    if (row->rule)
      tell_inputs(graph, node, reached, trained);
    else if (node_makes_any(node, trained))
      no_gradient(node, NULL);
  }
}
