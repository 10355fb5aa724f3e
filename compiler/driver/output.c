/* SPDX-License-Identifier: MIT */
#include "driver/output.h"

#include <stdio.h>
#include <string.h>

#include "emit/unit.h"
#include "machine/machine.h"
#include "machine/targets.h"
#include "schedules/database.h"
#include "sha256.h"
#include "support/files.h"
#include "support/identifier.h"

static const char *const suffixes[] = {
    [EMIT_SO] = ".so", [EMIT_C] = ".c.d", [EMIT_H] = ".h", [EMIT_GRAPH] = ".graph.json", [EMIT_DOT] = ".dot"};

const char *file_identifier(Arena *arena, const char *path) {
  return identifier_of(arena, file_with_suffix(arena, file_last_part(path), ""));
}

/* "libasr.a" is a library of the name asr. */
static const char *bundle_name(const Options *options, Arena *arena) {
  const char *file = file_last_part(options->output);
  bool library = options->emit == EMIT_A && !strncmp(file, "lib", 3) && file[3] != '.';
  return file_identifier(arena, library ? file + 3 : file);
}

const char *output_name(const Options *options, Arena *arena) {
  if (options->name) return options->name;
  return options->verb == VERB_BUNDLE ? bundle_name(options, arena) : file_identifier(arena, options->models->path);
}

/* A default name is in the current folder. */
const char *output_path(const Options *options, Arena *arena) {
  if (options->output) return options->output;
  const char *model = file_last_part(options->models->path);
  if (options->verb == VERB_TUNE) return file_with_suffix(arena, model, ".jsonl");
  if (options->verb == VERB_QUANTIZE) return file_with_suffix(arena, model, ".int8.json");
  if (options->emit == EMIT_WHEEL) return ".";
  if (options->emit == EMIT_A) return arena_format(arena, "lib%s.a", output_name(options, arena));
  return file_with_suffix(arena, model, suffixes[options->emit]);
}

static const char *header_beside(const Options *options, Arena *arena) {
  const char *library = output_path(options, arena);
  int folder = (int)(file_last_part(library) - library);
  return arena_format(arena, "%.*s%s.h", folder, library, output_name(options, arena));
}

/* Is the output a file? Of --emit=c and a wheel the path is a folder. */
static bool is_file(const Options *options, const char *path) {
  return options->emit != EMIT_C && options->emit != EMIT_WHEEL && strcmp(path, "-") != 0;
}

/* What cannot be written is told before anything is: else one output would be there without the others. A folder of C,
 * which a file may be in, is not there yet. */
static void add_output(Arena *arena, const char *path, bool try) {
  file_is_output(arena, path);
  if (try) file_try_output(arena, path);
}

void outputs_are_known(const Options *options, Arena *arena) {
  bool compiles = options->verb == VERB_COMPILE || options->verb == VERB_BUNDLE;
  bool quantises = options->verb == VERB_QUANTIZE;
  const char *others[] = {options->depfile, options->html, options->memory_picture, options->quantise.plot};
  bool in_folder = compiles && options->emit == EMIT_C;
  if (compiles || quantises) {
    const char *path = output_path(options, arena);
    add_output(arena, path, quantises || is_file(options, path));
    if (quantises || options->emit == EMIT_GRAPH)
      add_output(arena, file_with_suffix(arena, path, ".safetensors"), true);
    if (options->emit == EMIT_A) add_output(arena, header_beside(options, arena), true);
  }
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (others[i]) add_output(arena, others[i], !in_folder);
}

const char *output_folder(const Options *options, Arena *arena) {
  return options->emit == EMIT_C ? output_path(options, arena) : temporary_directory(arena);
}

void output_text(const Options *options, Text text) {
  const char *path = output_path(options, text.arena);
  if (strcmp(path, "-") == 0)
    fwrite(text.data, 1, text.length, stdout); /* stop() tells if it cannot be written */
  else
    file_write(text.arena, path, text.data, text.length);
}

void output_header_beside(const Options *options, Text text) {
  file_write(text.arena, header_beside(options, text.arena), text.data, text.length);
}

void output_sizes(const Options *options, const char *name, const Program *program) {
  if (options->profile != PROFILE_EDGE) return;
  printf("%s: %lld bytes of weights, %lld bytes of working memory\n", name, (long long)program->weights_bytes,
         (long long)context_bytes(program));
}

/* The options that change what is computed or leave out steps, as they were given. */
static const char *computing_options(Arena *arena, const Options *options, const Config *config) {
  Text text = text_new(arena);
  if (config->precision.text) text_add(&text, " --precision=%s", config->precision.text);
  if (config->training.wanted) text_add(&text, " --train");
  if (config->training.text) text_add(&text, "=%s", config->training.text);
  if (config->training.loss) text_add(&text, " --loss=%s", config->training.loss);
  if (config->training.outer_loss) text_add(&text, " --outer-loss");
  if (config->mutable_weights) text_add(&text, " --weights=mutable");
  if (config->no_winograd) text_add(&text, " --no-winograd");
  if (config->seed) text_add(&text, " --seed=%llu", (unsigned long long)config->seed);
  for (int i = 0; i < options->n_without; i++) text_add(&text, "%s%s", i ? "," : " --without=", options->without[i]);
  return text.length ? text.data : "";
}

const char *build_record(const Options *options, Graph *graph) {
  char hex[SHA256_HEX_BYTES];
  sha256_hex(graph->model_sha256, hex);
  const char *digest = database_digest(graph->arena, graph->config->records);
  return arena_format(graph->arena, "rnncc " RNNCC_VERSION " --target=%s --threads=%d%s, model sha256 %s%s%s",
                      graph->config->target->name, graph->config->machine->cores,
                      computing_options(graph->arena, options, graph->config), hex, digest ? ", schedules " : "",
                      digest ? digest : "");
}
