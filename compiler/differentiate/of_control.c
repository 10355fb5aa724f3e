/* SPDX-License-Identifier: MIT */
/*
 * Gradients of If, Loop and Scan. A body's gradient is a body: it computes the body once more, of what the branch or
 * the iteration began with, and goes back through that by the rules of its operators, which may be control flow again.
 *
 * An If becomes another one of the same condition. A loop keeps what each iteration began with; a Scan goes back over
 * its iterations, from the last one that it has run. The Scan carries the gradient of what the loop carries, and sums
 * up those of what its body captures; it collects those of what the loop scans.
 */
#include "differentiate/backwards.h"
#include "differentiate/flow.h"
#include "ir/bodies.h"
#include "ir/op.h"
#include "shapes/control.h"
#include "support/list.h"

/* An input of a gradient's body, and what it stands for outside. */
typedef struct Slot {
  Value *inside, *outside;
  Value *kept; /* of the loop's body: the loop collects it, if it is read; then that is `outside`. Else NULL */
  bool backwards;
} Slot;

typedef struct Slots {
  int count, capacity;
  Slot *list;
} Slots;

/* A body's gradient. */
typedef struct Back {
  const Gradient *g;
  const Graph *of;
  Formula f;                    /* in its own body */
  Value **arguments, **results; /* inputs and outputs of the copy of the body that it is of */
  Backwards way;                /* over the copy */
  Slots carried, scanned, captured;
} Back;

/* ---- inputs of the gradient's body ---- */

static Value *add_slot(const Back *back, Slots *slots, Slot slot, const Value *like) {
  Graph *body = back->f.graph;
  slot.inside = graph_value_like(body, like->name, back->f.where, like);
  slot.inside->is_input = true;
  *LIST_APPEND(body->arena, body->inputs, body->n_inputs) = slot.inside;
  *LIST_ADD(body->arena, slots->list, slots->count, slots->capacity) = slot;
  return slot.inside;
}

/* Of a value outside, which inside is like `like`. */
static Value *capture(Back *back, const Value *like, Value *outside) {
  return add_slot(back, &back->captured, (Slot){.outside = outside}, like);
}

static Value *carry(Back *back, const Value *like, Value *first) {
  return add_slot(back, &back->carried, (Slot){.outside = first}, like);
}

/* Slices of `all`, which the loop goes through in its own order or `backwards`. */
static Value *scan(Back *back, const Value *like, Value *all, bool backwards) {
  return add_slot(back, &back->scanned, (Slot){.outside = all, .backwards = !backwards}, like);
}

/* What the loop's body had in each iteration. */
static Value *keep(Back *back, Value *of_body) {
  return add_slot(back, &back->scanned, (Slot){.kept = of_body, .backwards = true}, of_body);
}

/* ---- the copy ---- */

static Back *back_new(const Gradient *g, const Graph *of) {
  Arena *arena = g->f->graph->arena;
  Back *back = ARENA_NEW(arena, Back);
  back->g = g;
  back->of = of;
  back->f = (Formula){body_new(g->f->graph, of->name), g->node->name, g->node->where};
  back->arguments = ARENA_ARRAY(arena, Value *, of->n_inputs);
  back->results = ARENA_ARRAY(arena, Value *, of->n_outputs);
  return back;
}

/* What the body's input is, the argument is: also where only shape rules know it. */
static void give(Back *back, int input, Value *argument) {
  const Value *of = back->of->inputs[input];
  argument->elements = of->elements;
  argument->divisors = of->divisors;
  argument->interval = of->interval;
  back->arguments[input] = argument;
}

static void capture_all(Back *back) {
  const Node *node = back->g->node;
  for (int i = node->n_captures; i >= 1; i--) {
    int inner = back->of->n_inputs - i;
    give(back, inner, capture(back, back->of->inputs[inner], node->inputs[node->n_inputs - i]));
  }
}

/* What of the copy is trained: of any iteration. */
static void begin_way(Back *back) {
  Graph *body = back->f.graph;
  const bool *trained = body_trained(back->g->node, back->of, back->g->wanted);
  body_append_inferred(body, back->of, back->arguments, back->results);
  body->outputs = back->results;
  body->n_outputs = back->of->n_outputs; /* until the gradients are known: backwards_new numbers what is in the graph */
  back->way = backwards_new(body);
  for (int i = 0; i < back->of->n_inputs; i++)
    if (back->arguments[i]->dtype == RNNCC_F32)
      back->way.trained[back->arguments[i]->id] = trained[back->of->inputs[i]->id];
  mark_trained(body, back->way.trained);
  body->n_outputs = 0;
  body->outputs = NULL;
}

