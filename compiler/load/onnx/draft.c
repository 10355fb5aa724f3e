/* SPDX-License-Identifier: MIT */
/* Helpers to rewrite drafts. */
#include <string.h>

#include "ir/tensor.h"
#include "load/onnx/adapt.h"
#include "shapes/control.h"
#include "shapes/shape.h"
#include "support/list.h"

Attribute *draft_attribute(const Draft *draft, const char *name) {
  for (int i = 0; i < draft->n_attributes; i++)
    if (strcmp(draft->attributes[i].name, name) == 0) return &draft->attributes[i];
  return NULL;
}

int64_t draft_int(const Draft *draft, const char *name, int64_t otherwise) {
  const Attribute *given = draft_attribute(draft, name);
  return given && given->kind == ATTRIBUTE_INT ? given->i : otherwise;
}

double draft_float(const Draft *draft, const char *name, double otherwise) {
  const Attribute *given = draft_attribute(draft, name);
  return given && given->kind == ATTRIBUTE_FLOAT ? given->f : otherwise;
}

void draft_drop(Draft *draft, const char *name) {
  const Attribute *given = draft_attribute(draft, name);
  if (!given) return;
  int after = (int)(given - draft->attributes) + 1;
  for (int i = after; i < draft->n_attributes; i++) draft->attributes[i - 1] = draft->attributes[i];
  draft->n_attributes--;
}

static Attribute *set_attribute(OnnxReader *reader, Draft *draft, const char *name) {
  draft_drop(draft, name);
  Attribute *attribute = LIST_APPEND(reader->arena, draft->attributes, draft->n_attributes);
  *attribute = (Attribute){.name = name, .where = draft->where};
  return attribute;
}

void draft_set_int(OnnxReader *reader, Draft *draft, const char *name, int64_t i) {
  Attribute *attribute = set_attribute(reader, draft, name);
  attribute->kind = ATTRIBUTE_INT;
  attribute->i = i;
}

void draft_set_string(OnnxReader *reader, Draft *draft, const char *name, const char *s) {
  Attribute *attribute = set_attribute(reader, draft, name);
  attribute->kind = ATTRIBUTE_STRING;
  attribute->s = s;
}

Value *draft_input(const Draft *draft, int input) { return input < draft->n_inputs ? draft->inputs[input] : NULL; }

void draft_set_input(OnnxReader *reader, Draft *draft, int input, Value *value) {
  int n = draft->n_inputs > input + 1 ? draft->n_inputs : input + 1;
  Value **inputs = ARENA_ARRAY(reader->arena, Value *, n);
  for (int i = 0; i < draft->n_inputs; i++) inputs[i] = draft->inputs[i];
  inputs[input] = value;
  draft->inputs = inputs;
  draft->n_inputs = n;
}

Value *draft_ints(OnnxReader *reader, const Draft *draft, size_t n, const int64_t *ints) {
  int64_t count = (int64_t)n;
  const void *data = arena_copy(reader->arena, ints, n * sizeof *ints);
  return graph_constant(draft->scope->graph, draft->name, RNNCC_I64, 1, &count, data);
}

Value *draft_number(OnnxReader *reader, const Draft *draft, DType dtype, double number) {
  Tensor *tensor = tensor_new(reader->arena, dtype, 0, NULL);
  tensor_set(tensor, 0, number);
  return graph_constant(draft->scope->graph, draft->name, dtype, 0, NULL, tensor->data);
}

static void commit(OnnxReader *reader, const Draft *draft, const char *op, int n_inputs, Value **inputs,
                   int n_attributes, const Attribute *attributes, Value *output) {
  Draft node = {.op = op, .name = draft->name, .where = draft->where, .scope = draft->scope, .n_inputs = n_inputs};
  node.inputs = arena_copy(reader->arena, inputs, (size_t)n_inputs * sizeof *inputs);
  node.outputs = arena_copy(reader->arena, &output, sizeof(Value *));
  node.n_outputs = 1;
  node.n_attributes = n_attributes;
  node.attributes = arena_copy(reader->arena, attributes, (size_t)n_attributes * sizeof *attributes);
  for (int i = 0; i < n_attributes; i++) node.attributes[i].where = draft->where;
  onnx_commit(reader, &node);
}

void draft_node_onto(OnnxReader *reader, const Draft *draft, const char *op, int n_inputs, Value **inputs,
                     Value *output) {
  commit(reader, draft, op, n_inputs, inputs, 0, NULL, output);
}

Value *draft_node(OnnxReader *reader, const Draft *draft, const char *op, int n_inputs, Value **inputs) {
  Value *output = graph_value(draft->scope->graph, draft->name, draft->where);
  draft_node_onto(reader, draft, op, n_inputs, inputs, output);
  return output;
}

Value *draft_node_with(OnnxReader *reader, const Draft *draft, const char *op, int n_inputs, Value **inputs,
                       int n_attributes, const Attribute *attributes, Value *output) {
  if (!output) output = graph_value(draft->scope->graph, draft->name, draft->where);
  commit(reader, draft, op, n_inputs, inputs, n_attributes, attributes, output);
  return output;
}

Value *draft_take_output(Draft *draft, int output) {
  Value *taken = draft->outputs[output];
  draft->outputs[output] = graph_value(draft->scope->graph, draft->name, draft->where);
  return taken;
}

typedef struct Trial {
  Graph *graph;
  Node *node;
} Trial;

static void infer(void *argument) {
  Trial *trial = argument;
  infer_node(trial->graph, trial->node);
}

/* infer_shapes reports the errors. What it counts, too, is counted before. */
static void infer_so_far(OnnxReader *reader) {
  for (; reader->n_inferred < reader->graph->n_nodes; reader->n_inferred++) {
    Trial trial = {.graph = reader->graph, .node = reader->graph->nodes[reader->n_inferred]};
    count_iterations(trial.graph, trial.node);
    first_error_of(infer, &trial);
  }
}

int draft_rank(OnnxReader *reader, const Draft *draft, const Value *value) {
  bool inferred = draft->scope->graph == reader->graph; /* bodies are inferred with their nodes */
  if (value->rank < 0 && inferred) infer_so_far(reader);
  if (value->rank < 0) reader->unsupported.follows |= inferred || value->refused;
  return value->rank;
}

DType draft_dtype(OnnxReader *reader, const Draft *draft, const Value *value) {
  return draft_rank(reader, draft, value) < 0 ? RNNCC_NONE : value->dtype;
}

bool draft_last_extent(OnnxReader *reader, const Draft *draft, const Value *value, int64_t *extent) {
  int rank = draft_rank(reader, draft, value);
  bool known = rank > 0 && dim_is_const(value->shape[rank - 1]);
  if (known) *extent = dim_value(value->shape[rank - 1]);
  return known;
}
