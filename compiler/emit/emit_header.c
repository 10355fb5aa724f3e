/* SPDX-License-Identifier: MIT */
/*
 * A header for the application that runs one module: what info says of it when it is loaded, as constants. Of a bundle
 * it has that of each network, and the networks' places.
 */
#include <limits.h>

#include "emit/header_names.h"
#include "emit/unit.h"
#include "sha256.h"
#include "support/numbers.h"

/* The names of a model as the header has them, each list as long as the graph's. */
typedef struct PartNames {
  const char **dims, **inputs, **outputs, **states;
} PartNames;

static const char **value_names(Arena *arena, Value *const *values, int count) {
  const char **names = ARENA_ARRAY(arena, const char *, count);
  for (int i = 0; i < count; i++) names[i] = values[i]->name;
  return header_names(arena, names, count);
}

static PartNames part_names(Arena *arena, const Graph *graph) {
  int n_dims = dim_given_count(graph->dims);
  const char **dims = ARENA_ARRAY(arena, const char *, n_dims);
  const char **states = ARENA_ARRAY(arena, const char *, graph->n_states);
  for (int i = 0; i < n_dims; i++) dims[i] = dim_symbol_at(graph->dims, i)->name;
  for (int i = 0; i < graph->n_states; i++) states[i] = graph->states[i].input->name;
  return (PartNames){.dims = header_names(arena, dims, n_dims),
                     .inputs = value_names(arena, graph->inputs, graph_own_inputs(graph)),
                     .outputs = value_names(arena, graph->outputs, graph_own_outputs(graph)),
                     .states = header_names(arena, states, graph->n_states)};
}

/* In an enum. One of C has values of an int only. */
static void add_number(Text *out, const char *name, const char *ending, int64_t number) {
  if (number >= INT_MIN && number <= INT_MAX)
    text_add(out, "  %s%s = %lld,\n", name, ending, (long long)number);
  else
    text_add(out, "#define %s%s INT64_C(%lld)\n", name, ending, (long long)number);
}

static void add_string(Text *out, const char *name, const char *string) {
  text_add(out, "#define %s_NAME ", name);
  text_quoted(out, string ? string : "");
  text_add(out, "\n");
}

static void add_dim(Text *out, const char *name, const DimSymbol *symbol) {
  text_add(out, "\n");
  add_string(out, name, symbol->name);
  text_add(out, "enum {\n");
  add_number(out, name, "", symbol->index);
  add_number(out, name, "_MIN", symbol->min);
  add_number(out, name, "_OPT", symbol->opt);
  add_number(out, name, "_MAX", symbol->max);
  if (symbol->multiple > 1) add_number(out, name, "_MULTIPLE", symbol->multiple);
  text_add(out, "};\n");
}

/* An initialiser of an rnncc_tensor, for C and C++. The dims of its shape are arguments, each once, in its order. */
static void add_input_tensor(Text *out, const char *name, const Value *value, const PartNames *names) {
  Text shape = text_new(out->arena);
  text_add(out, "#define %s_TENSOR(data, bytes", name);
  for (int axis = 0; axis < value->rank; axis++) {
    const DimSymbol *symbol = dim_as_symbol(value->shape[axis]);
    bool constant = dim_is_const(value->shape[axis]), again = false;
    for (int before = 0; before < axis; before++) again |= symbol && value->shape[before] == value->shape[axis];
    const char *argument = constant ? ""
                           : symbol ? arena_format(out->arena, "dim_%s", names->dims[symbol->index])
                                    : arena_format(out->arena, "extent_%d", axis);
    if (!constant && !again) text_add(out, ", %s", argument);
    text_add(&shape, axis ? ", " : "");
    if (constant)
      text_add(&shape, "%lld", (long long)dim_value(value->shape[axis]));
    else
      text_add(&shape, "(int64_t)(%s)", argument);
  }
  text_add(out, ") {sizeof(rnncc_tensor), %s, (void *)(data), (size_t)(bytes), %d, {%s}}\n",
           dtype_info(value->dtype)->constant, value->rank, value->rank ? shape.data : "0");
}

/* run() sets an output's shape. */
static void add_output_tensor(Text *out, const char *name, const Value *value) {
  text_add(out, "#define %s_TENSOR(data, bytes) {sizeof(rnncc_tensor), %s, (void *)(data), (size_t)(bytes), 0, {0}}\n",
           name, dtype_info(value->dtype)->constant);
}

