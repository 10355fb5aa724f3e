/* SPDX-License-Identifier: MIT */
/* The formulas of LSTM, GRU and RNN cells, in the ways they are written. */
#include "reroll/cell.h"
#include "reroll/pattern.h"
#include "shapes/shape.h"

/* Between an old value h and a new one n, by the gate z. */
static const struct BlendRow {
  const char *formula;
  bool z_keeps; /* z = 1 keeps h; else it takes n */
} blends[] = {
    {"(1-z)*n + z*h", true},    {"n + z*(h-n)", true},      {"n - z*(n-h)", true},      {"h + (1-z)*(n-h)", true},
    {"h - (1-z)*(h-n)", true},  {"(n - z*n) + z*h", true},  {"(n + z*h) - z*n", true},  {"n + (z*h - z*n)", true},
    {"n - (z*n - z*h)", true},  {"z*h - (z*n - n)", true},  {"z*h - (z-1)*n", true},    {"(1-z)*h + z*n", false},
    {"h + z*(n-h)", false},     {"h - z*(h-n)", false},     {"n + (1-z)*(h-n)", false}, {"n - (1-z)*(n-h)", false},
    {"(h - z*h) + z*n", false}, {"(h + z*n) - z*h", false}, {"h + (z*n - z*h)", false}, {"h - (z*h - z*n)", false},
    {"z*n - (z*h - h)", false}, {"z*n - (z-1)*h", false},
};
enum { N_BLENDS = sizeof blends / sizeof *blends };

/* c, too, may be what a Tanh makes: then only the gates' inputs tell the terms apart. */
static const char *const cell_states[] = {"f*c + i*g", "i*g + f*c"};
enum { N_CELL_STATES = sizeof cell_states / sizeof *cell_states };

/* ---- what the cells share ---- */

typedef struct Matcher {
  Graph *graph;
  Trail *trail;
  Cell *cell;
} Matcher;

int cell_input(const Cell *cell, const Product *product) {
  for (int i = 0; i < cell->n_inputs; i++)
    if (strip_same(&cell->inputs[i], &product->input)) return i;
  return NO_INPUT;
}

bool cell_may_be_hidden(const Cell *cell, int input) {
  return cell->n_inputs > 1 && cell->inputs[input].count == cell->units;
}

int64_t cell_columns(const Cell *cell) {
  int64_t columns = 0;
  for (int i = 0; i < cell->n_inputs; i++)
    if (i != cell->hidden) columns += cell->inputs[i].count;
  return columns;
}

static bool match(Matcher *m, const char *formula, const Strip *strip, Bindings *bindings) {
  return pattern_match(m->graph, m->trail, formula, *strip, bindings);
}

/* The input of the activation that made the strip. */
static bool before_activation(Matcher *m, const Strip *activated, Strip *sum) {
  strip_passed(activated, m->trail);
  return strip_operand(m->graph, activated, activated->value->producer->inputs[0], sum);
}

static bool read_sum(Matcher *m, const Strip *activated, Affine *gate) {
  Strip sum;
  return before_activation(m, activated, &sum) && affine_read(m->graph, m->trail, sum, gate);
}

static bool read_gate(Matcher *m, const Strip *activated, Affine *gate) {
  return read_sum(m, activated, gate) && !gate->rest.value;
}

/* Inputs in the order of the first gate's products; false if a gate lacks one of them or has others. */
static bool find_inputs(Cell *cell) {
  cell->n_inputs = 0;
  for (int i = 0; i < cell->gates[0].n_products; i++) {
    const Product *product = &cell->gates[0].products[i];
    if (cell_input(cell, product) == NO_INPUT) cell->inputs[cell->n_inputs++] = product->input;
  }
  for (int gate = 0; gate < cell->kind->gates; gate++) {
    if (cell->input_forget && gate == LSTM_f) continue;
    bool seen[MAX_CELL_INPUTS] = {false};
    int n_seen = 0;
    for (int i = 0; i < cell->gates[gate].n_products; i++) {
      int input = cell_input(cell, &cell->gates[gate].products[i]);
      if (input == NO_INPUT) return false;
      n_seen += !seen[input];
      seen[input] = true;
    }
    if (n_seen != cell->n_inputs) return false;
  }
  return cell->n_inputs > 0;
}

