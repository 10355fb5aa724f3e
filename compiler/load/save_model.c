/* SPDX-License-Identifier: MIT */
/* Writes the graph as a model file, for --emit=graph: loading it gives the same graph. */
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/bodies.h"
#include "ir/op.h"
#include "ir/tensor.h"
#include "load/load.h"
#include "load/names.h"
#include "sha256.h"
#include "support/files.h"
#include "support/list.h"
#include "support/text.h"

typedef struct Saver {
  Arena *arena;
  const Graph *graph;
  int n_values, value_capacity;
  Value **values;     /* of the graph and its bodies; ids are indices here */
  const char **names; /* by value id: unique, but a captured value has the name of the value around the body */
  Text json, header;  /* of the model and of its weights file */
  Text data;          /* the weights file's data */
} Saver;

static void add_string(Text *json, const char *string) {
  text_add(json, "\"");
  for (const char *c = string; *c; c++) {
    if (*c == '"' || *c == '\\')
      text_add(json, "\\%c", *c);
    else if ((unsigned char)*c < 0x20)
      text_add(json, "\\u%04x", (unsigned)*c);
    else
      text_bytes(json, c, 1);
  }
  text_add(json, "\"");
}

static const char *separator(int i) { return i > 0 ? ", " : ""; }

/* Passes may give two values one name, or none. */
static void name_value(Saver *saver, NameTable *table, const Value *value) {
  const char *name = value->name ? value->name : "";
  for (int attempt = 0; *name == 0 || name_find(table, name); attempt++)
    name = attempt ? arena_format(saver->arena, "t%d_%d", value->id, attempt)
                   : arena_format(saver->arena, "t%d", value->id);
  name_declare(table, name, LOCATION_FILE(saver->graph->file));
  saver->names[value->id] = name;
}

static void take_value(Saver *saver, Value *value) {
  value->id = saver->n_values;
  *LIST_ADD(saver->arena, saver->values, saver->n_values, saver->value_capacity) = value;
}

/* Bodies may share values until shapes are inferred; here each gets its own. */
static void take_values(Saver *saver, Graph *graph) {
  Attribute *bodies[MAX_BODIES];
  for (int i = 0; i < graph->n_values; i++) take_value(saver, graph->values[i]);
  for (int n = 0; n < graph->n_nodes; n++)
    for (int count = node_bodies(graph->nodes[n], bodies), b = 0; b < count; b++) {
      bodies[b]->graph = body_clone(graph, bodies[b]->graph);
      take_values(saver, bodies[b]->graph);
    }
}

static void name_body(Saver *saver, NameTable *table, const Node *node, const Graph *body);

static void name_bodies(Saver *saver, NameTable *table, const Graph *graph) {
  Attribute *bodies[MAX_BODIES];
  for (int n = 0; n < graph->n_nodes; n++)
    for (int count = node_bodies(graph->nodes[n], bodies), b = 0; b < count; b++)
      name_body(saver, table, graph->nodes[n], bodies[b]->graph);
}

static void name_body(Saver *saver, NameTable *table, const Node *node, const Graph *body) {
  for (int i = 1; i <= node->n_captures; i++)
    saver->names[body->inputs[body->n_inputs - i]->id] = saver->names[node->inputs[node->n_inputs - i]->id];
  for (int i = 0; i < body->n_values; i++)
    if (!saver->names[body->values[i]->id]) name_value(saver, table, body->values[i]);
  name_bodies(saver, table, body);
}

/* Inputs and outputs first: their names are the module's interface. */
static void name_values(Saver *saver) {
  const Graph *graph = saver->graph;
  NameTable table = name_table_new(saver->arena, NULL);
  saver->names = ARENA_ARRAY(saver->arena, const char *, saver->n_values);
  for (int i = 0; i < graph->n_inputs; i++) name_value(saver, &table, graph->inputs[i]);
  for (int i = 0; i < graph->n_states; i++) name_value(saver, &table, graph->states[i].input);
  for (int i = 0; i < graph->n_outputs; i++)
    if (!saver->names[graph->outputs[i]->id]) name_value(saver, &table, graph->outputs[i]);
  for (int i = 0; i < graph->n_values; i++)
    if (!saver->names[graph->values[i]->id]) name_value(saver, &table, graph->values[i]);
  name_bodies(saver, &table, graph);
}

