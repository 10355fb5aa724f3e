/* SPDX-License-Identifier: MIT */
#include "quantise/samples.h"

#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "quantise/npy.h"
#include "shapes/shape.h"
#include "support/list.h"
#include "support/numbers.h"

enum { HOLD_OUT_EVERY = 4, FEW_RUNS = 8 };
static const size_t MAX_FILE = (size_t)1 << 36;

/* The files of one input. */
typedef struct Files {
  int count;
  const char **paths;
  Tensor *tensors;
} Files;

DataOption data_option(Arena *arena, const char *text) {
  const char *equals = strchr(text, '='), *slash = strchr(text, '/');
  if (!equals || equals == text || (slash && slash < equals)) return (DataOption){NULL, text};
  return (DataOption){arena_format(arena, "%.*s", (int)(equals - text), text), equals + 1};
}

/* ---- which files ---- */

static const DataOption *option_of(const Graph *graph, const Value *input, int n_options, const DataOption *options) {
  const DataOption *found = NULL;
  for (int i = 0; i < n_options; i++) {
    bool fits = options[i].input ? !strcmp(options[i].input, input->name) : graph->n_inputs == 1;
    if (fits && found)
      fatal_at(LOCATION_FILE(graph->file), EXIT_INVALID, "--data of input %s is given twice", input->name);
    if (fits) found = &options[i];
  }
  if (!found)
    fatal_at(LOCATION_FILE(graph->file), EXIT_INVALID, "--data of input %s is missing: --data %s=FOLDER/*.npy",
             input->name, input->name);
  return found;
}

static void check_options(const Graph *graph, int n_options, const DataOption *options) {
  for (int i = 0; i < n_options; i++) {
    bool known = !options[i].input && graph->n_inputs == 1;
    for (int k = 0; options[i].input && k < graph->n_inputs; k++)
      known |= !strcmp(graph->inputs[k]->name, options[i].input);
    if (known) continue;
    if (options[i].input)
      fatal_at(LOCATION_FILE(graph->file), EXIT_INVALID, "--data %s: the model has no such input", options[i].input);
    fatal_at(LOCATION_FILE(graph->file), EXIT_INVALID,
             "the model has %d inputs: expected --data NAME=%s for each, found no name", graph->n_inputs,
             options[i].pattern);
  }
}

static void match(Arena *arena, const char *pattern, Files *files) {
  glob_t found = {0};
  if (access(pattern, F_OK) == 0) {
    *LIST_APPEND(arena, files->paths, files->count) = pattern;
    return;
  }
  int status = glob(pattern, 0, NULL, &found);
  if (status == GLOB_NOMATCH) fatal_at(LOCATION_FILE(pattern), EXIT_INVALID, "no file matches");
  if (status != 0) fatal_at(LOCATION_FILE(pattern), EXIT_ENVIRONMENT, "its files cannot be listed");
  files->count = (int)found.gl_pathc;
  files->paths = ARENA_ARRAY(arena, const char *, files->count);
  for (int i = 0; i < files->count; i++) files->paths[i] = arena_string(arena, found.gl_pathv[i]);
  globfree(&found);
}

/* ---- does a file fit? ---- */

static const char *shape_words(Arena *arena, const Tensor *tensor) {
  Text text = text_new(arena);
  text_add(&text, "[");
  for (int axis = 0; axis < tensor->rank; axis++) text_add(&text, "%s%" PRId64, axis ? ", " : "", tensor->shape[axis]);
  text_add(&text, "]");
  return text.data;
}

static void check_shape_of(Graph *graph, const Value *input, const Tensor *tensor, Location where) {
  bool fits = tensor->rank == input->rank;
  for (int axis = 0; fits && axis < input->rank; axis++) {
    int64_t least = dim_lower(input->shape[axis]), most = axis ? dim_upper(input->shape[axis]) : INT64_MAX;
    fits = tensor->shape[axis] >= least && tensor->shape[axis] <= most;
    if (axis == 0 && dim_is_const(input->shape[0]))
      fits = fits && (least ? tensor->shape[0] % least == 0 : tensor->shape[0] == 0);
  }
  if (!fits)
    fatal_at(where, EXIT_INVALID, "its shape is %s, but the input is %s", shape_words(graph->arena, tensor),
             shape_text(graph, input));
}

