/* SPDX-License-Identifier: MIT */
#include "ir_build.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "machine/machine.h"
#include "machine/targets.h"
#include "support/text.h"

Graph *build_graph(Arena *arena) {
  Graph *graph = graph_new(arena);
  graph->name = graph->file = "test";
  dim_symbol_add(graph->dims, "T", (DimBounds){2, 50, 400, 1});
  dim_symbol_add(graph->dims, "B", (DimBounds){1, 1, 8, 1});
  return graph;
}

Config *build_config(Graph *graph, const char *target) {
  Config *config = ARENA_NEW(graph->arena, Config);
  config->target = target_named(graph->arena, target);
  Machine machine = machine_of(config->target, false, 2);
  config->machine = arena_copy(graph->arena, &machine, sizeof machine);
  graph->config = config;
  return config;
}

/* `T`, `7`, or `2*T`. */
static const Dim *parse_dim(Graph *graph, const char *word) {
  char *end;
  int64_t number = strtoll(word, &end, 10);
  if (!*end) return dim_const(graph->dims, number);
  const DimSymbol *symbol = dim_symbol_find(graph->dims, *end == '*' ? end + 1 : word);
  if (!symbol) bug("test: dimension %s", word);
  const Dim *dim = dim_symbol(graph->dims, symbol);
  return *end == '*' ? dim_mul(graph->dims, dim_const(graph->dims, number), dim) : dim;
}

/* Cuts `text` at commas in place. */
static int split_commas(char *text, char *words[64]) {
  int n = 0;
  for (char *save, *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) words[n++] = word;
  return n;
}

static void set_dims(Graph *graph, Value *value, char *list) {
  char *words[64];
  value->rank = split_commas(list, words);
  value->shape = ARENA_ARRAY(graph->arena, const Dim *, value->rank);
  for (int axis = 0; axis < value->rank; axis++) value->shape[axis] = parse_dim(graph, words[axis]);
}

/* 1, 2, 3, ...: all elements differ. */
static const void *counting(Graph *graph, DType dtype, int64_t count) {
  void *data = arena_array(graph->arena, (size_t)count, dtype_size(dtype));
  for (int64_t i = 0; i < count; i++) {
    if (dtype == RNNCC_F32) ((float *)data)[i] = (float)(i + 1);
    if (dtype == RNNCC_I64) ((int64_t *)data)[i] = i + 1;
    if (dtype == RNNCC_I32) ((int32_t *)data)[i] = (int32_t)(i + 1);
    if (dtype == RNNCC_U8 || dtype == RNNCC_I8) ((uint8_t *)data)[i] = (uint8_t)(i + 1);
  }
  return data;
}

static Value *integers(Graph *graph, DType dtype, char *list, bool scalar) {
  char *words[64];
  int64_t n = split_commas(list, words);
  void *data = arena_array(graph->arena, (size_t)n, dtype_size(dtype));
  for (int64_t i = 0; i < n; i++) {
    int64_t number = strtoll(words[i], NULL, 10);
    if (dtype == RNNCC_I64) ((int64_t *)data)[i] = number;
    if (dtype == RNNCC_I32) ((int32_t *)data)[i] = (int32_t)number;
    if (dtype == RNNCC_F32) ((float *)data)[i] = strtof(words[i], NULL);
    if (dtype == RNNCC_BOOL) ((uint8_t *)data)[i] = number != 0;
    if (dtype == RNNCC_U8 || dtype == RNNCC_I8) ((uint8_t *)data)[i] = (uint8_t)number;
  }
  return graph_constant(graph, "list", dtype, scalar ? 0 : 1, &n, data);
}

static Value *symbolic(Graph *graph, char *list) {
  Value *value = graph_value(graph, "shape", LOCATION_FILE("test")), dims;
  set_dims(graph, &dims, list);
  value->dtype = RNNCC_I64;
  value->rank = 1;
  value->shape = ARENA_ARRAY(graph->arena, const Dim *, value->rank);
  value->shape[0] = dim_const(graph->dims, dims.rank);
  value->elements = dims.shape;
  value->is_input = true;
  return value;
}

static void add_input(Graph *graph, Value *value) {
  Value **inputs = ARENA_ARRAY(graph->arena, Value *, graph->n_inputs + 1);
  if (graph->n_inputs) memcpy(inputs, graph->inputs, (size_t)graph->n_inputs * sizeof *inputs);
  inputs[graph->n_inputs++] = value;
  graph->inputs = inputs;
  value->is_input = true;
}

static Value *tensor(Graph *graph, DType dtype, char *list) {
  char *end = strchr(list, ']');
  bool constant = end[1] == '!';
  *end = 0;
  Value *value = graph_value(graph, arena_format(graph->arena, "x%d", graph->n_values), LOCATION_FILE("test"));
  value->dtype = dtype;
  set_dims(graph, value, list);
  if (constant)
    value->data = counting(graph, dtype, value_count(value));
  else
    add_input(graph, value);
  return value;
}

