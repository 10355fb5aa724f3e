/* SPDX-License-Identifier: MIT */
#include "shapes/fold_node.h"

#include "ir/bodies.h"
#include "reference/reference.h"
#include "support/numbers.h"

/* A fold must not make the module much larger: a result above this must not be larger than its inputs; that of a
 * product, which takes longer to compute than to read, not larger than twice of them. */
enum { SMALL_BYTES = 1 << 16, PRODUCT_GROWS = 2 };

/* Nor must all folds: where each concatenates the one before with itself, the last has 2^n times the elements. Networks
 * rearrange a weight in some steps, each of which makes a constant. */
enum { FOLDS_OF_EACH = 16, ROOM_AT_LEAST = 1 << 26 };

/* Does the op read only the shape of its input? */
static bool reads_shape_only(const Node *node) { return is_op(node, OP_EyeLike); }

static int64_t input_bytes(const Node *node) {
  int64_t bytes = 0;
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i]) bytes += value_max_bytes(node->inputs[i]);
  return bytes;
}

static bool inputs_constant(const Node *node) {
  Attribute *bodies[MAX_BODIES];
  if (node_bodies(node, bodies)) return false; /* bodies read captured values too */
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] && !value_is_known(node->inputs[i]) && !reads_shape_only(node)) return false;
  return true;
}

static bool outputs_static(const Node *node, int64_t *bytes) {
  *bytes = 0;
  for (int i = 0; i < node->n_outputs; i++) {
    if (!node->outputs[i]) continue;
    if (!value_static(node->outputs[i])) return false;
    *bytes += value_max_bytes(node->outputs[i]);
  }
  return true;
}

static bool has_reference(const Node *node) { return node->op->reference && !op_is_expanded(node->op); }

static int64_t room_at_first(const Graph *graph) {
  int64_t bytes = 0;
  for (int i = 0; i < graph->n_values; i++)
    if (graph->values[i]->data) bytes = saturating_add(bytes, value_max_bytes(graph->values[i]));
  return saturating_add(ROOM_AT_LEAST, saturating_mul(FOLDS_OF_EACH, bytes));
}

static bool take_room(Graph *graph, int64_t bytes) {
  if (!graph->fold_room) graph->fold_room = room_at_first(graph);
  if (bytes >= graph->fold_room) return false;
  graph->fold_room -= bytes;
  return true;
}

static int64_t most_bytes(const Node *node) {
  int64_t times = is_op(node, OP_MatMul) || is_op(node, OP_Gemm) ? PRODUCT_GROWS : 1;
  return max_int(SMALL_BYTES, saturating_mul(times, input_bytes(node)));
}

static bool worth_folding(Graph *graph, const Node *node) {
  if (!inputs_constant(node) || !has_reference(node)) return false;
  int64_t bytes;
  return outputs_static(node, &bytes) && bytes <= most_bytes(node) && take_room(graph, bytes);
}

static void become_constant(Value *value, const void *data) {
  value->data = data;
  value->elements = NULL;
  value->divisors = NULL;
  value->producer = NULL;
}

/* True if the node's outputs became constants. */
static bool fold(Graph *graph, Node *node) {
  const Tensor **inputs = ARENA_ARRAY(graph->arena, const Tensor *, node->n_inputs);
  Tensor **outputs = ARENA_ARRAY(graph->arena, Tensor *, node->n_outputs);
  for (int i = 0; i < node->n_inputs; i++)
    inputs[i] = node->inputs[i] ? reference_tensor(graph->arena, node->inputs[i], NULL) : NULL;
  const char *wrong = reference_node(graph->arena, node, inputs, outputs, NULL);
  if (wrong) {
    error_at(node->where, EXIT_INVALID, "%s of constants: %s", node->op->name, wrong);
    return false;
  }
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i]) become_constant(node->outputs[i], outputs[i]->data);
  return true;
}

/* Folds shape arithmetic whose results are numbers. Of constants that is for the reference kernels: arithmetic of
 * shapes does not wrap around, and knows no negative zero. */
static bool fold_elements(Graph *graph, Node *node) {
  Value *value = node_output(node, 0);
  if (node->n_outputs != 1 || !value || !value->elements || value->divisors) return false;
  int64_t count = value_count(value);
  for (int64_t i = 0; i < count; i++)
    if (!dim_is_const(value->elements[i])) return false;
  Tensor *tensor = reference_tensor(graph->arena, value, NULL);
  tensor->data = arena_array(graph->arena, (size_t)count, dtype_size(value->dtype));
  for (int64_t i = 0; i < count; i++) tensor_set_int(tensor, i, dim_value(value->elements[i]));
  become_constant(value, tensor->data);
  return true;
}

/* An empty output is a constant. */
static bool fold_nothing(Node *node) {
  if (!node_makes_nothing(node)) return false;
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i]) become_constant(node->outputs[i], "");
  return true;
}

/* Weights that are trained stay what they are: what is computed of them is computed by each step. */
static bool may_be_of_trained(const Graph *graph, const Node *node) {
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] && value_may_be_trained(graph, node->inputs[i])) return true;
  return false;
}

static bool is_small_of_constants(const Graph *graph, const Node *node) {
  int64_t bytes;
  return !may_be_of_trained(graph, node) && inputs_constant(node) && has_reference(node) &&
         outputs_static(node, &bytes) && bytes + input_bytes(node) <= SMALL_BYTES;
}

bool fold_small(Graph *graph, Node *node) {
  if (node->n_outputs && node->outputs[0] && node->outputs[0]->data) return true;
  if (fold_nothing(node)) return true;
  return is_small_of_constants(graph, node) ? fold(graph, node) : fold_elements(graph, node);
}

bool fold_node(Graph *graph, Node *node) {
  if (fold_nothing(node)) return true;
  return worth_folding(graph, node) ? fold(graph, node) : fold_elements(graph, node);
}
