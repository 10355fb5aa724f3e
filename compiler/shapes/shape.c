/* SPDX-License-Identifier: MIT */
#include "shapes/shape.h"

#include <stdarg.h>
#include <stdio.h>

#include "support/text.h"

static bool tell(const Node *node, ExitCode code, const char *format, va_list arguments) {
  char message[1024];
  vsnprintf(message, sizeof message, format, arguments);
  error_at(node->where, code, "%s: %s", node->op->name, message);
  return false;
}

bool shape_error(const Node *node, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  tell(node, EXIT_INVALID, format, arguments);
  va_end(arguments);
  return false;
}

bool shape_unsupported(const Node *node, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  tell(node, EXIT_UNSUPPORTED, format, arguments);
  va_end(arguments);
  return false;
}

const char *dim_text(Graph *graph, const Dim *dim) {
  Text text = text_new(graph->arena);
  dim_print(&text, dim);
  return text.data;
}

const char *shape_text(Graph *graph, const Value *value) {
  Text text = text_new(graph->arena);
  text_add(&text, "`%.200s` %s", value->name, dtype_name(value->dtype));
  dims_print(&text, value->rank, value->shape);
  return text.data;
}

/* The first axis of the values that is this dim. */
static bool add_place(Text *text, Value *const *values, int n, const DimSymbol *symbol) {
  for (int i = 0; i < n; i++)
    for (int axis = 0; axis < values[i]->rank; axis++) {
      if (dim_as_symbol(values[i]->shape[axis]) != symbol) continue;
      text_add(text, "%s%s: axis %d of `%.200s`", text->length ? "; " : " (", symbol->name, axis, values[i]->name);
      return true;
    }
  return false;
}

static bool one_mentions(int n, const Dim *const *dims, const DimSymbol *symbol) {
  for (int i = 0; i < n; i++)
    if (dim_mentions(dims[i], symbol)) return true;
  return false;
}

const char *dims_places(Graph *graph, int n, const Dim *const *dims) {
  const Graph *model = graph;
  while (model->outer) model = model->outer;
  Text text = text_new(graph->arena);
  for (int i = 0; i < dim_symbol_count(graph->dims); i++) {
    const DimSymbol *symbol = dim_symbol_at(graph->dims, i);
    if (!one_mentions(n, dims, symbol) || add_place(&text, model->inputs, model->n_inputs, symbol)) continue;
    for (int k = 0; k < model->n_states; k++)
      if (add_place(&text, &model->states[k].input, 1, symbol)) break;
  }
  text_add(&text, text.length ? ")" : "");
  return text.data;
}

enum { MOST_TRIED = 4096 }; /* values of a large range */

/* Are the extents equal at all multiples of n in the symbol's range? */
static bool equal_at_multiples(const Dim *a, const Dim *b, const DimSymbol *symbol, int64_t n, int64_t *values) {
  int64_t tried = 0;
  for (int64_t value = (symbol->min + n - 1) / n * n; value <= symbol->max && tried < MOST_TRIED; value += n) {
    values[symbol->index] = value;
    if (dim_eval(a, values) != dim_eval(b, values)) return false;
    tried++;
  }
  return tried > 0;
}

typedef struct EqualIn {
  int64_t least, most; /* values of a named dim */
} EqualIn;

/* The first values in the symbol's range, one after another, at which the extents are equal. False if there are none.
 */
static bool equal_in_range(const Dim *a, const Dim *b, const DimSymbol *symbol, int64_t *values, EqualIn *range) {
  int64_t tried = 0;
  bool found = false;
  for (int64_t value = symbol->min; value <= symbol->max && tried < MOST_TRIED; value += symbol->multiple, tried++) {
    values[symbol->index] = value;
    bool equal = dim_eval(a, values) == dim_eval(b, values);
    if (!equal && found) break;
    if (!equal) continue;
    if (!found) range->least = value;
    range->most = value;
    found = true;
  }
  return found;
}

