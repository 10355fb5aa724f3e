/* SPDX-License-Identifier: MIT */
/*
 * Nodes that only move or compare elements do the same to the numbers that those stand for. So DequantizeLinear goes
 * behind them, and QuantizeLinear before them, where what is quantised is then the result of a node of dequantised
 * inputs. Where both meet and say the same, both go.
 */
#include <math.h>

#include "ir/op.h"
#include "ir/tensor.h"
#include "passes.h"
#include "passes/quantised.h"
#include "shapes/fold_node.h"
#include "shapes/shape.h"
#include "support/list.h"

/* ---- what they cross ---- */

static bool always(const Node *node) {
  (void)node;
  return true;
}

static bool without_positions(const Node *node) { return !node_output(node, 1); }

/* The nearest pixel, and no other number beyond the edge. */
static bool is_nearest(const Node *node) {
  return node_word(node, ATTR_mode) == RESIZE_nearest && node_int(node, ATTR_antialias) == 0 &&
         node_word(node, ATTR_coordinate_transformation_mode) != COORDINATES_tf_crop_and_resize;
}

static bool fill_is_known(const Node *node) { return !node_input(node, 2) || node->inputs[2]->data; }

/* Which nodes write elements of their first input, and nothing else. */
static bool (*const moves_elements[N_OPS])(const Node *) = {
    [OP_DepthToSpace] = always,   [OP_Expand] = always,
    [OP_Flatten] = always,        [OP_Gather] = always,
    [OP_GatherElements] = always, [OP_GatherND] = always,
    [OP_Identity] = always,       [OP_MaxPool] = without_positions,
    [OP_Pad] = fill_is_known,     [OP_Reshape] = always,
    [OP_Resize] = is_nearest,     [OP_ReverseSequence] = always,
    [OP_Slice] = always,          [OP_SpaceToDepth] = always,
    [OP_Split] = always,          [OP_Squeeze] = always,
    [OP_Tile] = always,           [OP_Transpose] = always,
    [OP_Unsqueeze] = always,
};

static bool moves(const Node *node) {
  return node && moves_elements[node->op->kind] && moves_elements[node->op->kind](node);
}

static Builder builder_at(Graph *graph, const Node *node) { return (Builder){graph, node->name, node->where}; }

/* A new value in place of the output, of the same shape and of the type of the numbers. */
static Value *take_output(Graph *graph, Node *node, int output, DType dtype) {
  Value *old = node->outputs[output];
  Value *taken = graph_value_like(graph, old->name, old->where, old);
  taken->dtype = dtype;
  graph_set_output(node, output, taken);
  return old;
}

/* ---- DequantizeLinear goes behind ---- */

static bool fills(const Node *node) { return is_op(node, OP_Pad) && node_word(node, ATTR_mode) == PAD_constant; }

static float fill_of(const Node *pad) {
  const Value *given = node_input(pad, 2);
  return given ? (float)value_element(given, 0) : (float)node_float(pad, ATTR_value);
}

/* Pads with the zero point. */
static void set_fill(const Builder *builder, Node *pad, DType dtype, int64_t number) {
  Value **inputs = ARENA_ARRAY(builder->graph->arena, Value *, pad->n_inputs < 3 ? 3 : pad->n_inputs);
  for (int i = 0; i < pad->n_inputs; i++) inputs[i] = pad->inputs[i];
  inputs[2] = integer_scalar(builder, dtype, number);
  pad->inputs = inputs;
  if (pad->n_inputs < 3) pad->n_inputs = 3;
}

static int axis_after(const Node *node, int axis) {
  const Attribute *perm = node_attribute(node, ATTR_perm);
  int rank = node->inputs[0]->rank;
  for (int k = 0; perm && k < rank; k++)
    if (normal_axis(perm->ints[k], rank) == axis) return k;
  return rank - 1 - axis;
}

/* Numbers of an axis cross what leaves it whole. */
static bool can_sink(const Node *node, const Quantisation *how) {
  if (!moves(node) || (!has_8_bits(how) && !is_op(node, OP_Transpose))) return false;
  if (fills(node) && (!is_known(how) || fabsf(fill_of(node)) > 0 || isnan(fill_of(node)))) return false;
  return is_whole(how) || is_op(node, OP_Transpose) || is_op(node, OP_Identity);
}

/* True if the node's outputs are constants now. Else it is in the list. */
static bool append_or_fold(Graph *graph, Node *node) {
  if (fold_node(graph, node)) return true;
  graph_append(graph, node);
  return false;
}

