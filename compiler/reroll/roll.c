/* SPDX-License-Identifier: MIT */
#include "reroll/roll.h"

#include "ir/op.h"
#include "reroll/cell_weights.h"
#include "reroll/steps.h"

/* ---- does one value depend on another? ---- */

/* Backwards search over the nodes. Each search has marks of its own: `visited`, and `visited + 1` for its targets. */
typedef struct Search {
  Graph *graph;
  int capacity, visited;
  int *marks; /* by node id */
  Node **stack;
} Search;

static void start_search(Search *search) {
  search->visited += 2;
  if (search->graph->n_nodes <= search->capacity) return;
  search->capacity = 2 * search->graph->n_nodes;
  search->marks = ARENA_ARRAY(search->graph->arena, int, search->capacity);
  search->stack = ARENA_ARRAY(search->graph->arena, Node *, search->capacity);
}

static void add_target(Search *search, const Value *value) {
  if (value) search->marks[value->producer->id] = search->visited + 1;
}

/* True at a target. A node not seen before goes on the stack. */
static bool visit(Search *search, const Value *value, int *depth) {
  if (!value->producer) return false;
  int *mark = &search->marks[value->producer->id];
  if (*mark == search->visited + 1) return true;
  if (*mark != search->visited) search->stack[(*depth)++] = value->producer;
  *mark = search->visited;
  return false;
}

/* Nodes that were visited before in this search reach no target: what depends on a later step does not lead up to an
 * earlier one. */
static bool reaches_target(Search *search, const Value *value) {
  int depth = 0;
  if (visit(search, value, &depth)) return true;
  while (depth > 0) {
    const Node *node = search->stack[--depth];
    for (int i = 0; i < node->n_inputs; i++)
      if (node->inputs[i] && visit(search, node->inputs[i], &depth)) return true;
  }
  return false;
}

static bool depends_on_steps(Search *search, const Cell *cell) {
  for (int i = 0; i < cell->n_inputs; i++)
    if (i != cell->hidden && reaches_target(search, cell->inputs[i].value)) return true;
  return false;
}

/* How many steps from `first` on have an x that is known before the first of them runs. */
static int independent_steps(Search *search, const Cell *first) {
  int n = 0;
  start_search(search);
  for (const Cell *cell = first; cell; cell = cell->next, n++) {
    if (n > 0 && depends_on_steps(search, cell)) break;
    add_target(search, cell->h_next);
    add_target(search, cell->c_next);
  }
  return n;
}

/* ---- the op ---- */

/* The weights of all steps of a chain. */
typedef struct Weights {
  Value *input, *hidden, *bias; /* bias NULL: all zeros */
} Weights;

static Value *constant(Graph *graph, const char *name, int64_t rows, int64_t columns, const float *data) {
  const int64_t shape[] = {1, rows, columns};
  return graph_constant(graph, name, RNNCC_F32, 3, shape, data);
}

static Value *bias_constant(Graph *graph, const float *bias, int64_t n) {
  const int64_t shape[] = {1, n};
  int64_t zeros = 0;
  while (zeros < n && bias[zeros] == 0) zeros++;
  return zeros < n ? graph_constant(graph, "B", RNNCC_F32, 2, shape, bias) : NULL;
}

/* A first step may not know the weights of h; the last does. */
static Weights weights_of(Graph *graph, const Cell *head) {
  const Cell *last = head;
  while (last->next) last = last->next;
  CellWeights weights = cell_weights(graph->arena, last);
  int64_t rows = last->kind->gates * last->units;
  return (Weights){constant(graph, "W", rows, cell_columns(last), weights.input),
                   constant(graph, "R", rows, last->units, weights.hidden),
                   bias_constant(graph, weights.bias, 2 * rows)};
}

/* n steps of a chain, from `first` to `last`. */
typedef struct Run {
  const Builder *builder;
  const Cell *first, *last;
  int n, direction;
} Run;

static Steps inputs_of(const Run *run) {
  Graph *graph = run->builder->graph;
  const Cell *cell = run->first;
  Steps steps = steps_new(graph->arena, run->n, cell->n_inputs - (cell->hidden != NO_INPUT));
  for (int step = 0; step < run->n; step++, cell = cell->next)
    for (int i = 0, part = 0; i < cell->n_inputs; i++)
      if (i != cell->hidden) steps_part(&steps, part++)[step] = strip_origin(graph, cell->inputs[i], NULL);
  return steps;
}

/* The direction of the first part of x whose steps go along one value. */
static int direction_of(const Steps *inputs) {
  for (int part = 0; part < inputs->n_parts; part++) {
    int direction = strips_direction(steps_part(inputs, part), inputs->n);
    if (direction) return direction;
  }
  return 1;
}