static Value *parse_input(Graph *graph, char *word) {
  if (!strcmp(word, "_")) return NULL;
  if (*word == '@') return graph->nodes[atoi(word + 1)]->outputs[0];
  size_t length = strcspn(word, "[(=");
  char mark = word[length];
  word[length] = 0;
  char *rest = word + length + 1;
  if (mark == '(') rest[strcspn(rest, ")")] = 0;
  if (!strcmp(word, "shape")) return symbolic(graph, rest);
  DType dtype = dtype_from_name(word);
  if (dtype == RNNCC_NONE) bug("test: input %s", word);
  return mark == '[' ? tensor(graph, dtype, rest) : integers(graph, dtype, rest, mark == '(');
}

static void parse_list(Graph *graph, Attribute *attribute, char *list) {
  char *words[64];
  list[strcspn(list, "]")] = 0;
  int n = split_commas(list + 1, words);
  attribute->count = (size_t)n;
  attribute->ints = ARENA_ARRAY(graph->arena, int64_t, n);
  attribute->floats = ARENA_ARRAY(graph->arena, double, n);
  attribute->strings = ARENA_ARRAY(graph->arena, const char *, n);
  for (int i = 0; i < n; i++) {
    attribute->ints[i] = strtoll(words[i], NULL, 10);
    attribute->floats[i] = strtod(words[i], NULL);
    attribute->strings[i] = arena_string(graph->arena, words[i]);
  }
}

static void parse_attribute(Graph *graph, const Node *node, Attribute *attribute, char *word) {
  char *value = strchr(word, '=');
  *value++ = 0;
  const AttributeSpec *spec = op_attribute(node->op, attribute_find(word));
  if (!spec) bug("test: attribute %s", word);
  bool text = spec->kind == ATTRIBUTE_WORD || spec->kind == ATTRIBUTE_TYPE;
  *attribute = (Attribute){.name = arena_string(graph->arena, word), .where = node->where};
  attribute->kind = text ? ATTRIBUTE_STRING : spec->kind;
  attribute->i = strtoll(value, NULL, 10);
  attribute->f = strtod(value, NULL);
  attribute->s = arena_string(graph->arena, value);
  if (*value == '[') parse_list(graph, attribute, value);
  attribute_settle(node->op, attribute);
}

Node *build_node(Graph *graph, const char *op, const char *inputs, const char *attributes, int n_outputs) {
  Value *values[64] = {NULL};
  int n_inputs = 0;
  char *text = arena_string(graph->arena, inputs), *save;
  for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
    values[n_inputs++] = parse_input(graph, word);
  if (!op_find(op)) bug("test: no op %s", op);
  Node *node = graph_node(graph, op_find(op), op, n_inputs, n_outputs);
  for (int i = 0; i < n_inputs; i++) node->inputs[i] = values[i];
  for (int i = 0; i < n_outputs; i++)
    graph_set_output(node, i, graph_value(graph, arena_format(graph->arena, "y%d", graph->n_values), node->where));
  node->attributes = ARENA_ARRAY(graph->arena, Attribute, 16);
  text = arena_string(graph->arena, attributes);
  for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
    parse_attribute(graph, node, &node->attributes[node->n_attributes++], word);
  return node;
}

void build_output(Graph *graph, Value *value) {
  Value **outputs = ARENA_ARRAY(graph->arena, Value *, graph->n_outputs + 1);
  if (graph->n_outputs) memcpy(outputs, graph->outputs, (size_t)graph->n_outputs * sizeof *outputs);
  outputs[graph->n_outputs++] = value;
  graph->outputs = outputs;
}

const char *text_of(Graph *graph, const Value *value) {
  Text text = text_new(graph->arena);
  text_add(&text, "%s[", dtype_name(value->dtype));
  for (int axis = 0; axis < value->rank; axis++) {
    if (axis) text_add(&text, ", ");
    dim_print(&text, value->shape[axis]);
  }
  text_add(&text, "]");
  return text.data;
}

Node *producer_named(Graph *graph, const char *op) {
  for (int i = 0; i < graph->n_nodes; i++)
    if (!strcmp(graph->nodes[i]->op->name, op)) return graph->nodes[i];
  return NULL;
}

int count_nodes(const Graph *graph, const char *op) {
  int n = 0;
  for (int i = 0; i < graph->n_nodes; i++) n += !strcmp(graph->nodes[i]->op->name, op);
  return n;
}

static int captured = -1, real_stderr = -1;

/* Of many cases in one process: errors are counted anew, or the later ones would not be shown. */
void capture_errors(void) {
  forget_errors();
  captured = memfd_create("errors", 0);
  real_stderr = dup(STDERR_FILENO);
  dup2(captured, STDERR_FILENO);
}

const char *captured_errors(Arena *arena) {
  dup2(real_stderr, STDERR_FILENO);
  close(real_stderr);
  off_t length = lseek(captured, 0, SEEK_END);
  char *text = arena_alloc(arena, (size_t)length + 1);
  if (pread(captured, text, (size_t)length, 0) != length) bug("test: reading errors back");
  close(captured);
  return text;
}