static void sink_behind(Graph *graph, Node *node, Value *numbers, Quantisation how) {
  const Builder builder = builder_at(graph, node);
  Value *dequantised[MAX_RANK],
      **old = node->n_outputs <= MAX_RANK ? dequantised : ARENA_ARRAY(graph->arena, Value *, node->n_outputs);
  if (!is_whole(&how) && is_op(node, OP_Transpose)) how.axis = axis_after(node, how.axis);
  if (fills(node)) set_fill(&builder, node, how.dtype, zero_at(&how, 0));
  node->inputs[0] = numbers;
  for (int i = 0; i < node->n_outputs; i++) old[i] = node->outputs[i] ? take_output(graph, node, i, how.dtype) : NULL;
  append_or_fold(graph, node);
  for (int i = 0; i < node->n_outputs; i++)
    if (old[i]) graph_set_output(build_dequantize(&builder, node->outputs[i], &how), 0, old[i]);
}

/* Relu of what is dequantised: no number is below the zero point. */
static void sink_behind_relu(Graph *graph, const Node *relu, Value *numbers, const Quantisation *how) {
  const Builder builder = builder_at(graph, relu);
  int64_t zero = zero_at(how, 0);
  if (zero > dtype_min(how->dtype)) {
    Value *const inputs[] = {numbers, integer_scalar(&builder, how->dtype, zero)};
    numbers = build_op(&builder, OP_Clip, 2, inputs, 1, 0, NULL)->outputs[0];
  }
  graph_set_output(build_dequantize(&builder, numbers, how), 0, relu->outputs[0]);
}

/* Are all parts quantised alike? Their numbers are put in `numbers`. */
static bool parts_alike(const Node *concat, Value **numbers, Quantisation *how) {
  for (int i = 0; i < concat->n_inputs; i++) {
    Quantisation part;
    numbers[i] = dequantised_from(concat->inputs[i], &part);
    if (!numbers[i] || !is_whole(&part) || !has_8_bits(&part) || (i && !same_quantisation(how, &part))) return false;
    *how = part;
  }
  return true;
}

static bool sink_behind_concat(Graph *graph, Node *concat) {
  Value **numbers = ARENA_ARRAY(graph->arena, Value *, concat->n_inputs);
  Quantisation how;
  if (!parts_alike(concat, numbers, &how)) return false;
  for (int i = 1; i < concat->n_inputs; i++) concat->inputs[i] = numbers[i];
  sink_behind(graph, concat, numbers[0], how);
  return true;
}

static void sink(Graph *graph, Node *node) {
  Quantisation how;
  Value *numbers = node->n_inputs ? dequantised_from(node->inputs[0], &how) : NULL;
  if (numbers && can_sink(node, &how))
    sink_behind(graph, node, numbers, how);
  else if (numbers && is_op(node, OP_Relu) && is_whole(&how) && has_8_bits(&how) && is_known(&how))
    sink_behind_relu(graph, node, numbers, &how);
  else if (!is_op(node, OP_Concat) || !sink_behind_concat(graph, node))
    graph_append(graph, node);
}

static void sink_dequantize(Graph *graph) {
  Node **nodes;
  int n_nodes = graph_take_nodes(graph, &nodes);
  for (int n = 0; n < n_nodes; n++) sink(graph, nodes[n]);
  graph_renumber(graph);
}

/* ---- QuantizeLinear goes before ---- */

typedef struct Raise {
  Graph *graph;
  UseList uses;
  int n_values; /* when the uses were counted; later ones have one reader */
  int n, capacity;
  Node **work; /* QuantizeLinear nodes that may go up */
} Raise;

static bool has_one_reader(const Raise *raise, const Value *value) {
  return value->id >= raise->n_values || raise->uses.count[value->id] == 1;
}

static bool bound_is_known(const Node *clip, int input) {
  return !node_input(clip, input) || node_input(clip, input)->data;
}

static bool is_bound(const Node *node) {
  return is_op(node, OP_Relu) || (is_op(node, OP_Clip) && bound_is_known(node, 1) && bound_is_known(node, 2));
}

/* The node that writes the value, if a QuantizeLinear behind can go before it. */
static Node *crossed(const Raise *raise, const Value *value) {
  Node *node = value->producer;
  bool crosses = node && node->n_outputs >= 1 && node->outputs[0] == value && !is_op(node, OP_Split) &&
                 (moves(node) || is_bound(node) || is_op(node, OP_Concat));
  return crosses && value->dtype == RNNCC_F32 && has_one_reader(raise, value) ? node : NULL;
}

static bool reads_dequantised(const Node *node) {
  Quantisation how;
  for (int i = 0; node && i < node->n_inputs; i++)
    if (dequantised_from(node->inputs[i], &how) && has_8_bits(&how)) return true;
  return false;
}

/* Does the value come, through nodes that are crossed, from a node of quantised numbers? Concat: does a part? */
static bool comes_from_numbers(const Raise *raise, const Value *value, int depth) {
  enum { MAX_DEPTH = 8 };
  Quantisation how;
  const Node *node;
  while ((node = crossed(raise, value)) && !is_op(node, OP_Concat)) value = node->inputs[0];
  if (!node) return dequantised_from(value, &how) || reads_dequantised(value->producer);
  for (int i = 0; depth < MAX_DEPTH && i < node->n_inputs; i++)
    if (comes_from_numbers(raise, node->inputs[i], depth + 1)) return true;
  return false;
}