/* Zeros expanded to a batch that only run time knows are as good as none. */
static bool is_expanded_zero(const Strip *strip) {
  const Node *node = strip->value->producer;
  if (!is_op(node, OP_Expand)) return false;
  Strip expanded = {.value = node->inputs[0], .count = 1, .axis = -1};
  return node->inputs[0]->data && value_count(node->inputs[0]) == 1 && strip_is_zero(&expanded);
}

/* [1, B, H]; NULL for zeros. */
static Value *initial_state(const Run *run, const Strip *state) {
  if (!state->value || strip_is_zero(state)) return NULL;
  const Strip origin = strip_origin(run->builder->graph, *state, NULL);
  if (is_expanded_zero(&origin)) return NULL;
  return build_strip(run->builder, &origin);
}

static int attributes_of(const Run *run, Attribute attributes[4]) {
  static const char *const relu[] = {"Relu"};
  const Cell *cell = run->first;
  int n = 0;
  attributes[n++] = attribute_int(ATTR_hidden_size, cell->units);
  if (cell->relu) attributes[n++] = attribute_strings(run->builder->graph->arena, ATTR_activations, 1, relu);
  if (cell->reset_after) attributes[n++] = attribute_int(ATTR_linear_before_reset, 1);
  if (cell->input_forget) attributes[n++] = attribute_int(ATTR_input_forget, 1);
  if (run->direction < 0) attributes[n++] = attribute_one_of(ATTR_direction, DIRECTION_reverse);
  return n;
}

static Node *build_recurrent(const Run *run, const Weights *weights, const Steps *inputs) {
  const Cell *cell = run->first;
  Attribute attributes[4];
  int n_attributes = attributes_of(run, attributes);
  Value *const values[] = {build_steps(run->builder, inputs, run->direction),
                           weights->input,
                           weights->hidden,
                           weights->bias,
                           [INPUT_LENGTHS] = NULL,
                           initial_state(run, &cell->h),
                           initial_state(run, &cell->c)};
  int states = cell->kind->states;
  return build_op(run->builder, cell->kind->op, INPUT_H + states, values, 1 + states, n_attributes, attributes);
}

/* Each step's h' is a row of Y, the last one's Y_h. Unused ones are dead. */
static void hand_out(const Run *run, const Node *op) {
  const Cell *cell = run->first;
  for (int step = 0; step < run->n - 1; step++, cell = cell->next) {
    int64_t time = run->direction > 0 ? step : run->n - 1 - step;
    const Range range = {0, time, time + 1};
    build_instead(run->builder, cell->h_next, build_slice(run->builder, op->outputs[0], 1, &range));
  }
  build_instead(run->builder, cell->h_next, op->outputs[1]);
  if (cell->c_next) build_instead(run->builder, cell->c_next, op->outputs[2]);
}

static void widen(const Cell *cell, int *first, int *last) {
  for (int n = 0; n < cell->n_nodes; n++) {
    if (cell->nodes[n]->id < *first) *first = cell->nodes[n]->id;
    if (cell->nodes[n]->id > *last) *last = cell->nodes[n]->id;
  }
}

/* Node ids as --dump-after=simplify shows them. */
static void tell(const Run *run) {
  const Cell *cell = run->first;
  int first = INT32_MAX, last = 0;
  for (int step = 0; step < run->n; step++, cell = cell->next) widen(cell, &first, &last);
  graph_remark(run->builder->graph, "n%d..n%d re-rolled: %d step%s of %s %s cell (I=%lld, H=%lld)", first, last, run->n,
               run->n == 1 ? "" : "s", run->first->kind->op == OP_GRU ? "a" : "an", op_info(run->first->kind->op)->name,
               (long long)cell_columns(run->first), (long long)run->first->units);
}

/* Returns the step after them. */
static const Cell *roll(Graph *graph, const Cell *first, int n, const Weights *weights) {
  const Node *root = first->h_next->producer;
  const Builder builder = {graph, root->name, root->where};
  Run run = {.builder = &builder, .first = first, .last = first, .n = n};
  for (int step = 1; step < n; step++) run.last = run.last->next;
  Steps inputs = inputs_of(&run);
  run.direction = direction_of(&inputs);
  tell(&run);
  const Cell *after = run.last->next;
  hand_out(&run, build_recurrent(&run, weights, &inputs));
  return after;
}

void roll_chains(Graph *graph, const Chains *chains) {
  Search search = {.graph = graph};
  for (int i = 0; i < chains->n; i++) {
    Weights weights = weights_of(graph, chains->heads[i]);
    for (const Cell *cell = chains->heads[i]; cell;)
      cell = roll(graph, cell, independent_steps(&search, cell), &weights);
  }
}