static void check_numbers(const Tensor *tensor, Location where) {
  if (!dtype_is_float(tensor->dtype)) return;
  for (int64_t i = 0, count = tensor_count(tensor); i < count; i++)
    if (!isfinite(tensor_get(tensor, i)))
      fatal_at(where, EXIT_INVALID, "element %" PRId64 " is %s; expected numbers", i,
               isnan(tensor_get(tensor, i)) ? "NaN" : "infinite");
}

static Tensor read_one(Graph *graph, const Value *input, const char *path) {
  Location where = LOCATION_FILE(path);
  FileBytes bytes = file_read(graph->arena, path, MAX_FILE, where);
  Tensor tensor = npy_read(bytes, input->dtype, where);
  if (tensor.dtype != input->dtype)
    fatal_at(where, EXIT_INVALID, "it is of %s, but input %s is of %s", dtype_name(tensor.dtype), input->name,
             dtype_name(input->dtype));
  check_shape_of(graph, input, &tensor, where);
  check_numbers(&tensor, where);
  if ((uintptr_t)tensor.data % dtype_size(tensor.dtype) != 0)
    tensor.data = arena_copy(graph->arena, tensor.data, (size_t)tensor_count(&tensor) * dtype_size(tensor.dtype));
  return tensor;
}

static Files files_of(Graph *graph, const Value *input, const DataOption *option) {
  Files files = {0};
  match(graph->arena, option->pattern, &files);
  files.tensors = ARENA_ARRAY(graph->arena, Tensor, files.count);
  for (int i = 0; i < files.count; i++) files.tensors[i] = read_one(graph, input, files.paths[i]);
  return files;
}

/* ---- runs ---- */

/* The length of a piece along the first axis. */
static int64_t piece_length(const Value *input, const Tensor *tensor) {
  if (input->rank == 0 || tensor->shape[0] <= dim_upper(input->shape[0])) return input->rank ? tensor->shape[0] : 1;
  return dim_optimum(input->shape[0]);
}

static int64_t piece_count(const Value *input, const Tensor *tensor) {
  int64_t length = piece_length(input, tensor);
  if (input->rank == 0 || tensor->shape[0] == 0) return 1;
  return ceil_div(tensor->shape[0], length);
}

static Tensor piece_of(const Value *input, const Tensor *tensor, int64_t k) {
  Tensor piece = *tensor;
  if (piece_count(input, tensor) == 1 && !input->rank) return piece;
  int64_t length = piece_length(input, tensor), row = 1;
  for (int axis = 1; axis < tensor->rank; axis++) row *= tensor->shape[axis];
  if (piece_count(input, tensor) == 1) k = 0;
  piece.shape[0] = min_int(length, tensor->shape[0] - k * length);
  piece.data = (char *)tensor->data + (size_t)(k * length * row) * dtype_size(tensor->dtype);
  return piece;
}

/* The pieces of the k-th file of each input: as many of all that have several. */
static int64_t pieces_of_file(const Graph *graph, const Files *files, int k) {
  int64_t count = 1;
  int of = 0;
  for (int i = 0; i < graph->n_inputs; i++) {
    int64_t its = piece_count(graph->inputs[i], &files[i].tensors[k]);
    if (its > 1 && count > 1 && its != count)
      fatal_at(LOCATION_FILE(files[i].paths[k]), EXIT_INVALID,
               "it has %" PRId64 " pieces of input %s, but %s has %" PRId64 " of input %s", its, graph->inputs[i]->name,
               files[of].paths[k], count, graph->inputs[of]->name);
    if (its > count) count = its, of = i;
  }
  return count;
}

