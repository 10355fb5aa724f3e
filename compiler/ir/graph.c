/* SPDX-License-Identifier: MIT */
/* Building and changing graphs. Walks loop over the node list, so a chain of a million nodes needs no stack. */
#include "ir/graph.h"

#include <stdarg.h>
#include <string.h>

#include "ir/op.h"
#include "support/list.h"

Graph *graph_new(Arena *arena) {
  Graph *graph = ARENA_NEW(arena, Graph);
  graph->arena = arena;
  graph->dims = dim_table_new(arena);
  graph->name = graph->version = "";
  return graph;
}

static void add_value(Graph *graph, Value *value) {
  value->id = graph->n_values;
  *LIST_ADD(graph->arena, graph->values, graph->n_values, graph->value_capacity) = value;
}

Value *graph_value(Graph *graph, const char *name, Location where) {
  Value *value = ARENA_NEW(graph->arena, Value);
  value->name = arena_string(graph->arena, name);
  value->rank = -1;
  value->where = where;
  add_value(graph, value);
  return value;
}

Value *graph_value_like(Graph *graph, const char *name, Location where, const Value *like) {
  Value *value = graph_value(graph, name, where);
  value->dtype = like->dtype;
  value->rank = like->rank;
  value->shape = like->shape;
  return value;
}

static bool is_name(const Graph *graph, const char *name) {
  for (int i = 0; i < graph->n_values; i++)
    if (graph->values[i]->name && !strcmp(graph->values[i]->name, name)) return true;
  return false;
}

const char *graph_new_name(Graph *graph, const char *name) {
  while (is_name(graph, name)) name = arena_format(graph->arena, "%s_", name);
  return name;
}

Value *graph_constant(Graph *graph, const char *name, DType dtype, int rank, const int64_t *shape, const void *data) {
  Value *value = graph_value(graph, name, LOCATION_FILE(graph->file));
  value->where.path = value->name;
  value->dtype = dtype;
  value->rank = rank;
  value->shape = ARENA_ARRAY(graph->arena, const Dim *, rank);
  for (int axis = 0; axis < rank; axis++) value->shape[axis] = dim_const(graph->dims, shape[axis]);
  value->data = data;
  return value;
}

Node *graph_node(Graph *graph, const OpInfo *op, const char *name, int n_inputs, int n_outputs) {
  Node *node = ARENA_NEW(graph->arena, Node);
  node->op = op;
  node->name = arena_string(graph->arena, name);
  node->where = (Location){.file = graph->file, .path = node->name, .byte = -1};
  node->n_inputs = n_inputs;
  node->n_outputs = n_outputs;
  node->inputs = ARENA_ARRAY(graph->arena, Value *, n_inputs);
  node->outputs = ARENA_ARRAY(graph->arena, Value *, n_outputs);
  graph_append(graph, node);
  return node;
}

void graph_append(Graph *graph, Node *node) {
  node->id = graph->n_nodes;
  *LIST_ADD(graph->arena, graph->nodes, graph->n_nodes, graph->node_capacity) = node;
}

int graph_take_nodes(Graph *graph, Node ***nodes) {
  int n = graph->n_nodes;
  *nodes = graph->nodes;
  graph->nodes = NULL;
  graph->n_nodes = graph->node_capacity = 0;
  return n;
}

void values_remove(Value **values, int *n, int at) {
  --*n;
  for (int i = at; i < *n; i++) values[i] = values[i + 1];
}

void graph_set_output(Node *node, int output, Value *value) {
  node->outputs[output] = value;
  value->producer = node;
  value->producer_output = output;
}

int node_own_inputs(const Node *node) {
  int n = node->n_inputs;
  for (int k = 0; k < node->n_epilogue; k++) n -= node->epilogue[k]->n_inputs - 1;
  return n;
}

