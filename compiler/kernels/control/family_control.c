/* SPDX-License-Identifier: MIT */
/*
 * If, Loop and Scan: the calls of a body are in a block of the schedule, which all workers enter together.
 *
 * What no iteration of a loop changes, its nodes pack before it, unless there is at most one: that one may take another
 * branch.
 *
 * Copies are avoided: a branch writes the node's outputs; scanned and collected slices are read and written in place. A
 * carried value has two places: even iterations read the first and write the second, odd ones the other way round. What
 * its last node may write it over is in that place, too: the states of a beam search, before they are reordered. What
 * only the loop reads, to begin with, is written to the first place.
 */
#include "ir/bodies.h"
#include "ir/family.h"
#include "kernels/move/strided_copy.h"
#include "program/build.h"
#include "program/overlap.h"
#include "shapes/control.h"
#include "support/numbers.h"

enum { ALIGNMENT = 64 };

static Graph *body_of(const Node *node, AttributeName name) { return node_attribute(node, name)->graph; }

/* ---- carried values ---- */

/* Bytes of one place of carried value `k`; the condition comes last. */
static int64_t place_bytes(const Node *node, int k) {
  const Control *control = node->control;
  int64_t bytes =
      k == control->n_carried ? 1 : value_max_bytes(body_of(node, ATTR_body)->inputs[control->n_leading + k]);
  return round_up(bytes, ALIGNMENT);
}

static int64_t first_place(const Node *node, int k) {
  int64_t bytes = 0;
  for (int i = 0; i < k; i++) bytes += 2 * place_bytes(node, i);
  return bytes;
}

static void control_scratch(Graph *graph, Node *node) {
  const Control *control = node->control;
  if (!control->is_loop || control->n_carried + control->conditional == 0) return;
  int64_t bytes = first_place(node, control->n_carried + control->conditional);
  graph_scratch(graph, node, "carried", dim_const(graph->dims, bytes));
}

/* The place that iteration `number` reads, or with `next`, writes. */
static const Dim *place_at(Graph *graph, const Node *node, int k, const Dim *number, bool next) {
  DimTable *dims = graph->dims;
  const Dim *two = dim_const(dims, 2), *n = next ? dim_add(dims, number, dim_const(dims, 1)) : number;
  const Dim *odd = dim_sub(dims, n, dim_mul(dims, dim_div(dims, n, two), two));
  return dim_add(dims, dim_const(dims, first_place(node, k)),
                 dim_mul(dims, odd, dim_const(dims, place_bytes(node, k))));
}

/* ---- views ---- */

/* Makes the value a view of `of`. */
static void stand_in(Value *value, Value *of, const Dim *at) {
  Value *root = value_root(value);
  root->view_of = of;
  root->at = at;
}

static void set_captures(const Node *node, Graph *body) {
  for (int i = 1; i <= node->n_captures; i++)
    stand_in(body->inputs[body->n_inputs - i], node->inputs[node->n_inputs - i], NULL);
}

/* Byte offset of the iteration's slice, backwards counted from the end. */
static const Dim *slice_at(Graph *graph, const Node *node, const Value *slice, bool backwards) {
  DimTable *dims = graph->dims;
  const Control *control = node->control;
  const Dim *number = dim_symbol(dims, control->counter), *bytes = value_count_dim(graph, slice, 0, slice->rank);
  if (backwards) number = dim_sub(dims, dim_sub(dims, control->trip, dim_const(dims, 1)), number);
  return dim_mul(dims, number, dim_mul(dims, bytes, dim_const(dims, (int64_t)dtype_size(slice->dtype))));
}

/* Is the memory read behind the node, or by the next iteration? */
static bool is_read_later(const Graph *body, const Node *node, const Value *root) {
  for (int i = 0; i < body->n_outputs; i++)
    if (value_root(body->outputs[i]) == root) return true;
  for (int n = body->n_nodes - 1; body->nodes[n] != node; n--)
    for (int i = 0; i < body->nodes[n]->n_inputs; i++)
      if (body->nodes[n]->inputs[i] && value_root(body->nodes[n]->inputs[i]) == root) return true;
  return false;
}

