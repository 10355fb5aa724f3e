/* SPDX-License-Identifier: MIT */
/*
 * RNN, GRU, LSTM: all inputs must agree with hidden_size and with each other. D: directions, G: gates.
 *   layout 0: X [T, B, I], h0 [D, B, H], Y [T, D, B, H], Y_h [D, B, H]
 *   layout 1: X [B, T, I], h0 [B, D, H], Y [B, T, D, H], Y_h [B, D, H]
 *   W [D, G*H, I], R [D, G*H, H], bias [D, 2*G*H], lengths [B], P [D, 3*H]
 * Those that save for their gradients, and the gradients, also: S [T, B, D, n*H] (ir/cell.h), or of
 * layout 1 [B, T, D, n*H].
 */
#include <float.h>
#include <string.h>

#include "ir/cell.h"
#include "shapes/shape.h"

static const char activation_names[] = ""
#define ACTIVATION(name, ...) " " #name
#include "ir/cells.def"
    ;

static bool check_activations(const Node *node, int needed) {
  const Attribute *given = node_attribute(node, ATTR_activations);
  if (given && given->count != (size_t)needed)
    return shape_error(node, "`activations` has %zu names; %d are needed, for all directions", given->count, needed);
  bool good = true;
  for (size_t i = 0; given && i < given->count; i++)
    if (activation_find(given->strings[i]) == N_ACTIVATIONS)
      good =
          shape_error(node, "activation %zu is \"%.100s\"; expected one of%s", i, given->strings[i], activation_names);
  static const AttributeName parameters[] = {ATTR_activation_alpha, ATTR_activation_beta};
  for (int i = 0; i < 2; i++) {
    const Attribute *list = node_attribute(node, parameters[i]);
    if (list && list->count > (size_t)needed)
      good = shape_error(node, "`%s` has %zu numbers; there are only %d activations", attribute_name(parameters[i]),
                         list->count, needed);
  }
  return good;
}

static bool check_flag(const Node *node, AttributeName name) {
  if (!op_has_attribute(node->op, name)) return true;
  int64_t value = node_int(node, name);
  return value == 0 || value == 1 ||
         shape_error(node, "`%s` is %lld; it must be 0 or 1", attribute_name(name), (long long)value);
}

/* least <= 0 <= most, and so far apart that scales are normal floats. */
static bool check_range(const Node *node, AttributeName name) {
  const Attribute *range = node_attribute(node, name);
  if (!range) return shape_error(node, "precision int8-static needs the attribute `%s`", attribute_name(name));
  if (range->count != 2)
    return shape_error(node, "`%s` has %zu numbers; expected 2, the least and the most", attribute_name(name),
                       range->count);
  double least = range->floats[0], most = range->floats[1], width = most - least;
  return (least <= 0 && most >= 0 && width > 0x1p-100 && width < (double)FLT_MAX) ||
         shape_error(node, "`%s` is %g to %g; expected least <= 0 <= most, more than 2^-100 apart, and finite in f32",
                     attribute_name(name), least, most);
}

/* Other precisions do not read ranges. */
static bool check_ranges(const Node *node) {
  if (!op_has_attribute(node->op, ATTR_precision) || node_word(node, ATTR_precision) != PRODUCTS_int8_static)
    return true;
  bool good = check_range(node, ATTR_input_range);
  return check_range(node, ATTR_hidden_range) && good;
}

static bool check_attributes(const Node *node, const CellKind *cell, int directions) {
  bool good = check_activations(node, cell->activations * directions);
  static const AttributeName flags[] = {ATTR_layout, ATTR_linear_before_reset, ATTR_input_forget};
  for (int i = 0; i < 3; i++) good &= check_flag(node, flags[i]);
  int64_t hidden = node_int(node, ATTR_hidden_size);
  if (hidden < 1 || hidden > INT32_MAX)
    good = shape_error(node, "`hidden_size` is %lld; it must be at least 1", (long long)hidden);
  if (node_has(node, ATTR_clip) && !(node_float(node, ATTR_clip) > 0))
    good = shape_error(node, "`clip` is %g; it must be greater than 0", node_float(node, ATTR_clip));
  return check_ranges(node) && good;
}