static void add_type(Text *out, const char *name, const Value *value) {
  text_add(out, "\n");
  add_string(out, name, value->name);
  text_add(out, "#define %s_DTYPE %s\n", name, dtype_info(value->dtype)->constant);
}

/* The place, and what max_shape says. */
static void add_sizes(Text *out, const char *name, int index, const Value *value) {
  add_number(out, name, "", index);
  add_number(out, name, "_RANK", value->rank);
  for (int axis = 0; axis < value->rank; axis++)
    add_number(out, name, arena_format(out->arena, "_EXTENT_%d", axis), dim_upper(value->shape[axis]));
  add_number(out, name, "_MAX_BYTES", value_max_bytes(value));
}

static void add_input(Text *out, const char *name, int index, const Value *value, const PartNames *names) {
  add_type(out, name, value);
  add_input_tensor(out, name, value, names);
  text_add(out, "enum {\n");
  add_sizes(out, name, index, value);
  text_add(out, "};\n");
}

static void add_output(Text *out, const char *name, int index, const Value *value) {
  add_type(out, name, value);
  add_output_tensor(out, name, value);
  text_add(out, "enum {\n");
  add_sizes(out, name, index, value);
  text_add(out, "};\n");
}

static void add_state(Text *out, const char *name, int index, const State *state) {
  add_type(out, name, state->input);
  text_add(out, "enum {\n");
  add_sizes(out, name, index, state->input);
  add_number(out, name, "_BATCH_AXIS", state->batch_axis);
  add_number(out, name, "_SLOTS", state_slots(state));
  text_add(out, "};\n");
}

static int64_t part_bytes(int64_t count, int64_t bytes) {
  enum { ALIGNMENT = 64 };
  return round_up(count * bytes, ALIGNMENT);
}

/* As context_lay_out() of runtime/context.c lays it out, where pointers have 64 bits or less. */
int64_t context_bytes(const Program *program) {
  enum { STRUCT_BYTES = 512, POINTER_BYTES = 8, SHAPE_BYTES = 64, STEP_BYTES = 24, ENTRY_BYTES = 80 };
  const Graph *graph = program->graph;
  int64_t steps = graph->config->edge ? 0 : program->n_calls;
  int64_t bytes = STRUCT_BYTES + part_bytes(dim_known_count(graph->dims), sizeof(int64_t)) +
                  part_bytes(graph_first_parameter(graph), POINTER_BYTES) +
                  part_bytes(graph_first_gradient(graph), POINTER_BYTES) +
                  part_bytes(graph_own_outputs(graph), SHAPE_BYTES) + part_bytes(steps, STEP_BYTES) +
                  part_bytes(steps, ENTRY_BYTES) + part_bytes(graph->n_states, POINTER_BYTES);
  for (int i = 0; i < graph->n_states; i++) bytes += part_bytes(1, value_max_bytes(graph->states[i].input));
  return bytes + part_bytes(1, program->arena_bytes) + part_bytes(1, program->parameter_bytes) +
         part_bytes(1, program->trained_bytes);
}

/* As training_checkpoint_bytes() of runtime/checkpoint.c counts them: statistics have no means. */
static int64_t checkpoint_bytes(const Graph *graph) {
  enum { HEAD_BYTES = 40, COUNT_BYTES = 8, ROWS = 3 };
  int64_t bytes = HEAD_BYTES + COUNT_BYTES * (graph->n_parameters - graph->n_statistics);
  for (int i = 0; i < graph->n_parameters; i++)
    bytes += value_max_bytes(graph->inputs[graph_first_parameter(graph) + i]) *
             (i < graph->n_parameters - graph->n_statistics ? ROWS : 1);
  for (int i = 0; i < graph->n_states; i++) bytes += value_max_bytes(graph->states[i].input);
  return bytes;
}

static void add_networks(Text *out, const HeaderPart *parts, int count, const char *name) {
  if (!parts->network) return;
  text_add(out, "\n/* Places of the networks in `networks` of each table. */\nenum {\n  %s_NETWORKS = %d,\n", name,
           count);
  for (int i = 0; i < count; i++) text_add(out, "  %s_NETWORK_%s = %d,\n", name, parts[i].network, i);
  text_add(out, "};\n");
}

