/* SPDX-License-Identifier: MIT */
/* Control flow that is known at compile time. */
#include "ir/bodies.h"
#include "shapes/build.h"
#include "shapes/control.h"
#include "shapes/loop_bound.h"
#include "shapes/shape.h"

typedef void Infer(Graph *graph, Node *node);

/* Limits of an unrolled loop. */
enum { MAX_UNROLLED = 16, MAX_UNROLLED_NODES = 256 };

static const Graph *source_of(const Attribute *attribute) {
  return attribute->source ? attribute->source : attribute->graph;
}

int known_truth(const Value *value) {
  if (value_static(value) && value_count(value) != 1) return -1;
  if (value->data && value->dtype != RNNCC_BOOL) return -1;
  if (value->data) return *(const uint8_t *)value->data != 0;
  if (value->elements && dim_is_const(value->elements[0])) return dim_value(value->elements[0]) != 0;
  const Node *producer = value->producer;
  if (!producer) return -1;
  const Attribute *constant = node_attribute(producer, ATTR_value);
  if (is_op(producer, OP_Constant) && constant && constant->kind == ATTRIBUTE_TENSOR)
    return known_truth(constant->tensor);
  return !is_op(producer, OP_Identity) ? -1 : known_truth(producer->inputs[0]);
}

bool loop_is_conditional(const Node *node, const Graph *body) {
  if (node->inputs[1] && known_truth(node->inputs[1]) != 1) return true;
  const Value *again = skip_conversions(body->outputs[0]);
  if (again == body->inputs[1]) return false;
  for (int i = 0; i < node->n_captures; i++) { /* a constant outside? */
    int outer = node->n_inputs - node->n_captures + i, inner = body->n_inputs - node->n_captures + i;
    if (again == body->inputs[inner]) again = node->inputs[outer];
  }
  return known_truth(again) != 1;
}

/* Appends copies of the body's nodes; results[i] is the value of its output i. */
static void inline_body(Graph *graph, const Graph *body, Value *const *arguments, Infer *infer, Value **results) {
  Node **nodes = ARENA_ARRAY(graph->arena, Node *, body->n_nodes);
  int n = body_copy_nodes(graph, body, arguments, nodes, results);
  for (int i = 0; i < n; i++) infer(graph, nodes[i]);
}

static Node *new_node(Graph *graph, OpKind op, const Node *of, int n_inputs) {
  Node *node = ARENA_NEW(graph->arena, Node);
  node->op = op_info(op);
  node->name = of->name;
  node->where = of->where;
  node->n_inputs = n_inputs;
  node->n_outputs = 1;
  node->inputs = ARENA_ARRAY(graph->arena, Value *, n_inputs);
  node->outputs = ARENA_ARRAY(graph->arena, Value *, 1);
  return node;
}

static Value *add_node(Graph *graph, Node *node, Infer *infer) {
  graph_set_output(node, 0, graph_value(graph, node->name, node->where));
  infer(graph, node);
  return node->outputs[0];
}

/* The node's output becomes a copy of the value. */
static void give_output(Graph *graph, Node *node, int output, Value *value, Infer *infer) {
  if (output >= node->n_outputs || !node->outputs[output]) return;
  Node *copy = new_node(graph, OP_Identity, node, 1);
  copy->inputs[0] = value;
  graph_set_output(copy, 0, node->outputs[output]);
  infer(graph, copy);
}

/* ---- If ---- */

static bool take_branch(Graph *graph, Node *node, Infer *infer) {
  int truth = node->inputs[0] ? known_truth(node->inputs[0]) : -1;
  if (truth < 0 || node->n_inputs - node->n_captures != 1) return false;
  const Graph *body = source_of(node_attribute(node, truth ? ATTR_then_branch : ATTR_else_branch));
  if (body->n_outputs != node->n_outputs || body->n_inputs != node->n_captures) return false;
  Value **results = ARENA_ARRAY(graph->arena, Value *, body->n_outputs);
  inline_body(graph, body, node->inputs + 1, infer, results);
  for (int i = 0; i < body->n_outputs; i++) give_output(graph, node, i, results[i], infer);
  return true;
}

/* ---- Loop ---- */

static Value *integer(Graph *graph, const Node *node, int rank, int64_t number) {
  const int64_t one = 1;
  return graph_constant(graph, node->name, RNNCC_I64, rank, &one, arena_copy(graph->arena, &number, sizeof number));
}

/* The number of iterations if the loop can be unrolled; else -1. */
static int64_t unrolled_iterations(Graph *graph, const Node *node, const Graph *body, int n_carried) {
  if (n_carried < 0 || body->n_inputs != node->n_inputs || body->n_outputs < 1 + n_carried) return -1;
  if (node->n_outputs >= body->n_outputs) return -1; /* an error, which inference names */
  if (!node->inputs[0] || !value_static(node->inputs[0]) || value_count(node->inputs[0]) != 1) return -1;
  const Dim **trip = known_elements(graph, node->inputs[0]);
  if (!trip || !dim_is_const(trip[0]) || loop_is_conditional(node, body)) return -1;
  int64_t n = dim_value(trip[0]) > 0 ? dim_value(trip[0]) : 0;
  bool collects = body->n_outputs > 1 + n_carried;
  if (n > MAX_UNROLLED || n * body->n_nodes > MAX_UNROLLED_NODES || (n == 0 && collects)) return -1;
  return n;
}

