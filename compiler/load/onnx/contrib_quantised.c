/* SPDX-License-Identifier: MIT */
/* Quantised recurrent layers of com.microsoft. */
#include "load/onnx/contrib.h"

#include <string.h>

#include "ir/op.h"
#include "reference/reference.h"
#include "shapes/quantised.h"
#include "shapes/shape.h"

enum { X, W, R, W_SCALE = 8, R_SCALE = 10, N_OF_LSTM = 8, N_INPUTS = 12 };

/* ---- what a file may say ---- */

enum { T = 1, B, L }; /* floats, bytes, lengths */

static const OpInfo dynamic_lstm = {
    .kind = OP_LSTM,
    .name = "DynamicQuantizeLSTM",
    .types = {{[T] = 1 << RNNCC_F32, [B] = 1 << RNNCC_I8 | 1 << RNNCC_U8, [L] = 1 << RNNCC_I32 | 1 << RNNCC_I64},
              {T, B, B, T, L, T, T, T, T, B, T, B},
              {0}},
};

/* One number for each direction, or one for each of its columns. */
static bool check_each(Graph *graph, const Node *node, int input, const char *what, const Dim *const wanted[2]) {
  const Value *numbers = node_input(node, input);
  bool of_columns = numbers && numbers->rank == 2;
  const char *shape =
      of_columns ? " of columns, [directions, 4*hidden_size]" : ", [directions] or [directions, 4*hidden_size]";
  return check_shape(graph, node, input, of_columns ? 2 : 1, wanted,
                     arena_format(graph->arena, "the %s%s", what, shape));
}

/* There may be a zero point for each direction and a scale for each column, or the other way round. */
static bool check_parameters(Graph *graph, const Node *node, int scale, const Dim *directions, const Dim *columns) {
  const Dim *const wanted[] = {directions, columns};
  return check_scale_numbers(node, scale) && check_each(graph, node, scale, "scales", wanted) &&
         check_each(graph, node, scale + 1, "zero points", wanted);
}

static bool is_bidirectional(const Draft *draft) {
  const Attribute *direction = draft_attribute(draft, "direction");
  return direction && direction->kind == ATTRIBUTE_STRING && strcmp(direction->s, "bidirectional") == 0;
}

/* The rest is for the LSTM that it becomes, as are inputs of which no type is known yet: a body's. */
static bool check_dynamic_lstm(OnnxReader *reader, const Draft *draft) {
  Value *known[N_INPUTS] = {NULL};
  for (int i = 0; i < draft->n_inputs; i++)
    if (draft->inputs[i] && draft_rank(reader, draft, draft->inputs[i]) >= 0) known[i] = draft->inputs[i];
  const Node node = {.op = &dynamic_lstm, .inputs = known, .n_inputs = draft->n_inputs, .where = draft->where};
  if (!op_check_types(&node)) return false;
  Graph *graph = draft->scope->graph;
  const Value *x = node_input(&node, X), *w = known[W], *r = known[R];
  if (!w || !r || (x && x->rank != 3)) return true;
  int64_t hidden =
      draft_int(draft, "hidden_size", r->rank == 3 && dim_is_const(r->shape[1]) ? dim_value(r->shape[1]) : 0);
  if (hidden < 1 || hidden > INT32_MAX) return true;
  if (!x && !check_rank(graph, &node, W, 3, 3)) return false;
  const Dim *directions = dim_const(graph->dims, is_bidirectional(draft) ? 2 : 1);
  const Dim *units = dim_const(graph->dims, hidden), *columns = dim_const(graph->dims, 4 * hidden);
  bool x_tells = x && (w->rank != 3 || dim_is_const(x->shape[2]));
  const Dim *inputs = x_tells ? x->shape[2] : w->shape[1];
  return check_shape(graph, &node, W, 3, (const Dim *[]){directions, inputs, columns},
                     "W, [directions, input_size, 4*hidden_size]") &&
         check_shape(graph, &node, R, 3, (const Dim *[]){directions, units, columns},
                     "R, [directions, hidden_size, 4*hidden_size]") &&
         check_parameters(graph, &node, W_SCALE, directions, columns) &&
         check_parameters(graph, &node, R_SCALE, directions, columns);
}

/* LSTM has some that DynamicQuantizeLSTM has not. */
static bool refuse_others(OnnxReader *reader, const Draft *draft) {
  if (draft_attribute(draft, "layout")) return contrib_refuse(reader, draft, "`layout`");
  if (draft_attribute(draft, "precision")) return contrib_refuse(reader, draft, "`precision`");
  return draft->n_inputs <= N_INPUTS || contrib_refuse(reader, draft, "input 12");
}

/* ---- weights in floats ---- */

/* One number a direction, or one for each column, so that it broadcasts to weights [D, K, 4 * H]. */
static Value *along_weights(OnnxReader *reader, const Draft *draft, Value *numbers) {
  static const int64_t whole[] = {1, 2}, columns[] = {1};
  int rank = draft_rank(reader, draft, numbers);
  const int64_t *axes = rank == 1 ? whole : columns;
  return draft_node(reader, draft, "Unsqueeze", 2,
                    (Value *[]){numbers, draft_ints(reader, draft, rank == 1 ? 2 : 1, axes)});
}