static bool has_bytes_of(const Value *value, const Value *root) {
  return !value->channel_block && value_max_bytes(value) == value_max_bytes(root);
}

/* What the node that writes an output of the body may write it over: a value of the body, whole, and of the same size;
 * NULL: nothing. While no value of the body stands for one outside. */
static Value *written_over(const Graph *body, Value *output) {
  const Value *root = value_root(output);
  const Node *node = root->producer;
  if (!node || node->in_place || root->channel_block) return NULL;
  for (int i = 0; i < node->n_inputs; i++) {
    Value *input = node->inputs[i] ? value_root(node->inputs[i]) : NULL;
    if (!input || !input->producer || !has_bytes_of(node->inputs[i], root) || !has_bytes_of(input, root)) continue;
    if (!is_read_later(body, node, input) && may_overwrite(node, root, input)) return input;
  }
  return NULL;
}

static void set_carried_views(Graph *graph, const Node *node, Graph *body) {
  const Control *control = node->control;
  const Dim *number = dim_symbol(graph->dims, control->counter);
  int first_output = control->n_leading ? 1 : 0, n = control->n_carried;
  Value **over = ARENA_ARRAY(graph->arena, Value *, n);
  for (int k = 0; k < n; k++) over[k] = written_over(body, body->outputs[first_output + k]);
  for (int k = 0; k < n; k++) {
    const Dim *next = place_at(graph, node, k, number, true);
    stand_in(body->inputs[control->n_leading + k], node->scratch, place_at(graph, node, k, number, false));
    stand_in(body->outputs[first_output + k], node->scratch, next);
    if (over[k]) stand_in(over[k], node->scratch, next);
  }
}

static void set_loop_views(Graph *graph, const Node *node, Graph *body) {
  const Control *control = node->control;
  int first_output = control->n_leading ? 1 : 0, carried = control->n_carried;
  set_carried_views(graph, node, body);
  set_captures(node, body);
  for (int k = 0; k < control->n_scanned; k++) {
    Value *slice = body->inputs[carried + k];
    stand_in(slice, node->inputs[carried + k], slice_at(graph, node, slice, scans_backwards(control, k)));
  }
  for (int k = 0; k < control->n_collected && carried + k < node->n_outputs; k++) {
    Value *slice = body->outputs[first_output + carried + k];
    bool backwards = scans_backwards(control, control->n_scanned + k);
    if (node->outputs[carried + k])
      stand_in(slice, node->outputs[carried + k], slice_at(graph, node, slice, backwards));
  }
}

/* ---- what no iteration changes ---- */

/* The value outside of a loop that the body's is in every iteration; NULL: none. outer: by input of the body. */
static Value *outer_value(const Graph *body, Value *const *outer, const Value *value) {
  for (int i = 0; i < body->n_inputs; i++)
    if (body->inputs[i] == value) return outer[i];
  return NULL;
}

static Value **outer_values(const Graph *body, Value *const *outer, int n, Value *const *values) {
  Value **found = ARENA_ARRAY(body->arena, Value *, n);
  for (int i = 0; i < n; i++) found[i] = values[i] ? outer_value(body, outer, values[i]) : NULL;
  return found;
}

/* By input of the body: of a capture the value in `given`, which has the node's inputs. */
static Value **outer_of_captures(const Node *node, const Graph *body, Value *const *given) {
  Value **outer = ARENA_ARRAY(body->arena, Value *, body->n_inputs);
  for (int i = 1; i <= node->n_captures; i++) outer[body->n_inputs - i] = given[node->n_inputs - i];
  return outer;
}

static void lower_node_once(Program *program, Node *node, Value *const *outer) {
  int first = program->n_calls;
  node->op->family->lower_once(program, node, outer);
  for (int i = first; i < program->n_calls; i++) program->calls[i]->before_loop = true;
}

