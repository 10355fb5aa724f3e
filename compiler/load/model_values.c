/* SPDX-License-Identifier: MIT */
/* What a model declares besides its nodes: dims, inputs, states, outputs, weights and inline constants. */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "load/model.h"
#include "load/safetensors.h"
#include "support/closest.h"

static const int64_t MAX_EXTENT = INT32_MAX;              /* of a named dim: fits every index type in emitted C */
static const int64_t MAX_TENSOR_BYTES = (int64_t)1 << 40; /* of an input at the dims' maxima */
static const size_t MAX_WEIGHTS_BYTES = (size_t)1 << 40;

static const JsonField DIM_FIELDS[] = {{"min", JSON_NUMBER, false},
                                       {"opt", JSON_NUMBER, false},
                                       {"max", JSON_NUMBER, true},
                                       {"multiple", JSON_NUMBER, false},
                                       {NULL, JSON_ABSENT, false}};
static const JsonField INPUT_FIELDS[] = {{"name", JSON_STRING, true},
                                         {"dtype", JSON_STRING, true},
                                         {"shape", JSON_ARRAY, true},
                                         {"description", JSON_STRING, false},
                                         {NULL, JSON_ABSENT, false}};
static const JsonField STATE_FIELDS[] = {{"input", JSON_STRING, true},       {"output", JSON_STRING, true},
                                         {"dtype", JSON_STRING, true},       {"shape", JSON_ARRAY, true},
                                         {"batch_axis", JSON_NUMBER, false}, {"description", JSON_STRING, false},
                                         {NULL, JSON_ABSENT, false}};
static const JsonField OUTPUT_FIELDS[] = {
    {"name", JSON_STRING, true}, {"description", JSON_STRING, false}, {NULL, JSON_ABSENT, false}};
static const JsonField WEIGHTS_FIELDS[] = {
    {"file", JSON_STRING, true}, {"sha256", JSON_STRING, false}, {NULL, JSON_ABSENT, false}};

static bool read_extent(Json dim, const char *key, int64_t least, int64_t *out) {
  Json extent = json_member(dim, key);
  return !extent.item || json_get_int(extent, least, MAX_EXTENT, out);
}

/* Absent: min is the least multiple, opt is max. */
static bool read_bounds(Json dim, DimBounds *bounds) {
  if (!read_extent(dim, "multiple", 1, &bounds->multiple) || !read_extent(dim, "max", 0, &bounds->max)) return false;
  bounds->min = bounds->multiple;
  bounds->opt = bounds->max;
  return read_extent(dim, "min", 0, &bounds->min) && read_extent(dim, "opt", 0, &bounds->opt);
}

void read_dims(ModelReader *reader, Json dims) {
  reader->dims = dims;
  for (Json dim = json_first(dims); dim.item; dim = json_next(dim)) {
    DimBounds bounds = {1, 1, 1, 1};
    if (!json_check(dim, DIM_FIELDS) || !read_bounds(dim, &bounds)) continue;
    const Setting *set = settings_find(reader->settings, SETTING_DIM, json_key(dim));
    if (set) bounds = set->dim;
    const char *fault = dim_bounds_fault(reader->arena, bounds);
    if (*json_key(dim) == 0)
      error_at(json_where(dim), EXIT_INVALID, "the name is empty");
    else if (fault)
      error_at(json_where(dim), EXIT_INVALID, "%s", fault);
    else
      dim_symbol_add(reader->graph->dims, json_key(dim), bounds);
  }
}

static const Dim *read_named_dim(ModelReader *reader, Json name) {
  DimTable *dims = reader->graph->dims;
  const DimSymbol *symbol = dim_symbol_find(dims, json_text(name));
  if (symbol) return dim_symbol(dims, symbol);
  if (json_member(reader->dims, json_text(name)).item) return NULL; /* its error is told */
  Closest closest = closest_to(json_text(name));
  for (int i = 0; i < dim_symbol_count(dims); i++) closest_try(&closest, dim_symbol_at(dims, i)->name);
  error_at(json_where(name), EXIT_INVALID, "\"dims\" has no \"%s\"%s", short_name(reader->arena, json_text(name)),
           closest_hint(reader->arena, &closest));
  return NULL;
}

