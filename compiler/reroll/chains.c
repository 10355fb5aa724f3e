/* SPDX-License-Identifier: MIT */
/*
 * Tries every node that could be the last of a cell. A cell counts only if nothing else reads its inner values. Then it
 * is linked to the cell that its state comes from.
 */
#include "reroll/chains.h"

#include <string.h>

#include "ir/op.h"
#include "reroll/cell_weights.h"
#include "support/list.h"

typedef struct Finder {
  Graph *graph;
  Trail trail;
  /* By value id: its readers are readers[first_reader[id] .. first_reader[id + 1]]. */
  int *first_reader;
  Node **readers;
  bool *is_output;     /* by value id: of the graph, or of a state */
  Cell **owner;        /* by node id: the cell of the node */
  Cell **by_h, **by_c; /* by value id: the cell that makes it as h' or c' */
  int n, capacity;
  Cell **cells;
} Finder;

/* ---- readers of values ---- */

static void count_readers(Finder *f) {
  const Graph *graph = f->graph;
  for (int n = 0; n < graph->n_nodes; n++)
    for (int i = 0; i < graph->nodes[n]->n_inputs; i++)
      if (graph->nodes[n]->inputs[i]) f->first_reader[graph->nodes[n]->inputs[i]->id + 1]++;
  for (int id = 0; id < graph->n_values; id++) f->first_reader[id + 1] += f->first_reader[id];
}

static void list_readers(Finder *f) {
  const Graph *graph = f->graph;
  int *filled = ARENA_ARRAY(graph->arena, int, graph->n_values);
  f->readers = ARENA_ARRAY(graph->arena, Node *, f->first_reader[graph->n_values]);
  for (int n = 0; n < graph->n_nodes; n++) {
    for (int i = 0; i < graph->nodes[n]->n_inputs; i++) {
      const Value *value = graph->nodes[n]->inputs[i];
      if (value) f->readers[f->first_reader[value->id] + filled[value->id]++] = graph->nodes[n];
    }
  }
}

static Finder finder_new(Graph *graph) {
  Arena *arena = graph->arena;
  int values = graph->n_values;
  Finder f = {.graph = graph,
              .trail = {.arena = arena},
              .first_reader = ARENA_ARRAY(arena, int, values + 1),
              .is_output = graph_mark_outputs(graph),
              .owner = ARENA_ARRAY(arena, Cell *, graph->n_nodes),
              .by_h = ARENA_ARRAY(arena, Cell *, values),
              .by_c = ARENA_ARRAY(arena, Cell *, values)};
  count_readers(&f);
  list_readers(&f);
  return f;
}

/* ---- single cells ---- */

static bool read_by_owner_only(const Finder *f, const Value *value, const Cell *owner) {
  if (f->is_output[value->id]) return false;
  for (int i = f->first_reader[value->id]; i < f->first_reader[value->id + 1]; i++)
    if (f->owner[f->readers[i]->id] != owner) return false;
  return true;
}

static bool keeps_to_itself(const Finder *f, const Cell *cell) {
  for (int n = 0; n < cell->n_nodes; n++) {
    const Node *node = cell->nodes[n];
    for (int i = 0; i < node->n_outputs; i++) {
      const Value *value = node->outputs[i];
      if (value && value != cell->h_next && value != cell->c_next && !read_by_owner_only(f, value, cell)) return false;
    }
  }
  return true;
}

/* False, and no node is the cell's, if one is another's or its result is read elsewhere. */
static bool claim(Finder *f, Cell *cell) {
  bool free = true;
  for (int n = 0; n < cell->n_nodes; n++) free = free && !f->owner[cell->nodes[n]->id];
  for (int n = 0; free && n < cell->n_nodes; n++) f->owner[cell->nodes[n]->id] = cell;
  if (free && keeps_to_itself(f, cell)) return true;
  for (int n = 0; free && n < cell->n_nodes; n++) f->owner[cell->nodes[n]->id] = NULL;
  return false;
}

/* ---- the cell before ---- */

static bool shares_weights_with_h(Cell *cell, int hidden, const Cell *next) {
  int before = cell->hidden;
  cell->hidden = hidden;
  if (cells_share_weights(cell, next)) return true;
  cell->hidden = before;
  return false;
}

/* A first step of LSTM or RNN does not say itself which input is h: its successor's weights do. */
static bool agrees(Cell *cell, const Cell *next) {
  if (cell->previous || cell->kind->op == OP_GRU) return cells_share_weights(cell, next);
  if (shares_weights_with_h(cell, NO_INPUT, next)) return true;
  for (int i = 0; i < cell->n_inputs; i++)
    if (cell_may_be_hidden(cell, i) && shares_weights_with_h(cell, i, next)) return true;
  return false;
}

static bool follows(Cell *cell, int hidden, Cell *previous) {
  int before = cell->hidden;
  if (!previous || previous->kind != cell->kind || previous->next) return false;
  cell->hidden = hidden;
  if (agrees(previous, cell)) {
    previous->next = cell;
    cell->previous = previous;
    return true;
  }
  cell->hidden = before;
  return false;
}

static Cell *maker(Cell *const *by_value, const Strip *strip) {
  return strip_is_whole(strip) ? by_value[strip->value->id] : NULL;
}