typedef struct Extents {
  const Dim *T, *B, *I, *H, *D;
  bool batch_first;
} Extents;

/* R of another hidden size is told as that. */
static bool check_hidden_size(Graph *graph, const Node *node, const CellKind *cell, const Extents *e) {
  const Value *r = node->inputs[INPUT_R];
  if (r->rank != 3 || !dim_is_const(r->shape[2]) || same_dim(r->shape[2], e->H)) return true;
  const Dim *gates = dim_mul(graph->dims, dim_const(graph->dims, cell->gates), r->shape[2]);
  return !same_dim(r->shape[1], gates) ||
         shape_error(node, "`hidden_size` is %s, and R is %s, of the hidden size %s", dim_text(graph, e->H),
                     shape_text(graph, r), dim_text(graph, r->shape[2]));
}

static bool check_operands(Graph *graph, const Node *node, const CellKind *cell, const Extents *e) {
  const Dim *gates = dim_mul(graph->dims, dim_const(graph->dims, cell->gates), e->H);
  const Dim *biases = dim_mul(graph->dims, dim_const(graph->dims, 2), gates);
  const Dim *peepholes = dim_mul(graph->dims, dim_const(graph->dims, 3), e->H);
  const Dim *w[] = {e->D, gates, e->I}, *r[] = {e->D, gates, e->H}, *b[] = {e->D, biases}, *p[] = {e->D, peepholes};
  const Dim *state[] = {e->batch_first ? e->B : e->D, e->batch_first ? e->D : e->B, e->H};
  const char *state_words =
      e->batch_first ? "the state, [batch, directions, hidden_size]" : "the state, [directions, batch, hidden_size]";
  bool good = check_shape(graph, node, INPUT_W, 3, w, "W, [directions, gates*hidden_size, input_size]");
  good &= check_shape(graph, node, INPUT_R, 3, r, "R, [directions, gates*hidden_size, hidden_size]");
  good &= check_shape(graph, node, INPUT_B, 2, b, "the bias, [directions, 2*gates*hidden_size]");
  good &= check_shape(graph, node, INPUT_LENGTHS, 1, &e->B, "the sequence lengths, [batch]");
  good &= check_shape(graph, node, INPUT_H, 3, state, state_words);
  if (cell->states == 1) return good;
  good &= check_shape(graph, node, INPUT_C, 3, state, state_words);
  good &= check_shape(graph, node, INPUT_P, 2, p, "the peepholes, [directions, 3*hidden_size]");
  return good;
}

/* Checks constant lengths that no run can have. All others the module checks: those of an input before each run, what
 * it computes and constants beyond the fewest steps in it. */
static bool check_lengths(Graph *graph, const Node *node, const Dim *T) {
  const Value *lengths = node_input(node, INPUT_LENGTHS);
  IntRange range;
  if (!lengths || !constant_range(lengths, 0, 1, &range)) return true;
  if (range.least < 0) return shape_error(node, "a sequence length is negative");
  return range.most <= dim_upper(T) || shape_error(node, "a sequence length is %lld, but there are only %s steps",
                                                   (long long)range.most, dim_text(graph, T));
}

/* What is differentiated: an activation by its value, and nothing that is bounded by `clip`. */
static bool check_slopes(const Node *node) {
  if (op_is_layer_training(node->op->kind) || op_is_layer_gradient(node->op->kind)) {
    Activation activations[2 * MAX_ACTIVATIONS];
    int n = read_activations(node, activations);
    if (node_has(node, ATTR_clip)) return shape_unsupported(node, "a layer with `clip` has no gradient");
    for (int i = 0; i < n; i++)
      if (!activation_has_slope(&activations[i]))
        return shape_unsupported(node, "activation %d has alpha %g, with which it has no gradient", i,
                                 (double)activations[i].alpha);
  }
  return true;
}