static Value *working_memory(Graph *graph, const Node *node, const char *name, const Dim *bytes) {
  Value *value = graph_value(graph, name, node->where);
  value->dtype = RNNCC_U8;
  value->rank = 1;
  value->shape = ARENA_ARRAY(graph->arena, const Dim *, 1);
  value->shape[0] = bytes;
  return value;
}

void graph_scratch(Graph *graph, Node *node, const char *name, const Dim *bytes) {
  node->scratch = working_memory(graph, node, name, bytes);
}

void graph_in_place(Graph *graph, Node *node, const char *name, const Dim *bytes) {
  node->in_place = working_memory(graph, node, name, bytes);
}

void graph_pack(Graph *graph, Node *node, Value *value) {
  *LIST_APPEND(graph->arena, node->packed, node->n_packed) = value;
}

void graph_pack_floats(Graph *graph, Node *node, const char *name, int64_t count, const float *data) {
  graph_pack(graph, node, graph_constant(graph, name, RNNCC_F32, 1, &count, data));
}

void graph_remark(Graph *graph, const char *format, ...) {
  Text text = text_new(graph->arena);
  va_list arguments;
  va_start(arguments, format);
  text_add_va(&text, format, arguments);
  va_end(arguments);
  *LIST_ADD(graph->arena, graph->remarks, graph->n_remarks, graph->remark_capacity) = text.data;
}

static void visit_node(Graph *graph, Node *node, void (*visit)(Graph *, Value *)) {
  for (int i = 0; i < node->n_inputs; i++) visit(graph, node->inputs[i]);
  for (int i = 0; i < node->n_packed; i++) visit(graph, node->packed[i]);
  visit(graph, node->scratch);
  visit(graph, node->in_place);
  for (int i = 0; i < node->n_outputs; i++) visit(graph, node->outputs[i]);
}

/* Calls `visit` on every reachable value, on some more than once, and on NULL for absent ones. */
static void visit_values(Graph *graph, void (*visit)(Graph *, Value *)) {
  for (int i = 0; i < graph->n_inputs; i++) visit(graph, graph->inputs[i]);
  for (int i = 0; i < graph->n_states; i++) visit(graph, graph->states[i].input);
  for (int i = 0; i < graph->n_parameters; i++) visit(graph, graph->initials[i]);
  for (int i = 0; i < graph->n_nodes; i++) visit_node(graph, graph->nodes[i], visit);
  for (int i = 0; i < graph->n_outputs; i++) visit(graph, graph->outputs[i]);
  for (int i = 0; i < graph->n_states; i++) visit(graph, graph->states[i].output);
}

static void forget_id(Graph *graph, Value *value) {
  (void)graph;
  if (value) value->id = -1;
}

static void give_id(Graph *graph, Value *value) {
  if (value && value->id < 0) add_value(graph, value);
}

void graph_renumber(Graph *graph) {
  for (int i = 0; i < graph->n_values; i++) forget_id(graph, graph->values[i]);
  visit_values(graph, forget_id);
  graph->n_values = 0;
  visit_values(graph, give_id);
  for (int i = 0; i < graph->n_nodes; i++) graph->nodes[i]->id = i;
}

void graph_withdraw(Graph *graph, Node *node) {
  int kept = 0;
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i]) node->outputs[i]->producer = NULL;
  for (int n = 0; n < graph->n_nodes; n++)
    if (graph->nodes[n] != node) graph->nodes[kept++] = graph->nodes[n];
  graph->n_nodes = kept;
}

void graph_close_gaps(Graph *graph) {
  int kept = 0;
  for (int n = 0; n < graph->n_nodes; n++)
    if (graph->nodes[n]) graph->nodes[kept++] = graph->nodes[n];
  graph->n_nodes = kept;
  graph_renumber(graph);
}

