/* SPDX-License-Identifier: MIT */
/* The model file as a whole. A part is read after the parts that declare the names it uses. */
#include <inttypes.h>
#include <string.h>

#include "load/model.h"

enum { MAX_MODEL_BYTES = 1 << 30, FORMAT_VERSION = 1 };

static const JsonField MODEL_FIELDS[] = {
    {"format", JSON_STRING, true}, {"version", JSON_NUMBER, true},        {"name", JSON_STRING, true},
    {"dims", JSON_OBJECT, false},  {"model_version", JSON_STRING, false}, {"inputs", JSON_ARRAY, true},
    {"states", JSON_ARRAY, false}, {"outputs", JSON_ARRAY, true},         {"weights", JSON_ARRAY, false},
    {"nodes", JSON_ARRAY, true},   {"constants", JSON_OBJECT, false},     {"description", JSON_STRING, false},
    {NULL, JSON_ABSENT, false},
};

static void read_heading(Graph *graph, Json root) {
  Json format = json_member(root, "format"), version = json_member(root, "version");
  int64_t number;
  if (strcmp(json_text(format), "rnncc") != 0)
    error_at(json_where(format), EXIT_INVALID, "expected the format \"rnncc\", found \"%s\"",
             short_name(graph->arena, json_text(format)));
  if (json_get_int(version, 1, INT64_MAX, &number) && number != FORMAT_VERSION)
    error_at(json_where(version), EXIT_UNSUPPORTED, "version %" PRId64 " of the format; this compiler reads version %d",
             number, FORMAT_VERSION);
  graph->name = json_text(json_member(root, "name"));
  Json model_version = json_member(root, "model_version");
  graph->version = model_version.item ? json_text(model_version) : "";
}

static void refuse_empty(Json root, const char *key) {
  Json list = json_member(root, key);
  if (json_count(list) == 0)
    error_at(json_where(list), EXIT_INVALID, "the model has no %s; expected at least one", key);
}

static void read_model(ModelReader *reader, Json root) {
  if (!json_check(root, MODEL_FIELDS)) stop_on_errors();
  read_heading(reader->graph, root);
  refuse_empty(root, "nodes");
  refuse_empty(root, "outputs");
  if (json_count(json_member(root, "states")) == 0) refuse_empty(root, "inputs");
  stop_on_errors();
  read_dims(reader, json_member(root, "dims"));
  read_inputs(reader, json_member(root, "inputs"));
  read_states(reader, json_member(root, "states"));
  read_weights(reader, json_member(root, "weights"));
  read_constants(reader, json_member(root, "constants"));
  read_nodes(reader, json_member(root, "nodes"));
  read_results(reader, json_member(root, "outputs"));
}

Graph *read_json_model(Arena *arena, const char *path, FileBytes text, const ModelSettings *settings) {
  ModelReader reader = {.arena = arena,
                        .graph = graph_new(arena),
                        .names = name_table_new(arena, NULL),
                        .settings = settings,
                        .hash = sha256_new()};
  reader.graph->file = path;
  reader.graph->config = settings ? settings->config : NULL;
  sha256_add(&reader.hash, text.data, text.size);
  read_model(&reader, json_parse(arena, path, (const char *)text.data, text.size, 0));
  sha256_end(&reader.hash, reader.graph->model_sha256);
  return reader.graph;
}

Graph *load_json_model(Arena *arena, const char *path, const ModelSettings *settings) {
  ModelFiles *files = settings ? settings->files : NULL;
  return read_json_model(arena, path, model_file_read(files, arena, path, MAX_MODEL_BYTES), settings);
}
