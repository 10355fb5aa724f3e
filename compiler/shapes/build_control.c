/* SPDX-License-Identifier: MIT */
/* Control flow of bodies that are inferred already: shape_control.c infers those that a model has. */
#include "shapes/build.h"
#include "shapes/control.h"
#include "shapes/shape.h"
#include "support/list.h"

const Dim *loop_count(Graph *graph, const Control *control) {
  return control->conditional || !control->trip ? dim_symbol(graph->dims, control->count) : control->trip;
}

static Attribute body_attribute(AttributeName name, Graph *body) {
  return (Attribute){.id = name, .kind = ATTRIBUTE_GRAPH, .graph = body};
}

/* With outputs that have no type yet. */
static Node *new_node(const Builder *builder, OpKind op, int n_inputs, Value *const *inputs, int n_outputs) {
  Graph *graph = builder->graph;
  Node *node = graph_node(graph, op_info(op), builder->name, n_inputs, n_outputs);
  node->where = builder->where;
  for (int i = 0; i < n_inputs; i++) node->inputs[i] = inputs[i];
  for (int i = 0; i < n_outputs; i++) graph_set_output(node, i, graph_value(graph, builder->name, builder->where));
  node->control = ARENA_NEW(graph->arena, Control);
  return node;
}

static void set_output(Graph *graph, Node *node, int output, const Value *like) {
  node->outputs[output]->dtype = like->dtype;
  set_shape(graph, node, output, like->rank, like->shape);
}

/* One slice an iteration. */
static void set_slices(Graph *graph, Node *node, int output, const Value *slice, const Dim *count) {
  const Dim *shape[MAX_RANK + 1] = {count};
  for (int axis = 0; axis < slice->rank; axis++) shape[axis + 1] = slice->shape[axis];
  node->outputs[output]->dtype = slice->dtype;
  set_shape(graph, node, output, slice->rank + 1, shape);
}

Node *build_if(const Builder *builder, Value *condition, Graph *const bodies[2], int n_inputs, Value *const *inputs) {
  Graph *graph = builder->graph;
  Value **all = ARENA_ARRAY(graph->arena, Value *, n_inputs + 1);
  all[0] = condition;
  for (int i = 0; i < n_inputs; i++) all[i + 1] = inputs[i];
  Node *node = new_node(builder, OP_If, n_inputs + 1, all, bodies[0]->n_outputs);
  node->n_captures = n_inputs;
  set_attribute(graph, node, body_attribute(ATTR_then_branch, bodies[0]));
  set_attribute(graph, node, body_attribute(ATTR_else_branch, bodies[1]));
  for (int k = 0; k < node->n_outputs; k++) set_output(graph, node, k, bodies[0]->outputs[k]);
  return node;
}

Node *build_scan_back(const Builder *builder, const Node *loop, Graph *body, const ScanInputs *inputs) {
  Graph *graph = builder->graph;
  const Control *of = loop->control;
  int n_carried = inputs->n_carried, n_inputs = n_carried + inputs->n_scanned + inputs->n_captures;
  Node *node = new_node(builder, OP_Scan, n_inputs, inputs->list, body->n_outputs);
  node->n_captures = inputs->n_captures;
  set_attribute(graph, node, body_attribute(ATTR_body, body));
  set_attribute(graph, node, attribute_int(ATTR_num_scan_inputs, inputs->n_scanned));
  *node->control = (Control){.is_loop = true,
                             .n_carried = n_carried,
                             .n_scanned = inputs->n_scanned,
                             .n_collected = body->n_outputs - n_carried,
                             .counter = dim_symbol_own(graph->dims, DIM_DATA_DEPENDENT, 0, of->counter->max),
                             .count = dim_symbol_own(graph->dims, DIM_DATA_DEPENDENT, 0, of->most),
                             .of = of->counter,
                             .trip = loop_count(graph, of),
                             .most = of->most,
                             .backwards = inputs->backwards};
  for (int k = 0; k < n_carried; k++) set_output(graph, node, k, inputs->list[k]);
  for (int k = n_carried; k < node->n_outputs; k++) set_slices(graph, node, k, body->outputs[k], node->control->trip);
  return node;
}

/* Outputs that the body has, and the node lacks, are left out. */
static void lengthen_outputs(Graph *graph, Node *loop, int n_outputs) {
  Value **outputs = ARENA_ARRAY(graph->arena, Value *, n_outputs);
  for (int i = 0; i < loop->n_outputs; i++) outputs[i] = loop->outputs[i];
  loop->outputs = outputs;
  loop->n_outputs = n_outputs;
}

Value *loop_collect(Graph *graph, Node *loop, Value *inside) {
  Graph *body = node_attribute(loop, ATTR_body)->graph;
  Control *control = loop->control = arena_copy(graph->arena, loop->control, sizeof *control);
  int output = control->n_carried + control->n_collected, n_directions = control->n_scanned + control->n_collected++;
  if (control->backwards) *LIST_APPEND(graph->arena, control->backwards, n_directions) = false;
  *LIST_APPEND(graph->arena, body->outputs, body->n_outputs) = inside;
  lengthen_outputs(graph, loop, output + 1);
  graph_set_output(loop, output, graph_value(graph, loop->name, loop->where));
  set_slices(graph, loop, output, inside, loop_count(graph, control));
  return loop->outputs[output];
}