static void go_back(Back *back, int output, Value *d) { add_gradient(&back->way, &back->f, back->results[output], d); }
static Value *gradient_of(const Back *back, int input) { return back->way.d[back->arguments[input]->id]; }

static Value *gradient_or_zeros(const Back *back, int input) {
  Value *d = gradient_of(back, input);
  return d ? d : zeros_like(&back->f, back->arguments[input]);
}

static void put_out(const Back *back, Value *value) {
  Graph *body = back->f.graph;
  *LIST_APPEND(body->arena, body->outputs, body->n_outputs) = value;
}

/* ---- what is read ---- */

static void remove_dead(const Back *back) { graph_remove_dead(back->f.graph); }

static bool is_read(const Graph *body, const Value *input) {
  for (int n = 0; n < body->n_nodes; n++)
    for (int i = 0; i < body->nodes[n]->n_inputs; i++)
      if (body->nodes[n]->inputs[i] == input) return true;
  for (int i = 0; i < body->n_outputs; i++)
    if (body->outputs[i] == input) return true;
  return false;
}

/* Of what is kept the first stays all the same, where the loop alone knows how often it has run: the way back needs it,
 * also if nothing else does. */
static bool tells_the_turns(const Back *back, const Slot *slot) {
  const Control *control = back->g->node->control;
  return slot == back->scanned.list && slot->kept && (control->conditional || !control->trip);
}

static void drop_unread(const Back *back, Slots *slots) {
  int kept = 0;
  for (int i = 0; i < slots->count; i++)
    if (tells_the_turns(back, &slots->list[i]) || is_read(back->f.graph, slots->list[i].inside))
      slots->list[kept++] = slots->list[i];
  slots->count = kept;
}

static void list_inputs(const Back *back, const Slots *slots, Value **outside) {
  Graph *body = back->f.graph;
  for (int i = 0; i < slots->count; i++) {
    outside[body->n_inputs] = slots->list[i].outside;
    body->inputs[body->n_inputs++] = slots->list[i].inside;
  }
}

/* ---- If ---- */

typedef struct Branches {
  Back *back[2];
} Branches;

/* Both bodies have the same inputs. */
static void drop_unread_of_both(const Branches *both) {
  Slots *a = &both->back[0]->captured, *b = &both->back[1]->captured;
  int kept = 0;
  for (int i = 0; i < a->count; i++) {
    bool read =
        is_read(both->back[0]->f.graph, a->list[i].inside) || is_read(both->back[1]->f.graph, b->list[i].inside);
    a->list[kept] = a->list[i];
    b->list[kept] = b->list[i];
    kept += read;
  }
  a->count = b->count = kept;
}

/* Extents of a result that the branch decides are, within it, the branch's own. */
static Back *branch_gradient(const Gradient *g, const Graph *branch) {
  Back *back = back_new(g, branch);
  Value **dy = ARENA_ARRAY(g->f->graph->arena, Value *, g->node->n_outputs);
  capture_all(back);
  for (int k = 0; k < g->node->n_outputs; k++)
    if (g->dy[k]) dy[k] = capture(back, branch->outputs[k], g->dy[k]);
  begin_way(back);
  for (int k = 0; k < g->node->n_outputs; k++)
    if (dy[k]) go_back(back, k, dy[k]);
  go_backwards(&back->way);
  return back;
}

const char *of_if(const Gradient *g) {
  const Node *node = g->node;
  Graph *graph = g->f->graph, *bodies[2];
  Branches both;
  int n = 0, *given = ARENA_ARRAY(graph->arena, int, node->n_inputs);
  static const AttributeName names[] = {ATTR_then_branch, ATTR_else_branch};
  for (int b = 0; b < 2; b++) both.back[b] = branch_gradient(g, node_attribute(node, names[b])->graph);
  for (int i = 1; i < node->n_inputs; i++) {
    if (!g->wanted[i] || (!gradient_of(both.back[0], i - 1) && !gradient_of(both.back[1], i - 1))) continue;
    for (int b = 0; b < 2; b++) put_out(both.back[b], gradient_or_zeros(both.back[b], i - 1));
    given[n++] = i;
  }
  if (!n) return NULL;
  for (int b = 0; b < 2; b++) remove_dead(both.back[b]);
  drop_unread_of_both(&both);
  Value **outside = ARENA_ARRAY(graph->arena, Value *, both.back[0]->captured.count);
  for (int b = 0; b < 2; b++) {
    bodies[b] = both.back[b]->f.graph;
    bodies[b]->n_inputs = 0;
    list_inputs(both.back[b], &both.back[b]->captured, outside);
    graph_renumber(bodies[b]);
  }
  Node *back = build_if(g->f, node->inputs[0], bodies, bodies[0]->n_inputs, outside);
  for (int k = 0; k < n; k++) g->dx[given[k]] = back->outputs[k];
  return NULL;
}