/* Weights [D, K, 4 * H] with their scale and zero point, as ONNX's in f32, [D, 4 * H, K]. */
static Value *in_floats(OnnxReader *reader, const Draft *draft, Value *weights, int scale) {
  static int64_t perm[] = {0, 2, 1};
  const Attribute turned = {.name = "perm", .kind = ATTRIBUTE_INTS, .count = 3, .ints = perm};
  Value *numbers = draft_cast(reader, draft, weights, RNNCC_F32), *zero = draft_input(draft, scale + 1);
  if (zero) {
    zero = draft_cast(reader, draft, along_weights(reader, draft, zero), RNNCC_F32);
    numbers = draft_node(reader, draft, "Sub", 2, (Value *[]){numbers, zero});
  }
  Value *steps = along_weights(reader, draft, draft->inputs[scale]);
  Value *product = draft_node(reader, draft, "Mul", 2, (Value *[]){numbers, steps});
  return draft_node_with(reader, draft, "Transpose", 1, &product, 1, &turned, NULL);
}

/* How many parameters there are for each direction: one, or one a column; 0: of another shape. */
static int64_t parameters_each(const Value *numbers, int64_t directions, int64_t columns) {
  int64_t count = value_count(numbers);
  return count == directions ? 1 : count == directions * columns ? columns : 0;
}

/* The same of constants, at once: later, simplify would not compute what takes four times the bytes. NULL: they are not
 * constant, or were not checked: then the LSTM is refused. */
static Value *in_constant_floats(OnnxReader *reader, const Draft *draft, const Value *weights, int scale) {
  const Value *steps = draft->inputs[scale], *zero = draft_input(draft, scale + 1);
  bool constant = value_is_constant(weights) && value_is_constant(steps) && (!zero || value_is_constant(zero));
  if (!constant || weights->rank != 3 || steps->dtype != RNNCC_F32) return NULL;
  int64_t directions = dim_value(weights->shape[0]), depth = dim_value(weights->shape[1]);
  int64_t columns = dim_value(weights->shape[2]), shape[] = {directions, columns, depth};
  int64_t each = parameters_each(steps, directions, columns);
  int64_t each_zero = zero ? parameters_each(zero, directions, columns) : 1;
  if (!each || !each_zero || (zero && zero->dtype != weights->dtype)) return NULL;
  const Tensor *from = reference_tensor(reader->arena, weights, NULL),
               *by = reference_tensor(reader->arena, steps, NULL);
  const Tensor *less = zero ? reference_tensor(reader->arena, zero, NULL) : NULL;
  float *to = ARENA_ARRAY(reader->arena, float, directions *columns *depth);
  for (int64_t d = 0, at = 0; d < directions; d++) {
    for (int64_t c = 0; c < columns; c++) {
      double middle = less ? tensor_get(less, d * each_zero + c % each_zero) : 0;
      double step = tensor_get(by, d * each + c % each);
      for (int64_t k = 0; k < depth; k++)
        to[at++] = (float)((tensor_get(from, (d * depth + k) * columns + c) - middle) * step);
    }
  }
  return graph_constant(draft->scope->graph, draft->name, RNNCC_F32, 3, shape, to);
}

/* Constant weights become floats, of which the layer's kernels find the integers again (kernels/recurrent/int8.c).
 * Where ONNX Runtime has one range of X and of the hidden state for the whole batch, and of X for all steps, each
 * sample and step has its own. Layers of other weights are of f32. */
bool adapt_dynamic_lstm(OnnxReader *reader, Draft *draft) {
  if (!refuse_others(reader, draft)) return false;
  for (int i = W; i <= R; i++) {
    int at = i == W ? W_SCALE : R_SCALE;
    const Value *scale = draft_input(draft, at), *zero = draft_input(draft, at + 1);
    if (!draft_input(draft, i) || !scale || draft_rank(reader, draft, scale) < 0)
      return contrib_refuse(reader, draft, "weights without a scale of each direction, or of each column,");
    if (zero && draft_rank(reader, draft, zero) < 0)
      return contrib_refuse(reader, draft, "zero points of unknown rank");
  }
  if (!check_dynamic_lstm(reader, draft)) return false;
  Value *w = in_constant_floats(reader, draft, draft->inputs[W], W_SCALE);
  Value *r = in_constant_floats(reader, draft, draft->inputs[R], R_SCALE);
  if (w && r) draft_set_string(reader, draft, "precision", "int8-dynamic");
  draft_set_input(reader, draft, W, w ? w : in_floats(reader, draft, draft->inputs[W], W_SCALE));
  draft_set_input(reader, draft, R, r ? r : in_floats(reader, draft, draft->inputs[R], R_SCALE));
  draft->n_inputs = N_OF_LSTM;
  return adapt_recurrent(reader, draft);
}