/* Also in bodies within. */
static void lower_body_once(Program *program, const Graph *body, Value *const *outer) {
  for (int n = 0; n < body->n_nodes; n++) {
    Node *node = body->nodes[n];
    Attribute *bodies[MAX_BODIES];
    int count = node_bodies(node, bodies);
    const KernelFamily *family = node->op->family;
    if (!count && !(family && family->lower_once)) continue;
    Value **of_inputs = outer_values(body, outer, node->n_inputs, node->inputs);
    if (!count) lower_node_once(program, node, of_inputs);
    for (int b = 0; b < count; b++) {
      const Graph *within = bodies[b]->graph;
      lower_body_once(program, within, outer_of_captures(node, within, of_inputs));
    }
  }
}

/* ---- loops ---- */

static bool is_read(const Graph *body, const Value *value) {
  for (int n = 0; n < body->n_nodes; n++)
    for (int i = 0; i < body->nodes[n]->n_inputs; i++)
      if (body->nodes[n]->inputs[i] == value) return true;
  return false;
}

/* Stores the number of the iteration as a tensor, if the body reads it. */
static void lower_number(Program *program, const Node *node, const Graph *body) {
  Graph *graph = program->graph;
  const Dim *number = dim_symbol(graph->dims, node->control->counter);
  if (!node->control->n_leading || !is_read(body, body->inputs[0])) return;
  Call *call = kernel_call(program, node, kernel_spec(program, "extent"));
  operand_value(call, "out", body->inputs[0], WRITE);
  operand_integer(call, "n", 1);
  operand_dim_array(call, "values", 1, &number);
}

/* Does anything but this input of the node read the memory? node: or NULL. */
static bool is_read_elsewhere(const Graph *graph, const Node *node, int input, const Value *root) {
  for (int i = 0; i < graph->n_outputs; i++)
    if (value_root(graph->outputs[i]) == root) return true;
  for (int i = 0; i < graph->n_states; i++)
    if (value_root(graph->states[i].output) == root) return true;
  for (int n = 0; n < graph->n_nodes; n++)
    for (int i = 0; i < graph->nodes[n]->n_inputs; i++) {
      bool itself = graph->nodes[n] == node && i == input;
      if (!itself && graph->nodes[n]->inputs[i] && value_root(graph->nodes[n]->inputs[i]) == root) return true;
    }
  return false;
}

/* Is what the loop begins with of a node beside it, and for the loop alone? Then that writes it where the first
 * iteration reads it. */
static bool is_own(const Graph *graph, const Node *node, int k) {
  int input = node->control->first_carried + k;
  const Value *from = node->inputs[input], *root = value_root((Value *)from);
  for (const Value *value = from; value; value = value->view_of)
    if (value->is_input || value->at) return false;
  if (!root->producer || root->channel_block || !has_bytes_of(from, root)) return false;
  return value_max_bytes(root) <= place_bytes(node, k) && !is_read_elsewhere(graph, node, input, root);
}

static void lower_first(Program *program, const Node *node, int k) {
  Graph *graph = program->graph;
  Value *from = node->inputs[node->control->first_carried + k];
  const Dim *at = place_at(graph, node, k, dim_const(graph->dims, 0), false);
  if (is_own(graph, node, k))
    stand_in(from, node->scratch, at);
  else
    lower_whole_copy(program, node, from, program_view(program, from, node->scratch, at));
}

static void lower_start(Program *program, const Node *node) {
  static const uint8_t truth = 1;
  Graph *graph = program->graph;
  const Control *control = node->control;
  const Dim *zero = dim_const(graph->dims, 0);
  program_set_dim(program, node, control->count, zero);
  for (int g = 0; g < control->n_growths; g++)
    program_set_dim(program, node, control->growths[g].symbol, control->growths[g].value[0]);
  for (int k = 0; k < control->n_carried; k++) lower_first(program, node, k);
  if (!control->conditional) return;
  Value *first = node->inputs[1] ? node->inputs[1] : program_constant(program, RNNCC_BOOL, &truth);
  lower_whole_copy(program, node, first,
                   program_view(program, first, node->scratch, place_at(graph, node, control->n_carried, zero, false)));
}

