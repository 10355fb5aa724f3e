/* SPDX-License-Identifier: MIT */
/* Bodies of control flow: nodes and constants with names of their own, which may also read values from around them. */
#include "ir/bodies.h"
#include "load/model.h"

static const JsonField BODY_FIELDS[] = {
    {"inputs", JSON_ARRAY, false},     {"outputs", JSON_ARRAY, true},       {"nodes", JSON_ARRAY, true},
    {"constants", JSON_OBJECT, false}, {"description", JSON_STRING, false}, {NULL, JSON_ABSENT, false},
};

/* Their types come from the node. */
static void read_body_inputs(ModelReader *reader, Json inputs) {
  Graph *body = reader->graph;
  body->inputs = ARENA_ARRAY(reader->arena, Value *, json_count(inputs));
  for (Json input = json_first(inputs); input.item; input = json_next(input)) {
    Value *value = declare_value(reader, input);
    value->is_input = true;
    body->inputs[body->n_inputs++] = value;
  }
}

static bool read_body_outputs(ModelReader *reader, Json outputs) {
  Graph *body = reader->graph;
  bool good = true;
  body->outputs = ARENA_ARRAY(reader->arena, Value *, json_count(outputs));
  for (Json output = json_first(outputs); output.item; output = json_next(output)) {
    Value *value = json_expect(output, JSON_STRING) ? read_value(reader, output) : NULL;
    if (value) body->outputs[body->n_outputs++] = value;
    good &= value != NULL;
  }
  return good;
}

bool read_body(ModelReader *reader, Json json, Attribute *attribute) {
  if (!json_check(json, BODY_FIELDS)) return false;
  ModelReader inner = {.arena = reader->arena,
                       .graph = body_new(reader->graph, json_key(json)),
                       .names = name_table_new(reader->arena, &reader->names)};
  read_body_inputs(&inner, json_member(json, "inputs"));
  read_constants(&inner, json_member(json, "constants"));
  read_nodes(&inner, json_member(json, "nodes"));
  if (!read_body_outputs(&inner, json_member(json, "outputs")) || !sort_nodes(inner.graph)) return false;
  attribute->kind = ATTRIBUTE_GRAPH;
  attribute->graph = inner.graph;
  return true;
}