/* ---- Loop and Scan ---- */

static int carried_input(const Node *node, int k) { return node->control->n_leading + k; }
static int carried_output(const Node *node, int k) { return first_body_output(node) + k; }

static bool is_backwards(const Control *control, int k) { return control->backwards && control->backwards[k]; }

static Value *gradient_of_output(const Gradient *g, int n_outputs, int output) {
  return output < n_outputs ? g->dy[output] : NULL;
}

/* `trip`: Loop's first input; or NULL. */
static const char *unbounded(Arena *arena, const Value *trip) {
  if (!trip)
    return "iterations that nothing bounds: a trip count does, or a condition like i < limit where the limit has a "
           "maximum";
  return arena_format(arena,
                      "a number of iterations, `%.200s`, that has no maximum: a constant has one, and so has "
                      "Min(%.200s, LIMIT)",
                      trip->name, trip->name);
}

static const char *lacking(Arena *arena, const Node *node) {
  const Control *control = node->control;
  if (control->n_growths) return "a carried value that grows";
  if (!control->trip && control->most == MAX_ITERATIONS) return unbounded(arena, node->inputs[0]);
  for (int k = 0; k < control->n_carried; k++)
    if (node->inputs[control->first_carried + k]->rank == MAX_RANK) return "a carried value of 8 axes";
  return NULL;
}

/* Does no iteration change it? */
static bool stays(const Node *node, const Graph *body, int k) {
  const Value *after = body->outputs[carried_output(node, k)];
  while (is_op(after->producer, OP_Identity)) after = after->producer->inputs[0];
  return after == body->inputs[carried_input(node, k)];
}

/* The condition at the begin of an iteration. */
static Value *truth(const Back *back, const Value *like) {
  static const uint8_t yes = 1;
  int64_t ones[MAX_RANK];
  for (int axis = 0; axis < like->rank; axis++) ones[axis] = 1;
  return graph_constant(back->f.graph, back->f.name, RNNCC_BOOL, like->rank, ones, &yes);
}

static void set_arguments(Back *back) {
  const Node *node = back->g->node;
  const Control *control = node->control;
  Value **inside = back->of->inputs;
  if (control->n_leading) {
    give(back, 0, keep(back, inside[0]));
    back->arguments[1] = truth(back, inside[1]);
  }
  for (int k = 0; k < control->n_carried; k++) {
    int i = carried_input(node, k);
    bool constant = stays(node, back->of, k);
    Value *first = node->inputs[control->first_carried + k];
    give(back, i, constant ? capture(back, inside[i], first) : keep(back, inside[i]));
  }
  for (int k = 0; k < control->n_scanned; k++) {
    int i = control->n_carried + k;
    give(back, i, scan(back, inside[i], node->inputs[i], is_backwards(control, k)));
  }
  capture_all(back);
}

/* By carried value: does the loss depend on it, and it on what is trained? */
static bool *find_moving(const Back *back, int n_outputs) {
  const Gradient *g = back->g;
  const Node *node = g->node;
  Arena *arena = g->f->graph->arena;
  bool *outputs = ARENA_ARRAY(arena, bool, n_outputs), *moving = ARENA_ARRAY(arena, bool, node->control->n_carried);
  for (int k = 0; k < n_outputs; k++) outputs[k] = g->dy[k] != NULL;
  const bool *reached = body_reached(node, back->of, outputs), *trained = body_trained(node, back->of, g->wanted);
  for (int k = 0; k < node->control->n_carried; k++) {
    const Value *before = back->of->inputs[carried_input(node, k)];
    int after = back->of->outputs[carried_output(node, k)]->id;
    moving[k] = before->dtype == RNNCC_F32 && reached[after] && trained[before->id];
  }
  return moving;
}

/* The gradients that an iteration gets: of what it leaves to the next one, and of what is collected of it. */
static void go_back_from_results(Back *back, const bool *moving, int n_outputs) {
  const Gradient *g = back->g;
  const Control *control = g->node->control;
  for (int k = 0; k < control->n_carried; k++) {
    Value *dy = gradient_of_output(g, n_outputs, k), *first = g->node->inputs[control->first_carried + k];
    if (!moving[k]) continue;
    Value *before = back->of->inputs[carried_input(g->node, k)];
    go_back(back, carried_output(g->node, k), carry(back, before, dy ? dy : zeros_like(g->f, first)));
  }
  for (int k = 0; k < control->n_collected; k++) {
    Value *dy = gradient_of_output(g, n_outputs, control->n_carried + k);
    int output = carried_output(g->node, control->n_carried + k);
    if (dy)
      go_back(back, output, scan(back, back->of->outputs[output], dy, is_backwards(control, control->n_scanned + k)));
  }
}