const DimSymbol *only_symbol(Graph *graph, const Dim *a, const Dim *b) {
  const DimSymbol *only = NULL;
  for (int i = 0; i < dim_symbol_count(graph->dims); i++) {
    const DimSymbol *symbol = dim_symbol_at(graph->dims, i);
    if (!dim_mentions(a, symbol) && !dim_mentions(b, symbol)) continue;
    if (only) return NULL;
    only = symbol;
  }
  return only;
}

static const char *equal_at(Graph *graph, const Dim *a, const Dim *b, const DimSymbol *symbol, EqualIn range) {
  const char *places = dims_places(graph, 2, (const Dim *[]){a, b});
  long long least = range.least, most = range.most;
  if (least == most)
    return arena_format(graph->arena,
                        "; they are equal where %.200s is %lld: bound it so, as --dim '%.200s=%lld' does%s",
                        symbol->name, least, symbol->name, least, places);
  return arena_format(graph->arena,
                      "; they are equal where %.200s is %lld to %lld: bound it so, as --dim '%.200s=%lld..%lld' does%s",
                      symbol->name, least, most, symbol->name, least, most, places);
}

const char *equal_where(Graph *graph, const Dim *a, const Dim *b) {
  enum { MOST = 1024 };
  const DimSymbol *symbol = only_symbol(graph, a, b);
  if (!symbol || symbol->kind != DIM_GIVEN) return "";
  int64_t step = symbol->multiple, n = 2 * step;
  int64_t *values = ARENA_ARRAY(graph->arena, int64_t, dim_symbol_count(graph->dims) + 1);
  EqualIn range;
  while (n <= MOST && !equal_at_multiples(a, b, symbol, n, values)) n += step;
  if (n > MOST) return equal_in_range(a, b, symbol, values, &range) ? equal_at(graph, a, b, symbol, range) : "";
  int64_t min = (symbol->min + n - 1) / n * n, max = symbol->max / n * n;
  return arena_format(graph->arena,
                      "; %s and %s are equal where %.200s is a multiple of %lld: bound it so, as --dim "
                      "'%.200s=%lld..%lld:%lld' does, or "
                      "pad the model's input and crop its output%s",
                      dim_text(graph, a), dim_text(graph, b), symbol->name, (long long)n, symbol->name, (long long)min,
                      (long long)max, (long long)n, dims_places(graph, 2, (const Dim *[]){a, b}));
}

/* The first graph input, of few numbers, that the value is computed from; NULL if none is near. */
static const Value *frozen_source(const Value *value) {
  enum { MAX_LOOKED_AT = 64, FEW = 16 };
  const Value *queue[MAX_LOOKED_AT] = {value};
  for (int at = 0, n = 1; at < n; at++) {
    const Node *producer = queue[at]->producer;
    if (queue[at]->is_input && value_max_count(queue[at]) <= FEW) return queue[at];
    for (int i = 0; producer && i < producer->n_inputs && n < MAX_LOOKED_AT; i++)
      if (producer->inputs[i] && producer->inputs[i]->rank >= 0) queue[n++] = producer->inputs[i];
  }
  return NULL;
}

const char *freeze_hint(Graph *graph, const Value *value) {
  if (graph->outer) return ""; /* a body's inputs are not the model's */
  const Value *source = frozen_source(value);
  if (value->is_input) return " (--freeze makes the input one)";
  if (!source) return "";
  return arena_format(graph->arena, " (--freeze makes the input `%.200s`, from which it is computed, one)",
                      source->name);
}

bool check_rank(Graph *graph, const Node *node, int input, int least, int most) {
  const Value *value = node->inputs[input];
  if (value->rank >= least && value->rank <= most) return true;
  if (least == most)
    return shape_error(node, "input %d must have rank %d, found %s", input, least, shape_text(graph, value));
  if (most >= MAX_RANK)
    return shape_error(node, "input %d must have at least rank %d, found %s", input, least, shape_text(graph, value));
  return shape_error(node, "input %d must have rank %d to %d, found %s", input, least, most, shape_text(graph, value));
}

bool check_made_rank(const Node *node, const char *what, int rank) {
  return rank <= MAX_RANK ||
         shape_unsupported(node, "%s would have rank %d; at most %d is supported", what, rank, MAX_RANK);
}