static void add_name(Saver *saver, const Value *value) {
  add_string(&saver->json, value ? saver->names[value->id] : "");
}

static void add_names(Saver *saver, const char *key, Value *const *values, int n) {
  text_add(&saver->json, "\"%s\": [", key);
  for (int i = 0; i < n; i++) {
    text_add(&saver->json, "%s", separator(i));
    add_name(saver, values[i]);
  }
  text_add(&saver->json, "]");
}

static void add_shape(Text *json, const Value *value) {
  text_add(json, "\"shape\": [");
  for (int axis = 0; axis < value->rank; axis++) {
    const DimSymbol *symbol = dim_as_symbol(value->shape[axis]);
    text_add(json, "%s", separator(axis));
    if (symbol)
      add_string(json, symbol->name);
    else
      text_add(json, "%" PRId64, dim_value(value->shape[axis]));
  }
  text_add(json, "]");
}

static void add_type(Text *json, const Value *value) {
  text_add(json, "\"dtype\": \"%s\", ", dtype_name(value->dtype));
  add_shape(json, value);
}

/* A section of the model file: `  "key": [` or `{`, one entry a line. */
static void begin_list(Saver *saver, const char *key, char bracket) {
  text_add(&saver->json, ",\n  \"%s\": %c", key, bracket);
}
static void begin_entry(Saver *saver, int i) { text_add(&saver->json, "%s\n    ", i > 0 ? "," : ""); }
static void end_list(Saver *saver, int count, char bracket) {
  text_add(&saver->json, "%s%c", count > 0 ? "\n  " : "", bracket);
}

static void add_dims(Saver *saver) {
  const DimTable *dims = saver->graph->dims;
  begin_list(saver, "dims", '{');
  for (int i = 0; i < dim_symbol_count(dims); i++) {
    const DimSymbol *symbol = dim_symbol_at(dims, i);
    begin_entry(saver, i);
    add_string(&saver->json, symbol->name);
    text_add(&saver->json, ": {\"min\": %" PRId64 ", \"opt\": %" PRId64 ", \"max\": %" PRId64, symbol->min, symbol->opt,
             symbol->max);
    if (symbol->multiple > 1) text_add(&saver->json, ", \"multiple\": %" PRId64, symbol->multiple);
    text_add(&saver->json, "}");
  }
  end_list(saver, dim_symbol_count(dims), '}');
}

static void add_inputs(Saver *saver) {
  const Graph *graph = saver->graph;
  begin_list(saver, "inputs", '[');
  for (int i = 0; i < graph->n_inputs; i++) {
    begin_entry(saver, i);
    text_add(&saver->json, "{\"name\": ");
    add_name(saver, graph->inputs[i]);
    text_add(&saver->json, ", ");
    add_type(&saver->json, graph->inputs[i]);
    text_add(&saver->json, "}");
  }
  end_list(saver, graph->n_inputs, ']');
}

static void add_states(Saver *saver) {
  const Graph *graph = saver->graph;
  begin_list(saver, "states", '[');
  for (int i = 0; i < graph->n_states; i++) {
    const State *state = &graph->states[i];
    begin_entry(saver, i);
    text_add(&saver->json, "{\"input\": ");
    add_name(saver, state->input);
    text_add(&saver->json, ", \"output\": ");
    add_name(saver, state->output);
    text_add(&saver->json, ", ");
    add_type(&saver->json, state->input);
    if (state->batch_axis >= 0) text_add(&saver->json, ", \"batch_axis\": %d", state->batch_axis);
    text_add(&saver->json, "}");
  }
  end_list(saver, graph->n_states, ']');
}

/* JSON has no infinity and no NaN: they are written as strings. */
static void add_float(Text *json, double value, int digits) {
  if (isnan(value))
    text_add(json, "\"nan\"");
  else if (isinf(value))
    text_add(json, "\"%sinf\"", value < 0 ? "-" : "");
  else
    text_add(json, "%.*g", digits, value);
}