static const Dim *read_axis(ModelReader *reader, Json axis) {
  int64_t length;
  if (json_kind(axis) == JSON_STRING) return read_named_dim(reader, axis);
  return json_get_int(axis, 0, INT64_MAX, &length) ? dim_const(reader->graph->dims, length) : NULL;
}

/* Sets rank and shape. False after an error. */
static bool read_shape(ModelReader *reader, Json shape, Value *value) {
  int rank = json_count(shape), axis = 0;
  if (rank > MAX_RANK) {
    error_at(json_where(shape), EXIT_UNSUPPORTED, "rank %d; at most %d is supported", rank, MAX_RANK);
    return false;
  }
  bool good = true;
  value->rank = rank;
  value->shape = ARENA_ARRAY(reader->arena, const Dim *, rank);
  for (Json entry = json_first(shape); axis < rank; entry = json_next(entry), axis++)
    good &= (value->shape[axis] = read_axis(reader, entry)) != NULL;
  if (good && value->dtype != RNNCC_NONE && value_max_bytes(value) > MAX_TENSOR_BYTES) {
    error_at(json_where(shape), EXIT_LIMIT, "the tensor may have more than %" PRId64 " bytes", MAX_TENSOR_BYTES);
    return false;
  }
  return good;
}

/* Its error is told; those who read it have none. */
static void refuse(Value *value) {
  value->refused = true;
  value->rank = -1;
}

/* Dtype and shape of an input or state. */
static void read_type(ModelReader *reader, Json json, Value *value) {
  value->dtype = read_dtype(json_member(json, "dtype"));
  if (!read_shape(reader, json_member(json, "shape"), value) || value->dtype == RNNCC_NONE) refuse(value);
}

Value *declare_value(ModelReader *reader, Json name) {
  bool readable = json_expect(name, JSON_STRING);
  Name *declared = readable ? name_declare(&reader->names, json_text(name), json_where(name)) : NULL;
  if (!readable) reader->names.has_nameless = true;
  Value *value = graph_value(reader->graph, readable ? json_text(name) : "", json_where(name));
  if (declared) declared->value = value;
  return value;
}

static Value *read_input(ModelReader *reader, Json json, Json name) {
  Value *value = declare_value(reader, name);
  value->where = json_where(json);
  value->is_input = true;
  read_type(reader, json, value);
  return value;
}

static void read_graph_input(ModelReader *reader, Json input, Json name) {
  Graph *graph = reader->graph;
  Value *value = read_input(reader, input, name);
  const Setting *frozen = settings_find(reader->settings, SETTING_FREEZE, value->name);
  if (!frozen)
    graph->inputs[graph->n_inputs++] = value;
  else if (!value->refused)
    settings_freeze(graph, frozen, value);
}

/* Its error is told. */
static void declare_refused(ModelReader *reader, Json name) {
  if (json_kind(name) != JSON_STRING) {
    reader->names.has_nameless = true;
    return;
  }
  refuse(declare_value(reader, name));
}

void read_inputs(ModelReader *reader, Json inputs) {
  Graph *graph = reader->graph;
  graph->inputs = ARENA_ARRAY(reader->arena, Value *, json_count(inputs));
  for (Json input = json_first(inputs); input.item; input = json_next(input))
    if (json_check(input, INPUT_FIELDS))
      read_graph_input(reader, input, json_member(input, "name"));
    else
      declare_refused(reader, json_member(input, "name"));
}

/* A context holds the state at one size; only the batch axis may vary. */
static bool check_state_shape(Json json, const State *state) {
  bool good = true;
  for (int axis = 0; axis < state->input->rank; axis++) {
    if (axis == state->batch_axis || dim_is_const(state->input->shape[axis])) continue;
    error_at(json_where(json_member(json, "shape")), EXIT_INVALID,
             "axis %d is a named dim, which only the axis that \"batch_axis\" names may be", axis);
    good = false;
  }
  return good;
}

/* False after an error. */
static bool read_batch_axis(Json json, State *state) {
  Json batch_axis = json_member(json, "batch_axis");
  int64_t axis = -1;
  if (batch_axis.item && state->input->rank == 0) {
    error_at(json_where(batch_axis), EXIT_INVALID, "the state is one number, of the shape [], and has no axes");
    return false;
  }
  if (batch_axis.item && !json_get_int(batch_axis, 0, state->input->rank - 1, &axis)) return false;
  state->batch_axis = (int)axis;
  return check_state_shape(json, state);
}