static void add_counts(Text *out, const HeaderPart *part) {
  const Graph *graph = part->program->graph;
  text_add(out, "\n");
  add_string(out, part->prefix, graph->name);
  text_add(out, "enum {\n");
  add_number(out, part->prefix, "_DIMS", dim_given_count(graph->dims));
  add_number(out, part->prefix, "_INPUTS", graph_own_inputs(graph));
  add_number(out, part->prefix, "_OUTPUTS", graph_own_outputs(graph));
  add_number(out, part->prefix, "_STATES", graph->n_states);
  add_number(out, part->prefix, "_CONTEXT_BYTES", part->context_bytes);
  if (graph->n_parameters) add_number(out, part->prefix, "_CHECKPOINT_BYTES", checkpoint_bytes(graph));
  text_add(out, "};\n");
}

static const char *whole_name(Arena *arena, const HeaderPart *part, const char *kind, const char *name) {
  return arena_format(arena, "%s_%s_%s", part->prefix, kind, name);
}

static void add_part(Text *out, const HeaderPart *part) {
  const Graph *graph = part->program->graph;
  PartNames names = part_names(out->arena, graph);
  add_counts(out, part);
  for (int i = 0; i < dim_given_count(graph->dims); i++)
    add_dim(out, whole_name(out->arena, part, "DIM", names.dims[i]), dim_symbol_at(graph->dims, i));
  for (int i = 0; i < graph_own_inputs(graph); i++)
    add_input(out, whole_name(out->arena, part, "INPUT", names.inputs[i]), i, graph->inputs[i], &names);
  for (int i = 0; i < graph_own_outputs(graph); i++)
    add_output(out, whole_name(out->arena, part, "OUTPUT", names.outputs[i]), i, graph->outputs[i]);
  for (int i = 0; i < graph->n_states; i++)
    add_state(out, whole_name(out->arena, part, "STATE", names.states[i]), i, &graph->states[i]);
}

static const char explanation[] =
    "\n/*\n * DIMS, INPUTS, OUTPUTS and STATES are counts. DIM_T, INPUT_x, OUTPUT_y and STATE_h are places in their "
    "lists, and\n"
    " * of what has that NAME:\n"
    " *   MIN, OPT, MAX      the dim's bounds, and what the module is fastest for\n"
    " *   MULTIPLE           of which all its values are multiples, where that is not 1\n"
    " *   DTYPE, RANK        as of rnncc_tensor\n"
    " *   EXTENT_0, ...      the length of an axis, or the largest of one that the run knows\n"
    " *   MAX_BYTES          of the largest shape; of a state, of all its SLOTS\n"
    " *   TENSOR(data, ...)  initialises an rnncc_tensor; `bytes` is the size of the buffer\n"
    " * CONTEXT_BYTES is enough for context_create, 64-byte aligned. Of a module that trains, CHECKPOINT_BYTES is "
    "what\n"
    " * checkpoint_bytes() returns.\n */\n";

static Text emit_body(Arena *arena, const HeaderPart *parts, int count, const char *name) {
  Text out = text_new(arena);
  text_add(&out, "\n#include \"rnncc.h\"\n%s", explanation);
  add_networks(&out, parts, count, name);
  for (int i = 0; i < count; i++) add_part(&out, &parts[i]);
  text_add(&out, "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
  text_add(&out, "const rnncc_api *%s_module_query(uint32_t abi, const char **why); /* of the static library */\n",
           name);
  text_add(&out, "#ifdef __cplusplus\n}\n#endif\n\n");
  return out;
}

/* A second header of the name is left out if it says the same, and is an error else. */
Text emit_header(Arena *arena, const HeaderPart *parts, int count, const char *name) {
  Text body = emit_body(arena, parts, count, name), out = text_new(arena);
  uint8_t digest[SHA256_BYTES];
  char hex[SHA256_HEX_BYTES];
  sha256(body.data, body.length, digest);
  sha256_hex(digest, hex);
  text_add(&out, "/* Generated by rnncc: what a module takes, returns and keeps. */\n");
  text_add(&out, "#ifndef RNNCC_GENERATED_%s_H\n#define RNNCC_GENERATED_%s_H 0x%.8s\n", name, name, hex);
  text_add(&out, "%s#elif RNNCC_GENERATED_%s_H != 0x%.8s\n", body.data, name, hex);
  text_add(&out, "#error \"another model's header has the name %s, too; rnncc --name=NAME gives one another name\"\n",
           name);
  text_add(&out, "#endif\n");
  return out;
}