UseList graph_uses(Graph *graph) {
  UseList uses = {ARENA_ARRAY(graph->arena, int, graph->n_values), ARENA_ARRAY(graph->arena, Node *, graph->n_values)};
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n];
    for (int i = 0; i < node->n_inputs; i++) {
      if (!node->inputs[i]) continue;
      int id = node->inputs[i]->id;
      uses.single[id] = uses.count[id]++ == 0 ? node : NULL;
    }
  }
  for (int i = 0; i < graph->n_outputs + graph->n_states; i++) {
    Value *output = i < graph->n_outputs ? graph->outputs[i] : graph->states[i - graph->n_outputs].output;
    uses.count[output->id]++;
    uses.single[output->id] = NULL;
  }
  return uses;
}

void graph_read_instead(Graph *graph, int first_node, const Value *value, Value *other) {
  for (int n = first_node; n < graph->n_nodes; n++)
    for (int i = 0; i < graph->nodes[n]->n_inputs; i++)
      if (graph->nodes[n]->inputs[i] == value) graph->nodes[n]->inputs[i] = other;
}

bool *graph_mark_outputs(const Graph *graph) {
  bool *marked = ARENA_ARRAY(graph->arena, bool, graph->n_values);
  for (int i = 0; i < graph->n_outputs; i++) marked[graph->outputs[i]->id] = true;
  for (int i = 0; i < graph->n_states; i++) marked[graph->states[i].output->id] = true;
  return marked;
}

bool node_makes_any(const Node *node, const bool *marked) {
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] && marked[node->outputs[i]->id]) return true;
  return false;
}

bool node_makes_nothing(const Node *node) {
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] && (!value_static(node->outputs[i]) || value_count(node->outputs[i]) > 0)) return false;
  return true;
}

/* May an unused output be dropped: is it optional, and not one of many (Split)? */
static bool may_drop_output(const Node *node, int output) {
  return node->op->max_outputs >= 0 && output >= node->op->min_outputs;
}

static void keep_alive(Node *node, bool *used) {
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] && !used[node->outputs[i]->id] && may_drop_output(node, i)) node->outputs[i] = NULL;
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i]) used[node->inputs[i]->id] = true;
}

void graph_remove_dead(Graph *graph) {
  graph_renumber(graph);
  bool *used = graph_mark_outputs(graph);
  bool *dims = ARENA_ARRAY(graph->arena, bool, dim_symbol_count(graph->dims));
  int first = graph->n_nodes; /* nodes[first..] are those found alive, walking backwards */
  for (int n = graph->n_nodes - 1; n >= 0; n--) {
    Node *node = graph->nodes[n];
    if (!node_makes_any(node, used) && !node_finds_dim(graph, node, dims)) continue;
    keep_alive(node, used);
    node_mark_dims(node, dims);
    graph->nodes[--first] = node;
  }
  graph->n_nodes -= first;
  if (graph->n_nodes) memmove(graph->nodes, graph->nodes + first, (size_t)graph->n_nodes * sizeof *graph->nodes);
  graph_renumber(graph);
}

static void need(bool *needed, const Value *value) {
  for (; value; value = value->view_of) needed[value->id] = true;
}

const bool *graph_forward_nodes(const Graph *graph) {
  bool *needed = ARENA_ARRAY(graph->arena, bool, graph->n_values);
  bool *forward = ARENA_ARRAY(graph->arena, bool, graph->n_nodes);
  bool *dims = ARENA_ARRAY(graph->arena, bool, dim_symbol_count(graph->dims));
  for (int i = 0; i < graph_own_outputs(graph); i++) need(needed, graph->outputs[i]);
  for (int i = 0; i < graph->n_states; i++) need(needed, graph->states[i].output);
  for (int n = graph->n_nodes - 1; n >= 0; n--) {
    forward[n] = node_makes_any(graph->nodes[n], needed) || node_finds_dim(graph, graph->nodes[n], dims);
    if (forward[n]) node_mark_dims(graph->nodes[n], dims);
    for (int i = 0; forward[n] && i < graph->nodes[n]->n_inputs; i++) need(needed, graph->nodes[n]->inputs[i]);
  }
  return forward;
}