void read_states(ModelReader *reader, Json states) {
  Graph *graph = reader->graph;
  graph->states = ARENA_ARRAY(reader->arena, State, json_count(states));
  reader->state_outputs = ARENA_ARRAY(reader->arena, Json, json_count(states));
  for (Json json = json_first(states); json.item; json = json_next(json)) {
    if (!json_check(json, STATE_FIELDS)) {
      declare_refused(reader, json_member(json, "input"));
      continue;
    }
    reader->state_outputs[graph->n_states] = json_member(json, "output");
    State *state = &graph->states[graph->n_states++];
    *state = (State){.input = read_input(reader, json, json_member(json, "input")), .batch_axis = -1};
    if (!state->input->refused && !read_batch_axis(json, state)) refuse(state->input);
  }
}

Value *read_value(ModelReader *reader, Json json) {
  Name *name = name_resolve(&reader->names, json_text(json), json_where(json));
  if (!name) return NULL;
  if (!name->value && name->constant) {
    name->value = constant_value(reader->graph, name->constant);
    if (name->value) name->value->is_weight = true;
  }
  if (!name->value) name->constant = NULL; /* its error is told */
  return name->value;
}

static void read_output(ModelReader *reader, Json output) {
  Graph *graph = reader->graph;
  Json name = output;
  if (json_kind(output) == JSON_OBJECT) {
    if (!json_check(output, OUTPUT_FIELDS)) return;
    name = json_member(output, "name");
  }
  Value *value = json_expect(name, JSON_STRING) ? read_value(reader, name) : NULL;
  if (!value) return;
  graph->outputs[graph->n_outputs++] = value;
  for (int i = 0; i < graph->n_outputs - 1; i++) {
    if (graph->outputs[i] != value) continue;
    error_at(json_where(name), EXIT_INVALID, "the output \"%s\" is listed twice",
             short_name(reader->arena, value->name));
    return;
  }
}

void read_results(ModelReader *reader, Json outputs) {
  Graph *graph = reader->graph;
  graph->outputs = ARENA_ARRAY(reader->arena, Value *, json_count(outputs));
  for (Json output = json_first(outputs); output.item; output = json_next(output)) read_output(reader, output);
  for (int i = 0; i < graph->n_states; i++) graph->states[i].output = read_value(reader, reader->state_outputs[i]);
}

static void declare_constant(ModelReader *reader, const Constant *constant, bool good) {
  Name *name = name_declare(&reader->names, constant->name, constant->where);
  if (name && good) name->constant = constant;
}

static void check_hash(Json expected, const uint8_t digest[SHA256_BYTES]) {
  char hex[SHA256_HEX_BYTES];
  sha256_hex(digest, hex);
  if (!expected.item || strcasecmp(json_text(expected), hex) == 0) return;
  error_at(json_where(expected), EXIT_INVALID, "the file's SHA-256 is %s; \"%s\" is expected", hex,
           short_name(json_arena(expected), json_text(expected)));
}

static void read_weights_file(ModelReader *reader, Json json) {
  Json file = json_member(json, "file");
  ModelFiles *files = reader->settings ? reader->settings->files : NULL;
  FileBytes bytes = model_file_read_beside(files, reader->arena, reader->graph->file, json_text(file),
                                           MAX_WEIGHTS_BYTES, json_where(file));
  uint8_t digest[SHA256_BYTES];
  sha256(bytes.data, bytes.size, digest);
  sha256_add(&reader->hash, digest, sizeof digest);
  check_hash(json_member(json, "sha256"), digest);
  int count;
  Constant *constants = safetensors_read(reader->arena, json_text(file), bytes, &count);
  for (int i = 0; i < count; i++) declare_constant(reader, &constants[i], true);
}

void read_weights(ModelReader *reader, Json weights) {
  for (Json file = json_first(weights); file.item; file = json_next(file))
    if (json_check(file, WEIGHTS_FIELDS))
      read_weights_file(reader, file);
    else
      reader->names.has_nameless = true; /* all that the file has */
}

void read_constants(ModelReader *reader, Json constants) {
  for (Json json = json_first(constants); json.item; json = json_next(json)) {
    Constant *constant = ARENA_NEW(reader->arena, Constant);
    declare_constant(reader, constant, constant_read(json, json_key(json), constant));
  }
}
