/* SPDX-License-Identifier: MIT */
/*
 * Nodes of element types that no kernel computes with get Casts. f16 and bf16 are computed in f32, and stay f32 between
 * such nodes: an f16 network is an f32 network except for its inputs, outputs and weights, so later passes need to know
 * f32 only.
 */
#include "ir/op.h"
#include "ir/tensor.h"
#include "passes.h"
#include "shapes/build.h"
#include "shapes/shape.h"

typedef struct Fit {
  Graph *graph;
  int n_values;   /* before the pass */
  Value **as_f32; /* by id of an f16 value: the same in f32; NULL: none yet */
} Fit;

static Builder builder_at(const Fit *fit, const Node *node) { return (Builder){fit->graph, node->name, node->where}; }

static Value *cast_to(const Builder *builder, Value *value, DType to) {
  const Attribute attribute = attribute_type(ATTR_to, to);
  return build_op(builder, OP_Cast, 1, &value, 1, 1, &attribute)->outputs[0];
}

static Value *constant_in_f32(Graph *graph, const Value *value) {
  int64_t shape[MAX_RANK], count = value_count(value);
  for (int axis = 0; axis < value->rank; axis++) shape[axis] = dim_value(value->shape[axis]);
  float *data = ARENA_ARRAY(graph->arena, float, count);
  for (int64_t i = 0; i < count; i++) data[i] = (float)value_element(value, i);
  return graph_constant(graph, value->name, RNNCC_F32, value->rank, shape, data);
}

static Value *in_f32(const Fit *fit, const Node *node, Value *value) {
  const Builder builder = builder_at(fit, node);
  bool known = value->id < fit->n_values;
  if (known && fit->as_f32[value->id]) return fit->as_f32[value->id];
  Value *wide = value->data ? constant_in_f32(fit->graph, value) : cast_to(&builder, value, RNNCC_F32);
  if (known) fit->as_f32[value->id] = wide;
  return wide;
}

static bool is_stored(const Value *value) { return value && dtype_is_stored(value->dtype); }

/* Does a scatter reduce elements, not only move them? */
static bool combines(const Node *node) {
  return op_has_attribute(node->op, ATTR_reduction) && node_word(node, ATTR_reduction) != SCATTER_none;
}

static bool interpolates(const Node *node) {
  return is_op(node, OP_Resize) && node_word(node, ATTR_mode) != RESIZE_nearest;
}

/* It has no number of a draw. */
static bool is_idle_dropout(const Node *node) {
  return is_op(node, OP_Dropout) && node->n_inputs <= node->op->max_inputs;
}

static bool at_hand_in_f32(const Fit *fit, const Value *value) {
  return value->data || (value->id < fit->n_values && fit->as_f32[value->id]);
}

/* An op that only moves elements takes f16, unless its input is f32 already: that would have to be rounded. Cast rounds
 * anyway, and BitCast is about the bits. */
static bool computes_in_f32(const Fit *fit, const Node *node) {
  if (node->control) return false; /* each node of its bodies does by itself */
  bool any = false, at_hand = !is_op(node, OP_Cast) && !is_op(node, OP_BitCast);
  for (int i = 0; i < node->n_inputs; i++) {
    if (!is_stored(node->inputs[i])) continue;
    if ((!op_lists_type(node, i) && !is_idle_dropout(node)) || combines(node) || interpolates(node)) return true;
    any |= !node->inputs[i]->data;
    at_hand &= at_hand_in_f32(fit, node->inputs[i]);
  }
  return any && at_hand;
}

/* Kernels compute statistics in f32. Were they to be of bf16, they are rounded, also where no input is. */
static bool rounds_statistics(const Node *node) {
  bool any = false;
  for (int i = 1; i < node->n_outputs; i++) any |= is_stored(node->outputs[i]);
  return any && op_has_attribute(node->op, ATTR_stash_type);
}