/* Makes Loop's condition views of its places: of this iteration and of the next. */
static void set_condition(Program *program, const Node *node, Graph *body) {
  static const uint8_t truth = 1;
  Graph *graph = program->graph;
  const Control *control = node->control;
  const Dim *number = dim_symbol(graph->dims, control->counter);
  if (!control->n_leading) return;
  if (!control->conditional) {
    stand_in(body->inputs[1], program_constant(program, RNNCC_BOOL, &truth), NULL);
    return;
  }
  stand_in(body->inputs[1], node->scratch, place_at(graph, node, control->n_carried, number, false));
  stand_in(body->outputs[0], node->scratch, place_at(graph, node, control->n_carried, number, true));
  program_break_unless(program, node, body->inputs[1]);
}

/* The iteration that the loop which this one goes back over had then. */
static void lower_iteration_of(Program *program, const Node *node) {
  DimTable *dims = program->graph->dims;
  const Control *control = node->control;
  const Dim *rest = dim_sub(dims, control->trip, dim_symbol(dims, control->counter));
  program_set_dim(program, node, control->of, dim_sub(dims, rest, dim_const(dims, 1)));
}

/* What an iteration leaves. Iterations are counted apart: of a loop of at most one, its number is a constant. */
static void lower_next(Program *program, const Node *node) {
  DimTable *dims = program->graph->dims;
  const Control *control = node->control;
  program_set_dim(program, node, control->count, dim_add(dims, dim_symbol(dims, control->counter), dim_const(dims, 1)));
  for (int g = 0; g < control->n_growths; g++)
    program_set_dim(program, node, control->growths[g].symbol, control->growths[g].value[1]);
}

static void lower_end(Program *program, const Node *node) {
  Graph *graph = program->graph;
  const Control *control = node->control;
  program_store_dim(program, node, control->count);
  for (int g = 0; g < control->n_growths; g++) program_store_dim(program, node, control->growths[g].symbol);
  if (!control->n_carried) return;
  const Dim *count = dim_symbol(graph->dims, control->count);
  program_scope(program, node);
  for (int k = 0; k < control->n_carried && k < node->n_outputs; k++) {
    Value *to = node->outputs[k];
    if (to && is_read_elsewhere(graph, NULL, 0, value_root(to)))
      lower_whole_copy(program, node, program_view(program, to, node->scratch, place_at(graph, node, k, count, false)),
                       to);
  }
  program_end(program);
}

static void lower_loop(Program *program, Node *node) {
  const Control *control = node->control;
  Graph *body = body_of(node, ATTR_body);
  lower_start(program, node);
  if (control->most > 1) lower_body_once(program, body, outer_of_captures(node, body, node->inputs));
  program_loop(program, node, control->counter, control->trip, control->trip ? NULL : node->inputs[0]);
  if (control->of) lower_iteration_of(program, node);
  program_take(program, body);
  set_loop_views(program->graph, node, body);
  set_condition(program, node, body);
  lower_number(program, node, body);
  lower_body(program, body);
  lower_next(program, node);
  program_end(program);
  lower_end(program, node);
}

/* ---- If ---- */

static void lower_branch(Program *program, const Node *node, Graph *body, int branch) {
  const Control *control = node->control;
  program_take(program, body);
  set_captures(node, body);
  for (int k = 0; k < node->n_outputs; k++)
    if (node->outputs[k]) stand_in(body->outputs[k], node->outputs[k], NULL);
  lower_body(program, body);
  for (int g = 0; g < control->n_growths; g++)
    program_set_dim(program, node, control->growths[g].symbol, control->growths[g].value[branch]);
}

static void lower_if(Program *program, Node *node) {
  program_if(program, node, node->inputs[0]);
  lower_branch(program, node, body_of(node, ATTR_then_branch), 0);
  program_else(program);
  lower_branch(program, node, body_of(node, ATTR_else_branch), 1);
  program_end(program);
  for (int g = 0; g < node->control->n_growths; g++) program_store_dim(program, node, node->control->growths[g].symbol);
}

static void lower_control(Program *program, Node *node) {
  if (node->control->is_loop)
    lower_loop(program, node);
  else
    lower_if(program, node);
}

const KernelFamily family_control = {.scratch = control_scratch, .lower = lower_control};
