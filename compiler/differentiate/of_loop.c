/* SPDX-License-Identifier: MIT */
/*
 * Gradients of Loop and Scan. A loop keeps what each iteration began with; a Scan goes back over its iterations, from
 * the last one that it has run. The Scan carries the gradient of what the loop carries, and sums up those of what its
 * body captures, but for what over_turns.h says of; it collects those of what the loop scans.
 */
#include "differentiate/body_back.h"
#include "differentiate/flow.h"
#include "ir/op.h"
#include "shapes/control.h"
#include "support/list.h"

static int carried_input(const Node *node, int k) { return node->control->n_leading + k; }
static int carried_output(const Node *node, int k) { return first_body_output(node) + k; }

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
    give(back, i, scan(back, inside[i], node->inputs[i], scans_backwards(control, k)));
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
      go_back(back, output,
              scan(back, back->of->outputs[output], dy, scans_backwards(control, control->n_scanned + k)));
  }
}

static Kept how_kept(const Value *value, const void *context) {
  const Back *back = context;
  const Graph *body = back->f.graph;
  if (slot_of(&back->scanned, value)) return KEPT_ANYWAY;
  if (value->data || slot_of(&back->captured, value)) return KEPT_OUTSIDE;
  for (int axis = 0; axis < value->rank; axis++)
    if (is_inner(body, value->shape[axis], back->g->node->control->counter->index)) return KEPT_NEVER;
  return KEPT_BY_COLLECTING;
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
    if (d) d = take_turn_parts(&back->f, &back->parts, i, d, how_kept, back);
    if (!d) continue;
    Value *sum = carry(back, back->arguments[i], zeros_like(g->f, node->inputs[i]));
    given[back->f.graph->n_outputs] = i;
    put_out(back, plus(&back->f, sum, d));
  }
}

/* Once all that is carried is put out. */
static void put_out_slice(Back *back, Value *value, bool backwards) {
  put_out(back, value);
  *LIST_APPEND(back->f.graph->arena, back->backwards, back->n_collected) = backwards;
}

static void put_out_slices(Back *back, int *given) {
  const Control *control = back->g->node->control;
  for (int k = 0; k < control->n_scanned; k++) {
    int i = control->n_carried + k;
    Value *d = back->g->wanted[i] ? gradient_of(back, i) : NULL;
    if (!d) continue;
    given[back->f.graph->n_outputs] = i;
    put_out_slice(back, d, !scans_backwards(control, k));
  }
}

/* ---- what is summed over all turns at once ---- */

/* Rows of a value, in the order of turns that has its slices `backwards`. */
static void keep_rows(Back *back, TurnRows *rows, bool backwards) {
  Graph *body = back->f.graph;
  Slot *slot = slot_of(&back->scanned, rows->value);
  rows->output = -1;
  if (slot && slot->backwards == backwards) {
    slot->multiplied = true;
    return;
  }
  for (int k = body->n_outputs - back->n_collected; k < body->n_outputs; k++)
    if (body->outputs[k] == rows->value && back->backwards[k - body->n_outputs + back->n_collected] == backwards)
      rows->output = k;
  if (rows->output >= 0) return;
  rows->output = body->n_outputs;
  put_out_slice(back, rows->value, backwards);
}

/* The order of turns is that of what need not be collected. */
static void put_out_rows(Back *back, TurnPart *part) {
  const Slot *slot = NULL;
  for (int i = 0; i < MAX_TURN_ROWS && !slot; i++)
    if (part->rows[i].value) slot = slot_of(&back->scanned, part->rows[i].value);
  for (int i = 0; i < MAX_TURN_ROWS; i++)
    if (part->rows[i].value) keep_rows(back, &part->rows[i], !slot || slot->backwards);
  for (int i = 0; part->layer && i < part->layer->n_inputs; i++) {
    Slot *same = slot_of(&back->captured, part->layer->inputs[i]);
    if (same) same->multiplied = true;
  }
}

static Value *rows_of_all(const Back *back, const Node *scan, const TurnRows *rows) {
  return rows->output < 0 ? slot_of(&back->scanned, rows->value)->outside : scan->outputs[rows->output];
}