/* A file that is cut into pieces may end in one that is too short. */
static void check_length(const DimSymbol *symbol, const Value *input, int64_t length, Location where) {
  if (length < symbol->min)
    fatal_at(where, EXIT_INVALID, "a piece of input %s has %s = %" PRId64 "; expected %" PRId64 " or more", input->name,
             symbol->name, length, symbol->min);
  if (length % symbol->multiple)
    fatal_at(where, EXIT_INVALID, "input %s has %s = %" PRId64 ", which is no multiple of %" PRId64, input->name,
             symbol->name, length, symbol->multiple);
}

/* One length for each dim, within its bounds. */
static void check_dims(const Graph *graph, const Run *run) {
  int count = dim_symbol_count(graph->dims);
  int64_t *values = ARENA_ARRAY(graph->arena, int64_t, count + 1);
  Location where = LOCATION_FILE(run->file);
  for (int i = 0; i < count; i++) values[i] = -1;
  for (int i = 0; i < graph->n_inputs; i++)
    for (int axis = 0; axis < graph->inputs[i]->rank; axis++) {
      const DimSymbol *symbol = dim_as_symbol(graph->inputs[i]->shape[axis]);
      int64_t length = run->inputs[i].shape[axis];
      if (!symbol) continue;
      if (values[symbol->index] >= 0 && values[symbol->index] != length)
        fatal_at(where, EXIT_INVALID, "input %s has %s = %" PRId64 ", but another input has %" PRId64,
                 graph->inputs[i]->name, symbol->name, length, values[symbol->index]);
      check_length(symbol, graph->inputs[i], length, where);
      values[symbol->index] = length;
    }
}

static void add_runs(Graph *graph, Samples *samples, int *capacity, const Files *files, int k) {
  int64_t count = pieces_of_file(graph, files, k);
  for (int64_t piece = 0; piece < count; piece++) {
    Tensor *inputs = ARENA_ARRAY(graph->arena, Tensor, graph->n_inputs + 1);
    for (int i = 0; i < graph->n_inputs; i++) inputs[i] = piece_of(graph->inputs[i], &files[i].tensors[k], piece);
    Run run = {.inputs = inputs, .first = piece == 0, .file = files[0].paths[k]};
    check_dims(graph, &run);
    *LIST_ADD(graph->arena, samples->runs, samples->n_runs, *capacity) = run;
  }
}

static void hold_out(const Graph *graph, Samples *samples) {
  for (int i = 0; samples->n_runs >= HOLD_OUT_EVERY && i < samples->n_runs; i++) {
    samples->runs[i].held_out = i % HOLD_OUT_EVERY == HOLD_OUT_EVERY - 1;
    samples->n_held_out += samples->runs[i].held_out;
  }
  if (!samples->n_held_out)
    warn_at(LOCATION_FILE(graph->file),
            "%d sample%s: none is held out, errors are those of the samples that give the ranges", samples->n_runs,
            samples->n_runs == 1 ? "" : "s");
  if (samples->n_runs < FEW_RUNS)
    warn_at(LOCATION_FILE(graph->file), "%d sample%s: the ranges may not hold for others; expected %d or more",
            samples->n_runs, samples->n_runs == 1 ? "" : "s", FEW_RUNS);
}

Samples samples_read(Graph *graph, int n_options, const DataOption *options) {
  Samples samples = {0};
  int capacity = 0;
  Files *files = ARENA_ARRAY(graph->arena, Files, graph->n_inputs + 1);
  if (!graph->n_inputs) fatal_at(LOCATION_FILE(graph->file), EXIT_INVALID, "the model has no input to give samples of");
  check_options(graph, n_options, options);
  for (int i = 0; i < graph->n_inputs; i++) {
    files[i] = files_of(graph, graph->inputs[i], option_of(graph, graph->inputs[i], n_options, options));
    if (files[i].count != files[0].count)
      fatal_at(LOCATION_FILE(graph->file), EXIT_INVALID,
               "expected as many files of each input, found %d of %s and %d of %s", files[0].count,
               graph->inputs[0]->name, files[i].count, graph->inputs[i]->name);
  }
  samples.n_files = files[0].count;
  for (int k = 0; k < samples.n_files; k++) add_runs(graph, &samples, &capacity, files, k);
  hold_out(graph, &samples);
  return samples;
}
