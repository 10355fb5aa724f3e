/* SPDX-License-Identifier: MIT */
/*
 * Elements that a node moves, computes or compares. To move them, the op's reference kernel runs on a tensor of
 * positions: its result is where each element comes from.
 */
#include "shapes/elements.h"

#include <math.h>

#include "reference/reference.h"
#include "shapes/element_arithmetic.h"
#include "shapes/shape.h"

/* Longer tensors are data, not shapes. */
enum { MAX_ELEMENTS = 1024 };

static bool is_small(const Value *value) {
  return value->rank >= 0 && !dtype_is_stored(value->dtype) && !dtype_is_moved(value->dtype) && value_static(value) &&
         value_max_count(value) <= MAX_ELEMENTS;
}

/* As mantissa / 2^k. False if the mantissa has more bits than f32's, and of a negative zero, which no integer is. */
static bool ratio_of_float(DimTable *dims, double value, Ratio *ratio) {
  enum { MAX_SHIFT = 60 };
  int exponent;
  double mantissa = ldexp(frexp(value, &exponent), FLOAT_BITS);
  exponent -= FLOAT_BITS;
  if (!isfinite(value) || mantissa != trunc(mantissa) || (value == 0 && signbit(value))) return false;
  for (; mantissa != 0 && fmod(mantissa, 2) == 0; exponent++) mantissa /= 2;
  if (mantissa == 0) exponent = 0;
  if (exponent < -MAX_SHIFT || exponent > FLOAT_BITS) return false;
  double whole = exponent > 0 ? ldexp(mantissa, exponent) : mantissa;
  *ratio = (Ratio){dim_const(dims, (int64_t)whole), exponent < 0 ? (int64_t)1 << -exponent : 1};
  return true;
}

static Ratio *constant_ratios(Graph *graph, const Value *value) {
  int64_t count = value_count(value);
  Ratio *ratios = ARENA_ARRAY(graph->arena, Ratio, count);
  for (int64_t i = 0; i < count; i++) {
    if (value->dtype == RNNCC_U64 && value_integer(value, i) < 0) return NULL; /* 2^63 or more */
    if (!dtype_is_float(value->dtype))
      ratios[i] = (Ratio){dim_const(graph->dims, value_integer(value, i)), 1};
    else if (!ratio_of_float(graph->dims, value_element(value, i), &ratios[i]))
      return NULL;
  }
  return ratios;
}

Ratio *known_ratios(Graph *graph, const Value *value) {
  if (!is_small(value) || value_may_be_trained(graph, value)) return NULL; /* what it begins with says nothing */
  if (value->data) return constant_ratios(graph, value);
  if (!value->elements) return NULL;
  int64_t count = value_count(value);
  Ratio *ratios = ARENA_ARRAY(graph->arena, Ratio, count);
  for (int64_t i = 0; i < count; i++) ratios[i] = (Ratio){value->elements[i], value->divisors ? value->divisors[i] : 1};
  return ratios;
}

static void set_elements(Graph *graph, Value *value, const Ratio *ratios) {
  int64_t count = value_count(value), *divisors = ARENA_ARRAY(graph->arena, int64_t, count);
  const Dim **elements = ARENA_ARRAY(graph->arena, const Dim *, count);
  bool whole = true;
  for (int64_t i = 0; i < count; i++) {
    elements[i] = ratios[i].numerator;
    divisors[i] = ratios[i].divisor;
    whole &= divisors[i] == 1;
  }
  value->elements = elements;
  value->divisors = whole ? NULL : divisors;
}

/* ---- moving elements ---- */

enum { ALL_INPUTS = -1 };

/* Bit i of `data`: input i's elements are moved; all other inputs must be constants. */
static const int moved_inputs[N_OPS] = {
    [OP_Concat] = ALL_INPUTS, [OP_Expand] = 1,   [OP_Flatten] = 1,   [OP_Gather] = 1,    [OP_GatherElements] = 1,
    [OP_GatherND] = 1,        [OP_Identity] = 1, [OP_Reshape] = 1,   [OP_Slice] = 1,     [OP_Split] = 1,
    [OP_Squeeze] = 1,         [OP_Tile] = 1,     [OP_Transpose] = 1, [OP_Unsqueeze] = 1, [OP_Where] = 6};

static bool outputs_small(const Node *node) {
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] && !is_small(node->outputs[i])) return false;
  return true;
}

/* Appends the moved inputs' elements to `pool`, and replaces the inputs by positions in it. */
static bool number_inputs(Graph *graph, const Node *node, int data, const Tensor **inputs, Ratio *pool) {
  int64_t n = 0;
  for (int i = 0; i < node->n_inputs; i++) {
    const Value *input = node->inputs[i];
    bool moved = data == ALL_INPUTS || data >> i & 1;
    if (!input) continue;
    if (!value_static(input) || (!moved && !input->data)) return false;
    Tensor *tensor = reference_tensor(graph->arena, input, NULL);
    inputs[i] = tensor;
    if (!moved) continue;
    Ratio *ratios = known_ratios(graph, input);
    if (!ratios) return false;
    int64_t count = value_count(input), *positions = ARENA_ARRAY(graph->arena, int64_t, count);
    for (int64_t e = 0; e < count; e++) {
      positions[e] = n;
      pool[n++] = ratios[e];
    }
    tensor->dtype = RNNCC_I64;
    tensor->data = positions;
  }
  return true;
}