/* What the body's value is outside, of which every turn has the same. */
static Value *same_of_all(const Back *back, const Value *value) {
  int64_t shape[MAX_RANK];
  if (!value->data) return slot_of(&back->captured, value)->outside;
  for (int axis = 0; axis < value->rank; axis++) shape[axis] = dim_value(value->shape[axis]);
  return graph_constant(back->g->f->graph, value->name, value->dtype, value->rank, shape, value->data);
}

static void add_part(const Back *back, const Node *scan, const TurnPart *part) {
  const Gradient *g = back->g;
  Value *all[MAX_TURN_ROWS] = {0};
  for (int i = 0; i < MAX_TURN_ROWS; i++) {
    Value *same = part->layer ? node_input(part->layer, i) : NULL;
    if (part->rows[i].value)
      all[i] = rows_of_all(back, scan, &part->rows[i]);
    else if (same)
      all[i] = same_of_all(back, same);
  }
  Value **gradients = turn_part_gradients(g->f, part, all);
  for (int k = 0; k < MAX_TURN_GRADIENTS; k++) {
    Value **dx = part->gradients[k] >= 0 ? &g->dx[part->gradients[k]] : NULL;
    if (dx) *dx = *dx ? plus(g->f, *dx, gradients[k]) : gradients[k];
  }
}

/* ---- the way back ---- */

/* Of what is kept the first stays all the same, where the loop alone knows how often it has run: the way back needs it,
 * also if nothing else does. */
static bool tells_the_turns(const Back *back, const Slot *slot) {
  const Control *control = back->g->node->control;
  return slot == back->scanned.list && slot->kept && (control->conditional || !control->trip);
}

static void drop_unread(const Back *back, Slots *slots) {
  int kept = 0;
  for (int i = 0; i < slots->count; i++)
    if (slots->list[i].multiplied || tells_the_turns(back, &slots->list[i]) ||
        is_read_in(back->f.graph, slots->list[i].inside))
      slots->list[kept++] = slots->list[i];
  slots->count = kept;
}

/* What the loop has to keep for it. */
static void collect_kept(const Gradient *g, Slots *scanned) {
  for (int i = 0; i < scanned->count; i++)
    if (scanned->list[i].kept) scanned->list[i].outside = loop_collect(g->f->graph, g->node, scanned->list[i].kept);
}

/* NULL: what is outside is enough. */
static Node *scan_back(Back *back) {
  const Gradient *g = back->g;
  Graph *body = back->f.graph;
  Arena *arena = g->f->graph->arena;
  ScanInputs inputs = {.list = ARENA_ARRAY(arena, Value *, body->n_inputs)};
  graph_remove_dead(body);
  drop_unread(back, &back->scanned);
  drop_unread(back, &back->captured);
  collect_kept(g, &back->scanned);
  if (!body->n_outputs) return NULL;
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
  for (int k = 0; k < body->n_outputs - inputs.n_carried; k++)
    inputs.backwards[inputs.n_scanned + k] = back->backwards[k];
  return build_scan_back(g->f, g->node, body, &inputs);
}

const char *of_loop(const Gradient *g) {
  Node *node = g->node;
  Arena *arena = g->f->graph->arena;
  int n_inputs = node->n_inputs, n_outputs = node->n_outputs, *given = ARENA_ARRAY(arena, int, n_inputs);
  const char *lacks = lacking(arena, node);
  if (lacks) return lacks;
  Back *back = back_new(g, node_attribute(node, ATTR_body)->graph);
  const bool *moving = find_moving(back, n_outputs);
  set_arguments(back);
  begin_way(back);
  go_back_from_results(back, moving, n_outputs);
  go_backwards(&back->way);
  put_out_carried(back, moving, given);
  put_out_slices(back, given);
  int n_given = back->f.graph->n_outputs;
  for (int i = 0; i < back->parts.count; i++) put_out_rows(back, &back->parts.list[i]);
  if (!n_given && !back->parts.count) return NULL;
  Node *scan_node = scan_back(back);
  for (int k = 0; k < n_given; k++) {
    if (g->wanted[given[k]])
      g->dx[given[k]] = scan_node->outputs[k];
    else
      scan_node->outputs[k] = NULL;
  }
  for (int i = 0; i < back->parts.count; i++) add_part(back, scan_node, &back->parts.list[i]);
  return NULL;
}