/* Gradients of what is carried, then sums of those of captures. `given`: by output, the node's input that it is of. */
static void put_out_carried(Back *back, const bool *moving, int *given) {
  const Gradient *g = back->g;
  const Node *node = g->node;
  for (int k = 0; k < node->control->n_carried; k++) {
    if (!moving[k]) continue;
    given[back->f.graph->n_outputs] = node->control->first_carried + k;
    put_out(back, gradient_or_zeros(back, carried_input(node, k)));
  }
  for (int i = node->n_inputs - node->n_captures; i < node->n_inputs; i++) {
    Value *d = g->wanted[i] ? gradient_of(back, i) : NULL;
    if (!d) continue;
    Value *sum = carry(back, back->arguments[i], zeros_like(g->f, node->inputs[i]));
    given[back->f.graph->n_outputs] = i;
    put_out(back, plus(&back->f, sum, d));
  }
}

static void put_out_slices(Back *back, bool *backwards, int *given) {
  const Control *control = back->g->node->control;
  int n = 0;
  for (int k = 0; k < control->n_scanned; k++) {
    int i = control->n_carried + k;
    Value *d = back->g->wanted[i] ? gradient_of(back, i) : NULL;
    if (!d) continue;
    given[back->f.graph->n_outputs] = i;
    backwards[n++] = !is_backwards(control, k);
    put_out(back, d);
  }
}

/* What the loop has to keep for it. */
static void collect_kept(const Gradient *g, Slots *scanned) {
  for (int i = 0; i < scanned->count; i++)
    if (scanned->list[i].kept) scanned->list[i].outside = loop_collect(g->f->graph, g->node, scanned->list[i].kept);
}

/* `backwards`: of the outputs that are collected. */
static Node *scan_back(Back *back, const bool *backwards) {
  const Gradient *g = back->g;
  Graph *body = back->f.graph;
  Arena *arena = g->f->graph->arena;
  ScanInputs inputs = {.list = ARENA_ARRAY(arena, Value *, body->n_inputs)};
  remove_dead(back);
  drop_unread(back, &back->scanned);
  drop_unread(back, &back->captured);
  collect_kept(g, &back->scanned);
  body->n_inputs = 0;
  list_inputs(back, &back->carried, inputs.list);
  list_inputs(back, &back->scanned, inputs.list);
  list_inputs(back, &back->captured, inputs.list);
  graph_renumber(body);
  inputs.n_carried = back->carried.count;
  inputs.n_scanned = back->scanned.count;
  inputs.n_captures = back->captured.count;
  inputs.backwards = ARENA_ARRAY(arena, bool, inputs.n_scanned + body->n_outputs);
  for (int i = 0; i < inputs.n_scanned; i++) inputs.backwards[i] = back->scanned.list[i].backwards;
  for (int k = 0; k < body->n_outputs - inputs.n_carried; k++) inputs.backwards[inputs.n_scanned + k] = backwards[k];
  return build_scan_back(g->f, g->node, body, &inputs);
}

const char *of_loop(const Gradient *g) {
  Node *node = g->node;
  Arena *arena = g->f->graph->arena;
  int n_inputs = node->n_inputs, n_outputs = node->n_outputs, *given = ARENA_ARRAY(arena, int, n_inputs);
  bool *backwards = ARENA_ARRAY(arena, bool, n_inputs);
  const char *lacks = lacking(arena, node);
  if (lacks) return lacks;
  Back *back = back_new(g, node_attribute(node, ATTR_body)->graph);
  const bool *moving = find_moving(back, n_outputs);
  set_arguments(back);
  begin_way(back);
  go_back_from_results(back, moving, n_outputs);
  go_backwards(&back->way);
  put_out_carried(back, moving, given);
  put_out_slices(back, backwards, given);
  if (!back->f.graph->n_outputs) return NULL;
  Node *scan_node = scan_back(back, backwards);
  for (int k = 0; k < scan_node->n_outputs; k++) {
    if (g->wanted[given[k]])
      g->dx[given[k]] = scan_node->outputs[k];
    else
      scan_node->outputs[k] = NULL;
  }
  return NULL;
}