/* [iterations, ...] of the slices. */
static Value *collect(Graph *graph, const Node *node, Value **slices, int n, Infer *infer) {
  Node *joined = new_node(graph, OP_Concat, node, n);
  for (int i = 0; i < n; i++) {
    Node *longer = new_node(graph, OP_Unsqueeze, node, 2);
    longer->inputs[0] = slices[i];
    longer->inputs[1] = integer(graph, node, 1, 0);
    joined->inputs[i] = add_node(graph, longer, infer);
  }
  set_attribute(graph, joined, attribute_int(ATTR_axis, 0));
  return add_node(graph, joined, infer);
}

static bool unroll(Graph *graph, Node *node, Infer *infer) {
  const Graph *body = source_of(node_attribute(node, ATTR_body));
  int n_carried = node->n_inputs - node->n_captures - 2, n_collected = body->n_outputs - 1 - n_carried;
  int64_t n = unrolled_iterations(graph, node, body, n_carried);
  if (n < 0) return false;
  static const uint8_t truth = 1;
  Value **arguments = arena_copy(graph->arena, node->inputs, (size_t)node->n_inputs * sizeof *arguments);
  Value **results = ARENA_ARRAY(graph->arena, Value *, body->n_outputs);
  Value **slices = ARENA_ARRAY(graph->arena, Value *, (n_collected + 1) * (n + 1));
  arguments[1] = graph_constant(graph, node->name, RNNCC_BOOL, 0, NULL, &truth);
  const int before = error_count();
  for (int64_t i = 0; i < n; i++) {
    arguments[0] = integer(graph, node, 0, i);
    inline_body(graph, body, arguments, infer, results);
    if (error_count() > before) return true; /* another copy would have the same errors */
    for (int k = 0; k < n_carried; k++) arguments[2 + k] = results[1 + k];
    for (int k = 0; k < n_collected; k++) slices[k * n + i] = results[1 + n_carried + k];
  }
  for (int k = 0; k < n_carried; k++) give_output(graph, node, k, arguments[2 + k], infer);
  for (int k = 0; k < n_collected; k++)
    give_output(graph, node, n_carried + k, collect(graph, node, slices + k * n, (int)n, infer), infer);
  return true;
}

/* ---- Scan ---- */

/* A Transpose that moves one axis. */
static Node *moved_axis(Graph *graph, const Node *node, int rank, int from, int to) {
  Node *transpose = new_node(graph, OP_Transpose, node, 1);
  int64_t perm[MAX_RANK];
  for (int axis = 0, other = 0; axis < rank; axis++) {
    if (other == from) other++;
    perm[axis] = axis == to ? from : other++;
  }
  set_attribute(graph, transpose, attribute_ints(graph->arena, ATTR_perm, rank, perm));
  return transpose;
}

static bool any_axis(const Attribute *axes) {
  for (size_t i = 0; axes && i < axes->count; i++)
    if (axes->ints[i]) return true;
  return false;
}

static void all_first(Graph *graph, Attribute *axes) { axes->ints = ARENA_ARRAY(graph->arena, int64_t, axes->count); }

static bool scan_first_axes(Graph *graph, Node *node, Infer *infer) {
  Attribute *in = (Attribute *)node_attribute(node, ATTR_scan_input_axes);
  Attribute *out = (Attribute *)node_attribute(node, ATTR_scan_output_axes);
  int64_t n_scanned = node_int(node, ATTR_num_scan_inputs);
  int n_carried = node->n_inputs - node->n_captures - (int)n_scanned, n_moved = 0;
  if ((!any_axis(in) && !any_axis(out)) || n_carried < 0 || n_scanned < 0) return false;
  if (in && in->count != (size_t)n_scanned) return false;
  if (out && out->count != (size_t)(node->n_outputs - n_carried)) return false;
  for (int k = 0; in && k < n_scanned; k++) {
    const Value *all = node->inputs[n_carried + k];
    int axis = check_axis(node, "an entry of scan_input_axes", in->ints[k], all->rank);
    if (axis <= 0) continue;
    Node *transpose = moved_axis(graph, node, all->rank, axis, 0);
    transpose->inputs[0] = node->inputs[n_carried + k];
    node->inputs[n_carried + k] = add_node(graph, transpose, infer);
  }
  Value **wanted = arena_copy(graph->arena, node->outputs, (size_t)node->n_outputs * sizeof *wanted);
  const int64_t *axes = out ? out->ints : NULL;
  for (int k = n_carried; axes && k < node->n_outputs; k++)
    if (axes[k - n_carried] && wanted[k]) {
      graph_set_output(node, k, graph_value(graph, node->name, node->where));
      n_moved++;
    }
  if (in) all_first(graph, in);
  if (out) all_first(graph, out);
  infer(graph, node);
  for (int k = n_carried; n_moved && k < node->n_outputs; k++) {
    Value *made = node->outputs[k];
    if (made == wanted[k]) continue;
    int axis = made->rank < 0 ? -1 : check_axis(node, "an entry of scan_output_axes", axes[k - n_carried], made->rank);
    Node *transpose = moved_axis(graph, node, made->rank < 0 ? 0 : made->rank, 0, axis < 0 ? 0 : axis);
    transpose->inputs[0] = made;
    graph_set_output(transpose, 0, wanted[k]);
    infer(graph, transpose);
  }
  return true;
}

bool control_rewrite(Graph *graph, Node *node, Infer *infer) {
  if (is_op(node, OP_If)) return take_branch(graph, node, infer);
  count_iterations(graph, node);
  if (is_op(node, OP_Loop)) return unroll(graph, node, infer);
  return is_op(node, OP_Scan) && inputs_known(node) && scan_first_axes(graph, node, infer);
}