static bool only_moves(const Node *node) {
  return is_op(node, OP_Concat) || is_op(node, OP_Gather) || is_op(node, OP_Slice) || is_op(node, OP_Split) ||
         op_is_view(node->op);
}

/* c goes nowhere but from one step to the next, if need be through nodes that pack and unpack the states. */
static bool stays_between(const Finder *f, const Value *c, const Cell *a, const Cell *b, int depth) {
  enum { MAX_DEPTH = 4 };
  if (f->is_output[c->id] || depth > MAX_DEPTH) return false;
  for (int i = f->first_reader[c->id]; i < f->first_reader[c->id + 1]; i++) {
    const Node *reader = f->readers[i];
    const Cell *owner = f->owner[reader->id];
    if (owner && (owner == a || owner == b)) continue;
    if (!only_moves(reader)) return false;
    for (int k = 0; k < reader->n_outputs; k++)
      if (reader->outputs[k] && !stays_between(f, reader->outputs[k], a, b, depth + 1)) return false;
  }
  return true;
}

static void link_lstm(Finder *f, Cell *cell) {
  Cell *previous = maker(f->by_c, &cell->c);
  if (!previous || !stays_between(f, previous->c_next, previous, cell, 0)) return;
  for (int i = 0; i < cell->n_inputs; i++)
    if (cell_may_be_hidden(cell, i) && maker(f->by_h, &cell->inputs[i]) == previous && follows(cell, i, previous))
      return;
}

static void link_gru(Finder *f, Cell *cell) {
  if (cell->hidden != NO_INPUT) follows(cell, cell->hidden, maker(f->by_h, &cell->h));
}

static void link_rnn(Finder *f, Cell *cell) {
  for (int i = 0; i < cell->n_inputs; i++)
    if (cell_may_be_hidden(cell, i) && follows(cell, i, maker(f->by_h, &cell->inputs[i]))) return;
}

/* ---- all of them ---- */

/* How a cell is read whose last node is of this operator. */
typedef struct Root {
  OpKind cell;
  void (*link)(Finder *, Cell *);
} Root;
static const Root lstm_and_gru[N_OPS] = {[OP_Mul] = {OP_LSTM, link_lstm},
                                         [OP_Add] = {OP_GRU, link_gru},
                                         [OP_Sub] = {OP_GRU, link_gru},
                                         [OP_Sum] = {OP_GRU, link_gru}};
static const Root rnn[N_OPS] = {[OP_Relu] = {OP_RNN, link_rnn}, [OP_Tanh] = {OP_RNN, link_rnn}};

static void try_root(Finder *f, const Root *root, Node *node) {
  if (!root->link || f->owner[node->id]) return;
  Cell *cell = match_cell(f->graph, &f->trail, node->outputs[0], root->cell);
  if (!cell || !claim(f, cell)) return;
  f->by_h[cell->h_next->id] = cell;
  if (cell->c_next) f->by_c[cell->c_next->id] = cell;
  *LIST_ADD(f->graph->arena, f->cells, f->n, f->capacity) = cell;
  root->link(f, cell);
}

static void try_roots(Finder *f, const Root roots[N_OPS]) {
  for (int n = 0; n < f->graph->n_nodes; n++) try_root(f, &roots[f->graph->nodes[n]->op->kind], f->graph->nodes[n]);
}

/* ---- single steps ---- */

static bool is_state_of(const Graph *graph, const Strip *input, const Value *output) {
  for (int i = 0; i < graph->n_states; i++)
    if (graph->states[i].input == input->value && graph->states[i].output == output) return true;
  return false;
}

/* The input that a state carries over from the cell's h'; NO_INPUT if none does. */
static int carried_input(const Graph *graph, const Cell *cell) {
  for (int i = 0; i < cell->n_inputs; i++)
    if (cell_may_be_hidden(cell, i) && is_state_of(graph, &cell->inputs[i], cell->h_next)) return i;
  return NO_INPUT;
}

/* To an LSTM's single step all inputs are alike, so any will do; exporters write [x, h]. */
static int last_possible_input(const Cell *cell) {
  int input = cell->n_inputs - 1;
  while (input >= 0 && !cell_may_be_hidden(cell, input)) input--;
  return input;
}

/* A single step needs its own h; an RNN step without a state is only a dense layer. */
static bool is_worth_it(const Graph *graph, Cell *head) {
  if (head->next) return true;
  if (head->kind->op == OP_GRU) return head->hidden != NO_INPUT;
  head->hidden = carried_input(graph, head);
  if (head->hidden == NO_INPUT && head->kind->op == OP_LSTM) head->hidden = last_possible_input(head);
  return head->hidden != NO_INPUT;
}

static void name_hidden_inputs(Cell *head) {
  for (Cell *cell = head; cell; cell = cell->next)
    if (cell->hidden != NO_INPUT) cell->h = cell->inputs[cell->hidden];
}

Chains find_chains(Graph *graph) {
  Finder f = finder_new(graph);
  try_roots(&f, lstm_and_gru);
  try_roots(&f, rnn);
  Chains chains = {.heads = ARENA_ARRAY(graph->arena, Cell *, f.n)};
  for (int i = 0; i < f.n; i++) {
    if (f.cells[i]->previous || !is_worth_it(graph, f.cells[i])) continue;
    name_hidden_inputs(f.cells[i]);
    chains.heads[chains.n++] = f.cells[i];
  }
  return chains;
}
