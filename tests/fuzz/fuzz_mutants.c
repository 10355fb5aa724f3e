/* SPDX-License-Identifier: MIT */
/*
 * Mutants of models, of either format, are compiled up to the C source, with --verify-each, or refused: without
 * undefined behaviour, leak, internal error, much memory or much time. What is compiled for differs from mutant to
 * mutant.
 *
 * Every tenth mutant is one of bytes, which is no file of its format any more.
 */
#include <string.h>

#include "../support/read_or_refuse.h"
#include "driver/config.h"
#include "driver/steps.h"
#include "load/load.h"
#include "load/model.h"
#include "load/onnx/onnx.h"
#include "parts.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *two, size_t two_size, uint8_t *out,
                                 size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

static bool is_json(FileBytes file) { return file.size && file.data[0] == '{'; }

/* ---- compiling ---- */

typedef struct Variant {
  const char *arguments[4];
  Options options;
  const Config *config;
} Variant;

static Variant variants[] = {
    {.arguments = {"--target=x86-64-v4"}},
    {.arguments = {"--target=x86-64-v3"}},
    {.arguments = {"--target=x86-64-v4+vnni", "--precision=int8-dynamic"}},
    {.arguments = {"--target=aarch64-linux-gnu"}},
    {.arguments = {"--target=x86-64-v3", "--precision=int4"}},
    {.arguments = {"--target=x86-64", "--threads=1"}},
};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

static void make_variant(Variant *variant, Arena *arena) {
  const char *words[8] = {"rnncc", "model.onnx", "--verify-each"};
  int count = 3;
  for (const char *const *given = variant->arguments; *given; given++) words[count++] = *given;
  variant->options = parse_options(arena, count, (char **)words);
  variant->config = config_of(arena, &variant->options, variant->options.targets);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  static Arena *arena; /* until the process ends */
  arena = arena_new();
  for (int i = 0; i < N_VARIANTS; i++) make_variant(&variants[i], arena);
  return 0;
}

static const Variant *variant_of(FileBytes file) {
  size_t sum = file.size;
  for (size_t i = 0; i < file.size; i += 1 + file.size / 64) sum = sum * 31 + file.data[i];
  return &variants[sum % N_VARIANTS];
}

static void compile(Arena *arena, FileBytes file) {
  const Variant *variant = variant_of(file);
  const ModelSettings *settings = &variant->options.settings;
  Graph *graph = is_json(file) ? read_json_model(arena, RNNCC_FUZZ_FOLDER "/model.json", file, settings)
                               : read_onnx_model(arena, RNNCC_FUZZ_FOLDER "/model.onnx", file, settings);
  model_complete(graph, settings);
  graph->config = variant->config;
  run_steps(compilation_of_graph(&variant->options, graph, STEP_verify), STEP_emit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  read_or_refuse(compile, (FileBytes){.data = data, .size = size});
  return 0;
}

/* ---- mutants ---- */

static Part *parts_of(Arena *arena, FileBytes file) {
  return is_json(file) ? parts_of_json(arena, file) : parts_of_onnx(arena, file);
}

/* 0: not changed, or too large. */
static size_t mutant_of(FileBytes file, FileBytes other, uint8_t *out, size_t most, unsigned seed) {
  Arena *arena = arena_new();
  Part *root = parts_of(arena, file);
  const Part *donor = other.data && is_json(other) == is_json(file) ? parts_of(arena, other) : NULL;
  size_t size = 0;
  if (root && root->n_parts) {
    Text text = text_new(arena);
    mutate(arena, root, donor, seed);
    if (is_json(file))
      json_of_parts(&text, root);
    else
      onnx_of_parts(&text, root);
    size = text.length <= most ? text.length : 0;
    if (size) memcpy(out, text.data, size);
  }
  arena_free(arena);
  return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  size_t mutant = seed % 10 ? mutant_of((FileBytes){data, size}, (FileBytes){0}, data, most, seed) : 0;
  return mutant ? mutant : LLVMFuzzerMutate(data, size, most);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *two, size_t two_size, uint8_t *out,
                                 size_t most, unsigned seed) {
  return mutant_of((FileBytes){one, one_size}, (FileBytes){two, two_size}, out, most, seed);
}
