/* SPDX-License-Identifier: MIT */
/* The nodes: first all outputs are declared, then inputs are resolved, because nodes may be in any order. */
#include <string.h>

#include "ir/bodies.h"
#include "ir/cell.h"
#include "load/model.h"

static const JsonField NODE_FIELDS[] = {
    {"op", JSON_STRING, true},       {"name", JSON_STRING, false},        {"inputs", JSON_ARRAY, false},
    {"outputs", JSON_ARRAY, true},   {"attributes", JSON_OBJECT, false},  {"gate_order", JSON_STRING, false},
    {"lengths", JSON_STRING, false}, {"description", JSON_STRING, false}, {NULL, JSON_ABSENT, false},
};

static const OpInfo *read_op(Arena *arena, Json json) {
  const OpInfo *op = op_find(json_text(json));
  if (op) return op;
  const char *closest = op_closest(json_text(json));
  error_at(json_where(json), EXIT_UNSUPPORTED, "the operator \"%s\" is not supported%s%s%s",
           short_name(arena, json_text(json)), closest ? "; did you mean \"" : "", closest ? closest : "",
           closest ? "\"?" : "");
  return NULL;
}

/* Without an output that should be there, readers are not told that nothing makes what they read. Of an operator that
 * is not known, no output should be left out. */
static void miss_output(ModelReader *reader, const OpInfo *op, int position, int count) {
  bool needed = op ? op_needs_output(op, position, count) : position < count || count == 0;
  reader->names.has_nameless |= needed;
}

/* The node with its outputs; NULL after an error. Outputs are declared even then, so that their readers cause no
 * further errors. */
static Node *begin_node(ModelReader *reader, Json json, int index) {
  bool good = json_check(json, NODE_FIELDS);
  Json op_name = json_member(json, "op"), outputs = json_member(json, "outputs"), name = json_member(json, "name");
  const OpInfo *op = json_kind(op_name) == JSON_STRING ? read_op(reader->arena, op_name) : NULL;
  Node *node = NULL;
  if (good && op) {
    node = graph_node(reader->graph, op,
                      name.item ? json_text(name) : arena_format(reader->arena, "%s_%d", op->name, index),
                      json_count(json_member(json, "inputs")), json_count(outputs));
    node->where = json_where(json);
  }
  int position = 0, count = json_count(outputs);
  for (Json output = json_first(outputs); output.item; output = json_next(output), position++) {
    bool absent = json_kind(output) == JSON_STRING && *json_text(output) == 0;
    Value *value = absent ? NULL : declare_value(reader, output);
    if (absent) miss_output(reader, op, position, count);
    if (!node || !value) continue;
    value->producer = node;
    value->producer_output = position;
    node->outputs[position] = value;
  }
  miss_output(reader, op, position, count);
  return node;
}

/* False if a name does not resolve; "" stays NULL: absent. */
static bool read_node_inputs(ModelReader *reader, Node *node, Json inputs) {
  bool good = true;
  int position = 0;
  for (Json input = json_first(inputs); input.item; input = json_next(input), position++) {
    if (!json_expect(input, JSON_STRING))
      good = false;
    else if (*json_text(input))
      good &= (node->inputs[position] = read_value(reader, input)) != NULL;
  }
  return good;
}

static bool read_attributes(ModelReader *reader, Node *node, Json attributes) {
  bool good = true;
  node->attributes = ARENA_ARRAY(reader->arena, Attribute, json_count(attributes));
  for (Json json = json_first(attributes); json.item; json = json_next(json)) {
    if (strncmp(json_key(json), "x-", 2) == 0) continue;
    if (read_attribute(reader, node->op, json, &node->attributes[node->n_attributes]))
      node->n_attributes++;
    else
      good = false;
  }
  return good;
}

/* `"lengths": "n"` is another way to write the input sequence_lens. */
static bool read_lengths(ModelReader *reader, Node *node, Json lengths) {
  if (!cell_kind(node->op->kind)) {
    error_at(json_where(lengths), EXIT_INVALID, "%s takes no lengths; RNN, GRU and LSTM do", node->op->name);
    return false;
  }
  if (node_input(node, INPUT_LENGTHS)) {
    error_at(json_where(lengths), EXIT_INVALID, "the lengths are also given as input %d; expected one of the two",
             INPUT_LENGTHS);
    return false;
  }
  if (node->n_inputs <= INPUT_LENGTHS) {
    Value **inputs = ARENA_ARRAY(reader->arena, Value *, INPUT_LENGTHS + 1);
    for (int i = 0; i < node->n_inputs; i++) inputs[i] = node->inputs[i];
    node->inputs = inputs;
    node->n_inputs = INPUT_LENGTHS + 1;
  }
  return (node->inputs[INPUT_LENGTHS] = read_value(reader, lengths)) != NULL;
}

/* Nodes with errors leave the graph: shape rules rely on what was checked here. */
static void finish_node(ModelReader *reader, Node *node, Json json) {
  bool good = read_node_inputs(reader, node, json_member(json, "inputs"));
  good &= read_attributes(reader, node, json_member(json, "attributes"));
  Json lengths = json_member(json, "lengths"), gate_order = json_member(json, "gate_order");
  if (lengths.item) good &= read_lengths(reader, node, lengths);
  if (good) good = op_check_node(node);
  if (good) node_capture(reader->graph, node);
  if (good && gate_order.item) good = normalise_gate_order(reader, node, gate_order);
  if (!good) graph_withdraw(reader->graph, node);
}

void read_nodes(ModelReader *reader, Json nodes) {
  Node **made = ARENA_ARRAY(reader->arena, Node *, json_count(nodes));
  int index = 0;
  for (Json json = json_first(nodes); json.item; json = json_next(json), index++)
    made[index] = begin_node(reader, json, index);
  index = 0;
  for (Json json = json_first(nodes); json.item; json = json_next(json), index++)
    if (made[index]) finish_node(reader, made[index], json);
}
