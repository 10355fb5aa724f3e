/* SPDX-License-Identifier: MIT */
/* An ONNX file as a whole: https://onnx.ai/onnx/repo-docs/IR.html. */
#include <inttypes.h>

#include "load/onnx/onnx.h"
#include "load/onnx/reader.h"
#include "load/onnx/wire.h"
#include "passes.h"

enum { OLDEST_OPSET = 1, NEWEST_OPSET = 28 };
static const size_t MAX_MODEL_BYTES = (size_t)1 << 31; /* protobuf's own limit */

Graph *onnx_read_body(OnnxReader *reader, const Draft *draft, const Onnx__GraphProto *proto, const char *name) {
  Scope *outer = draft->scope;
  Scope *scope = ARENA_NEW(reader->arena, Scope);
  Graph *graph = ARENA_NEW(reader->arena, Graph);
  *graph =
      (Graph){.arena = reader->arena, .dims = reader->graph->dims, .name = name, .version = "", .file = reader->file};
  *scope = (Scope){.names = name_table_new(reader->arena, &outer->names),
                   .outer = outer,
                   .graph = graph,
                   .prefix = outer->prefix,
                   .opset = outer->opset};
  onnx_declare_constants(reader, scope, proto);
  onnx_declare_inputs(reader, scope, proto);
  onnx_carry_sequences(reader, draft, graph);
  onnx_read_nodes(reader, scope, proto->n_node, proto->node);
  bool good = onnx_read_outputs(reader, scope, proto);
  good &= sort_nodes(graph);
  return good ? graph : NULL;
}

static bool has_onnx_nodes(size_t n, Onnx__NodeProto **nodes) {
  for (size_t i = 0; i < n; i++)
    if (onnx_default_domain(nodes[i]->domain)) return true;
  return false;
}

/* A function's nodes are of its own opset or else of the model's. Of all opsets only the oldest and newest are told. */
static void check_opsets(const OnnxReader *reader) {
  const Onnx__ModelProto *model = reader->model;
  Location where = LOCATION_FILE(reader->file);
  int64_t opset = onnx_opset(model->n_opset_import, model->opset_import);
  int64_t oldest = opset == NO_OPSET ? OLDEST_OPSET : opset, newest = oldest;
  if (opset == NO_OPSET && has_onnx_nodes(model->graph->n_node, model->graph->node))
    error_at(where, EXIT_INVALID, "the model has operators of ONNX's own domain, but names no opset of it");
  for (size_t i = 0; i < model->n_functions; i++) {
    const Onnx__FunctionProto *function = model->functions[i];
    int64_t own = onnx_opset(function->n_opset_import, function->opset_import);
    if (own != NO_OPSET && own < oldest) oldest = own;
    if (own > newest) newest = own;
    if (own == NO_OPSET && opset == NO_OPSET && has_onnx_nodes(function->n_node, function->node))
      error_at(
          where, EXIT_INVALID,
          "the function %.80s has operators of ONNX's own domain, but neither it nor the model names an opset of it",
          onnx_text(function->name));
  }
  if (oldest < OLDEST_OPSET)
    error_at(where, EXIT_UNSUPPORTED, "opset %" PRId64 "; opsets from 7 on are supported", oldest);
  if (newest > NEWEST_OPSET)
    note_at(where,
            "opset %" PRId64
            " is newer than opset %d, the newest that is known: its operators are read as those of opset %d",
            newest, NEWEST_OPSET, NEWEST_OPSET);
}

static void check_heading(const OnnxReader *reader) {
  const Onnx__ModelProto *model = reader->model;
  Location where = LOCATION_FILE(reader->file);
  if (!model->graph) fatal_at(where, EXIT_INVALID, "this is no ONNX model: it has no graph");
  if (!model->n_opset_import) fatal_at(where, EXIT_INVALID, "the model names no opset");
  check_opsets(reader);
  if (model->n_training_info) error_at(where, EXIT_UNSUPPORTED, "the model has training information");
  if (!model->graph->n_node) error_at(where, EXIT_INVALID, "the model has no nodes; expected at least one");
  if (!model->graph->n_output) error_at(where, EXIT_INVALID, "the model has no outputs; expected at least one");
  stop_on_errors();
}

/* Inference tells why inputs are not known, unless nodes are not in order. */
static void tell_unsupported(OnnxReader *reader) {
  unsupported_tell(&reader->unsupported, reader->file);
  if (error_count() || reader->unsupported.count == 0) return;
  sort_nodes(reader->graph);
  infer_shapes(reader->graph);
  unsupported_tell_following(&reader->unsupported, reader->file);
}

static void read_model(OnnxReader *reader) {
  const Onnx__ModelProto *model = reader->model;
  const Onnx__GraphProto *proto = model->graph;
  Graph *graph = reader->graph;
  Scope scope = {.names = name_table_new(reader->arena, NULL), .graph = graph, .prefix = ""};
  scope.opset = onnx_opset(model->n_opset_import, model->opset_import);
  graph->name = onnx_text(proto->name);
  if (model->has_model_version && model->model_version)
    graph->version = arena_format(reader->arena, "%" PRId64, model->model_version);
  onnx_declare_constants(reader, &scope, proto);
  onnx_declare_inputs(reader, &scope, proto);
  onnx_read_nodes(reader, &scope, proto->n_node, proto->node);
  onnx_read_outputs(reader, &scope, proto);
  tell_unsupported(reader);
  if (!error_count()) assumed_dims_tell(&reader->assumed, reader->file);
}

static ModelFile parsed(Arena *arena, const char *path, FileBytes bytes) {
  ModelFile file = {.name = path, .hash = sha256_new()};
  sha256_add(&file.hash, bytes.data, bytes.size);
  if (bytes.size == 0) fatal_at(LOCATION_FILE(path), EXIT_INVALID, "expected an ONNX model, found an empty file");
  file.message = wire_read(arena, path, bytes, &onnx__model_proto__descriptor);
  return file;
}

/* `path`: for messages. */
static Graph *read_parsed(Arena *arena, const char *path, const ModelFile *file, const ModelSettings *settings) {
  OnnxReader *reader = ARENA_NEW(arena, OnnxReader);
  reader->arena = reader->unsupported.arena = arena;
  reader->assumed = assumed_dims_new(arena);
  reader->file = path;
  reader->settings = settings;
  reader->hash = file->hash;
  reader->graph = graph_new(arena);
  reader->graph->file = path;
  reader->graph->config = settings ? settings->config : NULL;
  reader->model = file->message;
  check_heading(reader);
  read_model(reader);
  sha256_end(&reader->hash, reader->graph->model_sha256);
  return reader->graph;
}

Graph *read_onnx_model(Arena *arena, const char *path, FileBytes bytes, const ModelSettings *settings) {
  ModelFile file = parsed(arena, path, bytes);
  return read_parsed(arena, path, &file, settings);
}

/* Frees the file's bytes once the messages are read: weights are large. */
static ModelFile read_file(Arena *arena, const char *path) {
  Arena *whole_file = arena_new();
  ModelFile file = parsed(arena, path, file_read(whole_file, path, MAX_MODEL_BYTES, LOCATION_FILE(path)));
  arena_free(whole_file);
  return file;
}

Graph *load_onnx_model(Arena *arena, const char *path, const ModelSettings *settings) {
  ModelFiles *files = settings ? settings->files : NULL;
  const ModelFile *before = model_file_find(files, NULL, path);
  if (before) return read_parsed(arena, path, before, settings);
  ModelFile file = read_file(arena, path);
  if (files) model_file_add(files, &file);
  return read_parsed(arena, path, &file, settings);
}