static bool check_layer(Graph *graph, Node *node, Extents *e) {
  const CellKind *cell = layer_cell(node->op->kind);
  int directions = node_word(node, ATTR_direction) == DIRECTION_bidirectional ? 2 : 1;
  if (!check_attributes(node, cell, directions) || !check_slopes(node) || !check_rank(graph, node, 0, 3, 3))
    return false;
  const Dim **x = node->inputs[0]->shape;
  bool batch_first = node_int(node, ATTR_layout) == 1;
  *e = (Extents){.T = x[batch_first], .B = x[!batch_first], .I = x[2], .batch_first = batch_first};
  e->H = dim_const(graph->dims, node_int(node, ATTR_hidden_size));
  e->D = dim_const(graph->dims, directions);
  return check_hidden_size(graph, node, cell, e) && check_operands(graph, node, cell, e) &&
         check_lengths(graph, node, e->T);
}

/* The shapes of Y, a state and S. */
typedef struct Results {
  const Dim *y[4], *state[3], *saved[4];
} Results;

static Results results_of(Graph *graph, const CellKind *cell, const Extents *e) {
  const Dim *n = dim_const(graph->dims, cell_saved(cell));
  Results r = {.y = {e->T, e->D, e->B, e->H},
               .state = {e->D, e->B, e->H},
               .saved = {e->T, e->B, e->D, dim_mul(graph->dims, n, e->H)}};
  if (!e->batch_first) return r;
  const Dim *y[] = {e->B, e->T, e->D, e->H}, *state[] = {e->B, e->D, e->H};
  memcpy(r.y, y, sizeof y);
  memcpy(r.state, state, sizeof state);
  r.saved[0] = e->B, r.saved[1] = e->T;
  return r;
}

bool shape_rnn(Graph *graph, Node *node) {
  Extents e;
  if (!check_layer(graph, node, &e)) return false;
  const CellKind *cell = layer_cell(node->op->kind);
  Results r = results_of(graph, cell, &e);
  set_shape(graph, node, 0, 4, r.y);
  for (int output = 1; output < node->n_outputs && output <= cell->states; output++)
    set_shape(graph, node, output, 3, r.state);
  if (op_is_layer_training(node->op->kind) && cell_saved(cell) && !node_output(node, 1 + cell->states))
    return shape_error(node, "output %d, S, is absent", 1 + cell->states);
  return node->n_outputs <= 1 + cell->states || set_shape(graph, node, 1 + cell->states, 4, r.saved);
}

bool shape_rnn_gradient(Graph *graph, Node *node) {
  Extents e;
  if (!check_layer(graph, node, &e)) return false;
  const CellKind *cell = layer_cell(node->op->kind);
  Results r = results_of(graph, cell, &e);
  bool good = check_shape(graph, node, gradient_input(cell, GRADIENT_Y), 4, r.y, "Y");
  if (cell_saved(cell))
    good &= check_shape(graph, node, gradient_input(cell, GRADIENT_S), 4, r.saved, "S, what its layer saved");
  good &= check_shape(graph, node, gradient_input(cell, GRADIENT_DY), 4, r.y, "the gradient of Y");
  good &= check_shape(graph, node, gradient_input(cell, GRADIENT_DY_H), 3, r.state, "the gradient of Y_h");
  good &= check_shape(graph, node, gradient_input(cell, GRADIENT_DY_C), 3, r.state, "the gradient of Y_c");
  if (!good) return false;
  DimTable *dims = graph->dims;
  const Dim *peepholes[] = {e.D, dim_mul(dims, dim_const(dims, 3), e.H)};
  const Dim *biases[] = {e.D, dim_mul(dims, dim_const(dims, 2 * cell->gates), e.H)};
  set_shape(graph, node, GRADIENT_X, 3, node->inputs[INPUT_X]->shape);
  set_shape(graph, node, GRADIENT_W, 3, node->inputs[INPUT_W]->shape);
  set_shape(graph, node, GRADIENT_R, 3, node->inputs[INPUT_R]->shape);
  set_shape(graph, node, GRADIENT_B, 2, biases);
  set_shape(graph, node, GRADIENT_H, 3, r.state);
  set_shape(graph, node, GRADIENT_C, 3, r.state);
  return set_shape(graph, node, GRADIENT_P, 2, peepholes);
}