static void discard(Graph *graph, const Node *node) { graph->nodes[node->id] = NULL; }

static Value *quantised_before(Raise *raise, const Node *node, Value *value, const Quantisation *how) {
  const Builder builder = builder_at(raise->graph, node);
  Node *quantize = build_quantize(&builder, value, how);
  *LIST_ADD(raise->graph->arena, raise->work, raise->n, raise->capacity) = quantize;
  return quantize->outputs[0];
}

static void raise_before_move(Raise *raise, Node *node, const Node *quantize, const Quantisation *how) {
  const Builder builder = builder_at(raise->graph, node);
  int data = is_op(node, OP_Concat) ? node->n_inputs : 1;
  if (fills(node)) set_fill(&builder, node, how->dtype, quantised_number(how, 0, fill_of(node)));
  for (int i = 0; i < data; i++) node->inputs[i] = quantised_before(raise, quantize, node->inputs[i], how);
  graph_set_output(node, 0, quantize->outputs[0]);
}

/* The number of a bound; `otherwise` without one. */
static int64_t bound_of(const Node *node, int input, const Quantisation *how, int64_t otherwise) {
  if (is_op(node, OP_Relu)) return input == 1 ? zero_at(how, 0) : otherwise;
  const Value *bound = node_input(node, input);
  return bound ? quantised_number(how, 0, (float)value_element(bound, 0)) : otherwise;
}

/* Rounding keeps the order: what is bounded and quantised is quantised and bounded. */
static void raise_before_bound(Raise *raise, const Node *node, const Node *quantize, const Quantisation *how) {
  const Builder builder = builder_at(raise->graph, node);
  int64_t least = dtype_min(how->dtype), most = dtype_max(how->dtype);
  int64_t low = bound_of(node, 1, how, least), high = bound_of(node, 2, how, most);
  Value *numbers = quantised_before(raise, quantize, node->inputs[0], how);
  Node *last = numbers->producer;
  if (low > least || high < most) {
    Value *const inputs[] = {numbers, integer_scalar(&builder, how->dtype, low),
                             integer_scalar(&builder, how->dtype, high)};
    last = build_op(&builder, OP_Clip, 3, inputs, 1, 0, NULL);
  }
  graph_set_output(last, 0, quantize->outputs[0]);
  discard(raise->graph, node);
}

static void raise_one(Raise *raise, const Node *quantize) {
  Quantisation how;
  Node *node = crossed(raise, quantize->inputs[0]);
  if (!node || !read_quantize(quantize, &how) || !is_whole(&how) || !has_8_bits(&how) || !is_known(&how)) return;
  if (!comes_from_numbers(raise, quantize->inputs[0], 0)) return;
  if (is_bound(node))
    raise_before_bound(raise, node, quantize, &how);
  else
    raise_before_move(raise, node, quantize, &how);
  discard(raise->graph, quantize);
}

static void raise_quantize(Graph *graph) {
  Raise raise = {.graph = graph, .uses = graph_uses(graph), .n_values = graph->n_values};
  for (int n = 0; n < graph->n_nodes; n++)
    if (is_op(graph->nodes[n], OP_QuantizeLinear))
      *LIST_ADD(graph->arena, raise.work, raise.n, raise.capacity) = graph->nodes[n];
  for (int i = 0; i < raise.n; i++) raise_one(&raise, raise.work[i]);
  graph_close_gaps(graph);
  sort_nodes(graph);
  graph_renumber(graph);
}

/* ---- where both meet ---- */

/* The numbers that a QuantizeLinear gets back; NULL: others. */
static Value *same_numbers(const Node *node) {
  Quantisation to, from;
  if (!read_quantize(node, &to)) return NULL;
  Value *numbers = dequantised_from(node->inputs[0], &from);
  return numbers && has_8_bits(&to) && same_quantisation(&from, &to) ? numbers : NULL;
}

static void remove_pairs(Graph *graph) {
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n];
    Value *numbers = same_numbers(node);
    if (numbers) {
      node->op = op_info(OP_Identity);
      node->inputs[0] = numbers;
      node->n_inputs = 1;
      node->n_attributes = 0;
    }
  }
  drop_identities(graph);
  graph_remove_dead(graph);
}

/* needs: legalize_types, dense ids. keeps: types and shapes, and what is computed, to the bit. breaks: nothing.
 * Afterwards no pair of QuantizeLinear and DequantizeLinear of equal numbers stands on both sides of nodes that only
 * move or compare elements. */
void move_quantised(Graph *graph) {
  if (!has_pairs(graph)) return;
  sink_dequantize(graph);
  raise_quantize(graph);
  remove_pairs(graph);
}