static void add_number(Text *json, double value) {
  if (!isfinite(value)) bug("an attribute that is not finite has no JSON form");
  char text[32];
  snprintf(text, sizeof text, "%.17g", value);
  text_add(json, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static void add_element(Text *json, const Value *value, int64_t i) {
  if (dtype_is_float(value->dtype))
    add_float(json, value_element(value, i), value->dtype == RNNCC_F64 ? 17 : 9);
  else if (dtype_info(value->dtype)->kind == DTYPE_UNSIGNED)
    text_add(json, "%" PRIu64, (uint64_t)value_integer(value, i));
  else
    text_add(json, "%" PRId64, value_integer(value, i));
}

static void add_tensor(Text *json, const Value *value) {
  text_add(json, "{");
  add_type(json, value);
  text_add(json, ", \"data\": [");
  for (int64_t i = 0; i < value_count(value); i++) {
    text_add(json, "%s", separator(i > 0));
    add_element(json, value, i);
  }
  text_add(json, "]}");
}

static void add_list(Text *json, const Attribute *attribute) {
  text_add(json, "[");
  for (size_t i = 0; i < attribute->count; i++) {
    text_add(json, "%s", separator(i > 0));
    if (attribute->kind == ATTRIBUTE_STRINGS)
      add_string(json, attribute->strings[i]);
    else if (attribute->kind == ATTRIBUTE_FLOATS)
      add_number(json, attribute->floats[i]);
    else
      text_add(json, "%" PRId64, attribute->ints[i]);
  }
  text_add(json, "]");
}

static void add_node(Saver *saver, const Node *node);

static void add_body(Saver *saver, const Node *node, const Graph *body) {
  text_add(&saver->json, "{");
  add_names(saver, "inputs", body->inputs, body->n_inputs - node->n_captures);
  text_add(&saver->json, ", ");
  add_names(saver, "outputs", body->outputs, body->n_outputs);
  text_add(&saver->json, ", \"nodes\": [");
  for (int i = 0; i < body->n_nodes; i++) {
    text_add(&saver->json, "%s", separator(i));
    add_node(saver, body->nodes[i]);
  }
  text_add(&saver->json, "]}");
}

static void add_attribute(Saver *saver, const Node *node, const Attribute *attribute) {
  Text *json = &saver->json;
  add_string(json, attribute->name);
  text_add(json, ": ");
  switch (attribute->kind) {
  case ATTRIBUTE_INT:
    text_add(json, "%" PRId64, attribute->i);
    break;
  case ATTRIBUTE_FLOAT:
    add_number(json, attribute->f);
    break;
  case ATTRIBUTE_STRING:
  case ATTRIBUTE_WORD:
  case ATTRIBUTE_TYPE:
    add_string(json, attribute->s);
    break;
  case ATTRIBUTE_TENSOR:
    add_tensor(json, attribute->tensor);
    break;
  case ATTRIBUTE_GRAPH:
    add_body(saver, node, attribute->graph);
    break;
  default:
    add_list(json, attribute);
  }
}

static void add_node(Saver *saver, const Node *node) {
  if (node->n_epilogue > 0) bug("save_model after fuse_epilogue");
  text_add(&saver->json, "{\"op\": \"%s\", \"name\": ", node->op->name);
  add_string(&saver->json, node->name);
  text_add(&saver->json, ", ");
  add_names(saver, "inputs", node->inputs, node->n_inputs - node->n_captures);
  text_add(&saver->json, ", ");
  add_names(saver, "outputs", node->outputs, node->n_outputs);
  if (node->n_attributes > 0) text_add(&saver->json, ", \"attributes\": {");
  for (int i = 0; i < node->n_attributes; i++) {
    text_add(&saver->json, "%s", separator(i));
    add_attribute(saver, node, &node->attributes[i]);
  }
  text_add(&saver->json, "%s}", node->n_attributes > 0 ? "}" : "");
}

static void add_nodes(Saver *saver) {
  begin_list(saver, "nodes", '[');
  for (int i = 0; i < saver->graph->n_nodes; i++) {
    begin_entry(saver, i);
    add_node(saver, saver->graph->nodes[i]);
  }
  end_list(saver, saver->graph->n_nodes, ']');
}

static void add_weight(Saver *saver, const Value *value) {
  size_t begin = saver->data.length;
  text_bytes(&saver->data, value->data, (size_t)value_count(value) * dtype_size(value->dtype));
  text_add(&saver->header, "%s", saver->header.length > 1 ? ", " : "");
  add_string(&saver->header, saver->names[value->id]);
  text_add(&saver->header, ": {\"dtype\": \"%s\", ", dtype_info(value->dtype)->safetensors);
  add_shape(&saver->header, value);
  text_add(&saver->header, ", \"data_offsets\": [%zu, %zu]}", begin, saver->data.length);
}

/* Types that safetensors has no name for stand in the model itself. */
static bool is_inline(const Value *value) { return value_is_constant(value) && !dtype_info(value->dtype)->safetensors; }

static void add_inline_constants(Saver *saver) {
  int n = 0;
  for (int i = 0; i < saver->n_values; i++) {
    if (!is_inline(saver->values[i])) continue;
    text_add(&saver->json, n++ ? ",\n    " : ",\n  \"constants\": {\n    ");
    add_string(&saver->json, saver->names[saver->values[i]->id]);
    text_add(&saver->json, ": ");
    add_tensor(&saver->json, saver->values[i]);
  }
  text_add(&saver->json, n ? "\n  }" : "");
}

/* The widest types first, so that every tensor is aligned to its element. */
static Text weights_file(Saver *saver) {
  text_add(&saver->header, "{");
  for (size_t size = 8; size > 0; size /= 2)
    for (int i = 0; i < saver->n_values; i++)
      if (value_is_constant(saver->values[i]) && !is_inline(saver->values[i]) &&
          dtype_size(saver->values[i]->dtype) == size)
        add_weight(saver, saver->values[i]);
  text_add(&saver->header, "}");
  while (saver->header.length % 8) text_add(&saver->header, " ");
  Text file = text_new(saver->arena);
  uint64_t length = saver->header.length;
  text_bytes(&file, (const char *)&length, sizeof length);
  text_bytes(&file, saver->header.data, saver->header.length);
  text_bytes(&file, saver->data.data, saver->data.length);
  return file;
}

static void add_weights_reference(Saver *saver, const char *path, const Text *file) {
  uint8_t digest[SHA256_BYTES];
  char hex[SHA256_HEX_BYTES];
  sha256(file->data, file->length, digest);
  sha256_hex(digest, hex);
  text_add(&saver->json, ",\n  \"weights\": [{\"file\": ");
  add_string(&saver->json, file_last_part(path));
  text_add(&saver->json, ", \"sha256\": \"%s\"}]", hex);
}

static void add_model(Saver *saver, const char *weights_path, const Text *weights) {
  const Graph *graph = saver->graph;
  text_add(&saver->json, "{\n  \"format\": \"rnncc\",\n  \"version\": 1,\n  \"name\": ");
  add_string(&saver->json, graph->name);
  if (*graph->version) {
    text_add(&saver->json, ",\n  \"model_version\": ");
    add_string(&saver->json, graph->version);
  }
  add_dims(saver);
  add_inputs(saver);
  add_states(saver);
  text_add(&saver->json, ",\n  ");
  add_names(saver, "outputs", graph->outputs, graph->n_outputs);
  add_weights_reference(saver, weights_path, weights);
  add_inline_constants(saver);
  add_nodes(saver);
  text_add(&saver->json, "\n}\n");
}

void save_model(Arena *arena, Graph *graph, const char *json_path) {
  Saver saver = {
      .arena = arena, .graph = graph, .json = text_new(arena), .header = text_new(arena), .data = text_new(arena)};
  locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(plain); /* 0.5, never 0,5 */
  const char *weights_path = file_with_suffix(arena, json_path, ".safetensors");
  take_values(&saver, graph);
  name_values(&saver);
  Text weights = weights_file(&saver);
  add_model(&saver, weights_path, &weights);
  uselocale(before);
  freelocale(plain);
  file_write(arena, weights_path, weights.data, weights.length);
  file_write(arena, json_path, saver.json.data, saver.json.length);
}