/* Zeros, or as many rows as the cell's results have: a constant of one row would have to be repeated. */
static bool fits_as_state(Matcher *m, const Strip *state, const Strip *next) {
  if (!state->value->data || strip_is_zero(state)) return true;
  const Dim *rows = strip_rows(m->graph, state);
  return state->count == next->count && rows && same_dim(rows, strip_rows(m->graph, next));
}

/* ---- LSTM ---- */

/* c' = f*c + i*g */
static bool read_full_state(Matcher *m, const char *formula, const Strip *c_next) {
  Bindings found = {0};
  if (!match(m, formula, c_next, &found)) return false;
  const Strip i = bound(&found, 'i'), f = bound(&found, 'f'), g = bound(&found, 'g');
  Affine *gates = m->cell->gates;
  m->cell->c = bound(&found, 'c');
  m->cell->input_forget = false;
  return fits_as_state(m, &m->cell->c, c_next) && read_gate(m, &i, &gates[LSTM_i]) &&
         read_gate(m, &f, &gates[LSTM_f]) && read_gate(m, &g, &gates[LSTM_c]) && find_inputs(m->cell);
}

/* c' = (1-i)*c + i*g; 1 - sigmoid(a) = sigmoid(-a) */
static bool read_coupled_state(Matcher *m, const struct BlendRow *blend, const Strip *c_next) {
  Bindings found = {0};
  if (!match(m, blend->formula, c_next, &found)) return false;
  const Strip z = bound(&found, 'z'), n = bound(&found, 'n');
  Affine *gates = m->cell->gates;
  m->cell->c = bound(&found, 'h');
  m->cell->input_forget = true;
  if (!read_gate(m, &z, &gates[LSTM_i]) || !read_gate(m, &n, &gates[LSTM_c])) return false;
  if (blend->z_keeps) affine_negate(&gates[LSTM_i]);
  return fits_as_state(m, &m->cell->c, c_next) && find_inputs(m->cell);
}

static bool read_state(Matcher *m, const Strip *c_next) {
  int mark = m->trail->n;
  for (int row = 0; row < N_CELL_STATES; row++) {
    if (read_full_state(m, cell_states[row], c_next)) return true;
    m->trail->n = mark;
  }
  for (int row = 0; row < N_BLENDS; row++) {
    if (read_coupled_state(m, &blends[row], c_next)) return true;
    m->trail->n = mark;
  }
  return false;
}

/* h' = o*tanh(c') */
static bool read_lstm(Matcher *m, const Strip *h_next) {
  Bindings found = {0};
  Strip c_next;
  if (!match(m, "o*y", h_next, &found)) return false;
  const Strip o = bound(&found, 'o'), y = bound(&found, 'y');
  if (!before_activation(m, &y, &c_next)) return false;
  c_next = strip_origin(m->graph, c_next, m->trail);
  if (!strip_is_whole(&c_next) || !c_next.value->producer) return false;
  m->cell->c_next = c_next.value;
  return read_gate(m, &o, &m->cell->gates[LSTM_o]) && read_state(m, &c_next);
}

/* ---- GRU ---- */

static bool has_product_with_h(const Cell *cell, const Affine *gate) {
  for (int i = 0; i < gate->n_products; i++)
    if (strip_same(&gate->products[i].input, &cell->h)) return true;
  return false;
}

/* n = tanh(W x + r*(R h + b)): `scaled` is r*(..). The product with h joins the candidate's. */
static bool read_reset_after(Matcher *m, const Strip *scaled, Strip *r) {
  Affine *candidate = &m->cell->gates[GRU_h], inner;
  Bindings found = {0};
  if (!match(m, "r*a", scaled, &found)) return false;
  *r = bound(&found, 'r');
  if (!affine_read(m->graph, m->trail, bound(&found, 'a'), &inner) || inner.rest.value) return false;
  if (has_product_with_h(m->cell, candidate)) return false;
  for (int i = 0; i < inner.n_products; i++) {
    if (!strip_same(&inner.products[i].input, &m->cell->h) || candidate->n_products == MAX_PRODUCTS) return false;
    candidate->products[candidate->n_products++] = inner.products[i];
  }
  inner.n_products = 0;
  m->cell->reset_bias = inner;
  m->cell->reset_after = true;
  return true;
}