/* Rounds results to f16 for the readers that need f16. */
static void round_results(const Fit *fit, Node *node, Value *const *narrow) {
  const Builder builder = builder_at(fit, node);
  for (int i = 0; i < node->n_outputs; i++) {
    if (!narrow[i]) continue;
    if (narrow[i]->id < fit->n_values) fit->as_f32[narrow[i]->id] = node->outputs[i];
    Value *rounded = cast_to(&builder, node->outputs[i], narrow[i]->dtype);
    graph_set_output(rounded->producer, 0, narrow[i]);
  }
}

/* What follows knows the shapes that the outputs have: a length that depends on the data stays the same dim. */
static void infer_in_f32(const Fit *fit, Node *node, Value *const *narrow) {
  Graph *graph = fit->graph;
  const Dim ***shapes = ARENA_ARRAY(graph->arena, const Dim **, node->n_outputs);
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i]) shapes[i] = narrow[i] ? narrow[i]->shape : node->outputs[i]->shape;
  if (!infer_node(graph, node)) bug("%s does not fit in f32", node->op->name);
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i]) node->outputs[i]->shape = shapes[i];
}

static void compute_in_f32(const Fit *fit, Node *node) {
  Value **narrow = ARENA_ARRAY(fit->graph->arena, Value *, node->n_outputs);
  for (int i = 0; i < node->n_inputs; i++)
    if (is_stored(node->inputs[i])) node->inputs[i] = in_f32(fit, node, node->inputs[i]);
  for (int i = 0; i < node->n_outputs; i++) {
    if (!is_stored(node->outputs[i])) continue;
    narrow[i] = node->outputs[i];
    graph_set_output(node, i, graph_value(fit->graph, narrow[i]->name, narrow[i]->where));
  }
  graph_append(fit->graph, node);
  infer_in_f32(fit, node, narrow);
  round_results(fit, node, narrow);
}

/* ONNX lets Pow's exponent have another type. Kernels take the base's type, or any type of integers. */
static void fit_exponent(const Fit *fit, Node *node) {
  const Builder builder = builder_at(fit, node);
  DType base = node->inputs[0]->dtype, exponent = node->inputs[1]->dtype;
  if (base != exponent && dtype_is_float(base)) node->inputs[1] = cast_to(&builder, node->inputs[1], base);
  if (!dtype_is_float(base) && dtype_is_float(exponent) && exponent != RNNCC_F64)
    node->inputs[1] = cast_to(&builder, node->inputs[1], RNNCC_F64);
}

static bool reduces_bools(const Node *node) {
  return op_is_reduction(node->op) && node->inputs[0]->dtype == RNNCC_BOOL;
}

/* The greatest and least of bools, by way of bytes: of none the least is 255, which is true. */
static void reduce_bytes(const Fit *fit, Node *node) {
  const Builder builder = builder_at(fit, node);
  Value *result = node->outputs[0];
  node->inputs[0] = cast_to(&builder, node->inputs[0], RNNCC_U8);
  graph_set_output(node, 0, graph_value(fit->graph, result->name, result->where));
  graph_append(fit->graph, node);
  if (!infer_node(fit->graph, node)) bug("%s does not fit in u8", node->op->name);
  graph_set_output(cast_to(&builder, node->outputs[0], RNNCC_BOOL)->producer, 0, result);
}

/* needs: infer_shapes. keeps: the graph's inputs and outputs, states, names. Afterwards a kernel exists for the types
 * of every node. */
void legalize_types(Graph *graph) {
  const Fit fit = {graph, graph->n_values, ARENA_ARRAY(graph->arena, Value *, graph->n_values)};
  Node **nodes;
  int n_nodes = graph_take_nodes(graph, &nodes);
  for (int n = 0; n < n_nodes; n++) {
    bool rounds = rounds_statistics(nodes[n]);
    if (rounds) set_attribute(graph, nodes[n], attribute_int(ATTR_stash_type, 1));
    if (is_op(nodes[n], OP_Pow)) fit_exponent(&fit, nodes[n]);
    if (reduces_bools(nodes[n]))
      reduce_bytes(&fit, nodes[n]);
    else if (rounds || computes_in_f32(&fit, nodes[n]))
      compute_in_f32(&fit, nodes[n]);
    else
      graph_append(graph, nodes[n]);
  }
  graph_renumber(graph);
}