static void move_elements(Graph *graph, Node *node, int moved) {
  if (!outputs_small(node)) return;
  const Tensor **inputs = ARENA_ARRAY(graph->arena, const Tensor *, node->n_inputs);
  Tensor **outputs = ARENA_ARRAY(graph->arena, Tensor *, node->n_outputs);
  Ratio *pool = ARENA_ARRAY(graph->arena, Ratio, (size_t)node->n_inputs * MAX_ELEMENTS);
  if (!number_inputs(graph, node, moved, inputs, pool)) return;
  for (int i = 0; i < node->n_outputs; i++) {
    if (!node->outputs[i]) continue;
    outputs[i] = reference_tensor(graph->arena, node->outputs[i], NULL);
    outputs[i]->dtype = RNNCC_I64;
    outputs[i]->data = ARENA_ARRAY(graph->arena, int64_t, value_count(node->outputs[i]));
  }
  if (node->op->reference(node, inputs, outputs)) return;
  for (int i = 0; i < node->n_outputs; i++) {
    if (!node->outputs[i]) continue;
    int64_t count = value_count(node->outputs[i]);
    Ratio *ratios = ARENA_ARRAY(graph->arena, Ratio, count);
    for (int64_t e = 0; e < count; e++) ratios[e] = pool[tensor_get_int(outputs[i], e)];
    set_elements(graph, node->outputs[i], ratios);
  }
}

/* ---- computing elements ---- */

/* The index in `value`, broadcast to `to`, of element `index`. */
static int64_t broadcast_index(const Value *value, const Value *to, int64_t index) {
  int64_t at = 0, stride = 1;
  for (int axis = to->rank - 1; axis >= 0; axis--) {
    int64_t extent = dim_value(to->shape[axis]), position = index % extent;
    int mine = axis - (to->rank - value->rank);
    index /= extent;
    if (mine < 0) continue;
    int64_t own = dim_value(value->shape[mine]);
    if (own > 1) at += position * stride;
    stride *= own;
  }
  return at;
}

/* CastLike takes a type of input 1. */
static bool is_of_one_input(const Node *node) { return node->op->max_inputs == 1 || is_op(node, OP_CastLike); }

/* Element by element, of up to two inputs (more: one after the other). */
static void compute_elements(Graph *graph, Node *node, ElementOperation *operation) {
  Value *output = node->outputs[0];
  int64_t count = value_count(output);
  bool one = is_of_one_input(node);
  Ratio *results = ARENA_ARRAY(graph->arena, Ratio, count), *operands[2] = {0};
  for (int input = 0; input < (one ? 1 : node->n_inputs); input++) {
    Ratio *ratios = node->inputs[input] ? known_ratios(graph, node->inputs[input]) : NULL;
    if (!ratios) return;
    operands[1] = ratios;
    for (int64_t i = 0; i < count; i++) {
      Ratio element = ratios[broadcast_index(node->inputs[input], output, i)];
      bool known = true;
      if (input > 0)
        known = operation(graph->dims, node, &results[i], &element, &results[i]);
      else if (one)
        known = operation(graph->dims, node, &element, NULL, &results[i]);
      else
        results[i] = element;
      if (!known || !ratio_is_held(output, &results[i])) return;
    }
  }
  set_elements(graph, output, results);
}

/* All elements of one input to one. */
static void reduce_elements(Graph *graph, Node *node, ElementOperation *operation) {
  const Ratio *ratios = known_ratios(graph, node->inputs[0]);
  if (!ratios || value_count(node->outputs[0]) != 1 || value_count(node->inputs[0]) < 1) return;
  Ratio total = ratios[0];
  for (int64_t i = 1; i < value_count(node->inputs[0]); i++)
    if (!operation(graph->dims, node, &total, &ratios[i], &total) || !ratio_is_held(node->outputs[0], &total)) return;
  set_elements(graph, node->outputs[0], &total);
}

void infer_elements(Graph *graph, Node *node) {
  Value *output = node->n_outputs ? node->outputs[0] : NULL;
  if (!output || output->data || output->elements || output->dtype == RNNCC_NONE || !is_small(output)) return;
  int moved = moved_inputs[node->op->kind];
  ElementOperation *operation = element_operation(node->op->kind), *reduction = element_reduction(node->op->kind);
  if (moved)
    move_elements(graph, node, moved);
  else if (operation)
    compute_elements(graph, node, operation);
  else if (reduction)
    reduce_elements(graph, node, reduction);
}