/* n = tanh(W x + R (r*h) + b): an input that is r*h. It is named h, which is what the op multiplies by r. */
static bool read_reset_before(Matcher *m, Strip *r) {
  Affine *candidate = &m->cell->gates[GRU_h];
  Bindings found = {0};
  found.letters['h' - 'a'] = m->cell->h;
  int n_found = 0;
  if (has_product_with_h(m->cell, candidate)) return false;
  for (int i = 0; i < candidate->n_products; i++) {
    if (!match(m, "r*h", &candidate->products[i].input, &found)) continue;
    candidate->products[i].input = m->cell->h;
    n_found++;
  }
  *r = bound(&found, 'r');
  m->cell->reset_after = false;
  return n_found > 0;
}

/* A first step whose h is zero has lost its products with h, and never needs the rest. */
static void drop_products_with_zero(Cell *cell) {
  Affine *candidate = &cell->gates[GRU_h];
  int kept = 0;
  for (int i = 0; i < candidate->n_products; i++)
    if (!strip_same(&candidate->products[i].input, &cell->h)) candidate->products[kept++] = candidate->products[i];
  candidate->n_products = kept;
}

static bool find_gru_inputs(Cell *cell) {
  const Product hidden = {.input = cell->h};
  Cell first = *cell;
  if (find_inputs(cell) && (cell->hidden = cell_input(cell, &hidden)) != NO_INPUT) return true;
  if (!strip_is_zero(&cell->h)) return false;
  drop_products_with_zero(&first);
  *cell = first;
  return find_inputs(cell);
}

static bool read_blend(Matcher *m, const struct BlendRow *blend, const Strip *h_next) {
  Bindings found = {0};
  Cell *cell = m->cell;
  Affine *candidate = &cell->gates[GRU_h];
  if (!match(m, blend->formula, h_next, &found)) return false;
  const Strip z = bound(&found, 'z'), n = bound(&found, 'n');
  cell->h = bound(&found, 'h');
  if (!read_gate(m, &z, &cell->gates[GRU_z]) || !read_sum(m, &n, candidate)) return false;
  if (!blend->z_keeps) affine_negate(&cell->gates[GRU_z]);
  Strip r;
  if (!(candidate->rest.value ? read_reset_after(m, &candidate->rest, &r) : read_reset_before(m, &r))) return false;
  candidate->rest = (Strip){0};
  return read_gate(m, &r, &cell->gates[GRU_r]) && find_gru_inputs(cell);
}

static bool read_gru(Matcher *m, const Strip *h_next) {
  for (int row = 0; row < N_BLENDS; row++) {
    if (read_blend(m, &blends[row], h_next)) return true;
    m->trail->n = 0;
  }
  return false;
}

/* ---- RNN ---- */

static bool read_rnn(Matcher *m, const Strip *h_next) {
  m->cell->relu = is_op(h_next->value->producer, OP_Relu);
  return read_gate(m, h_next, &m->cell->gates[RNN_h]) && find_inputs(m->cell);
}

/* ---- all of them ---- */

typedef bool ReadCell(Matcher *m, const Strip *h_next);
static ReadCell *const readers[N_OPS] = {[OP_RNN] = read_rnn, [OP_GRU] = read_gru, [OP_LSTM] = read_lstm};

Cell *match_cell(Graph *graph, Trail *trail, Value *value, OpKind op) {
  Cell cell = {.kind = cell_kind(op), .h_next = value, .hidden = NO_INPUT};
  Matcher m = {graph, trail, &cell};
  Strip strip;
  trail->n = 0;
  if (!strip_whole(value, &strip) || !strip_rows(graph, &strip)) return NULL;
  cell.units = strip.count;
  if (!readers[op](&m, &strip)) return NULL;
  cell.n_nodes = trail->n;
  cell.nodes = arena_copy(graph->arena, trail->nodes, (size_t)trail->n * sizeof(Node *));
  return arena_copy(graph->arena, &cell, sizeof cell);
}