bool check_shape(Graph *graph, const Node *node, int input, int rank, const Dim *const *wanted, const char *why) {
  const Value *value = node_input(node, input);
  if (!value || has_shape(value, rank, wanted)) return true;
  Text text = text_new(graph->arena);
  dims_print(&text, rank, wanted);
  int axis = 0;
  while (value->rank == rank && same_dim(value->shape[axis], wanted[axis])) axis++;
  return shape_error(node, "input %d must be %s = %s, found %s%s", input, why, text.data, shape_text(graph, value),
                     value->rank == rank ? equal_where(graph, wanted[axis], value->shape[axis]) : "");
}

bool check_scalar(Graph *graph, const Node *node, int input) {
  const Value *value = node_input(node, input);
  if (!value || value->rank < 0 || (value_static(value) && value_count(value) == 1)) return true;
  return shape_error(node, "input %d must be a scalar, found %s", input, shape_text(graph, value));
}

int check_axis(const Node *node, const char *what, int64_t axis, int rank) {
  int normal = normal_axis(axis, rank);
  if (normal >= 0) return normal;
  if (rank == 0)
    shape_error(node, "%s is %lld, but a scalar has no axes", what, (long long)axis);
  else
    shape_error(node, "%s is %lld; it must be in %d..%d", what, (long long)axis, -rank, rank - 1);
  return -1;
}

bool same_dim(const Dim *a, const Dim *b) {
  return a == b || (dim_lower(a) == dim_upper(a) && dim_lower(b) == dim_upper(b) && dim_lower(a) == dim_lower(b));
}

bool set_shape(Graph *graph, Node *node, int output, int rank, const Dim *const *shape) {
  Value *value = node_output(node, output);
  if (!value) return true;
  value->rank = rank;
  value->shape = arena_copy(graph->arena, shape, (size_t)rank * sizeof *shape);
  return true;
}

bool shape_same(Graph *graph, Node *node) {
  return set_shape(graph, node, 0, node->inputs[0]->rank, node->inputs[0]->shape);
}

bool shape_as(Graph *graph, const Node *node, OpKind op, int n_operands, Value **operands) {
  Node plain = *node;
  plain.op = op_info(op);
  plain.inputs = operands;
  plain.n_inputs = n_operands;
  plain.n_outputs = 1;
  return plain.op->shape(graph, &plain);
}

const Dim *broadcast_dim(const Dim *a, const Dim *b) {
  if (same_dim(a, b) || dim_equals(b, 1)) return a;
  return dim_equals(a, 1) ? b : NULL;
}

static bool broadcast_two(Graph *graph, Node *node, const Value *value, int *rank, const Dim **shape) {
  int wider = value->rank > *rank ? value->rank : *rank;
  const Dim *one = dim_const(graph->dims, 1), *result[MAX_RANK];
  for (int axis = 0; axis < wider; axis++) {
    int mine = axis - (wider - *rank), other = axis - (wider - value->rank);
    const Dim *a = mine < 0 ? one : shape[mine], *b = other < 0 ? one : value->shape[other];
    result[axis] = broadcast_dim(a, b);
    if (!result[axis]) {
      Text text = text_new(graph->arena);
      dims_print(&text, *rank, shape);
      return shape_error(node, "%s does not broadcast with %s: %s and %s are neither equal nor 1%s",
                         shape_text(graph, value), text.data, dim_text(graph, b), dim_text(graph, a),
                         equal_where(graph, b, a));
    }
  }
  for (int axis = 0; axis < wider; axis++) shape[axis] = result[axis];
  *rank = wider;
  return true;
}

bool has_shape(const Value *value, int rank, const Dim *const *shape) {
  bool same = value->rank == rank;
  for (int axis = 0; same && axis < rank; axis++) same = same_dim(value->shape[axis], shape[axis]);
  return same;
}

bool shapes_agree(const Value *a, const Value *b) { return has_shape(a, b->rank, b->shape); }

bool broadcast_inputs(Graph *graph, Node *node) {
  int rank = 0;
  const Dim *shape[MAX_RANK];
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] && !broadcast_two(graph, node, node->inputs[i], &rank, shape)) return false;
  return set_shape(graph, node, 0, rank, shape);
}
