/* SPDX-License-Identifier: MIT */
#include "quantise/sensitivity.h"

#include <math.h>
#include <string.h>

#include "quantise/apart.h"
#include "quantise/module.h"
#include "quantise/rewrite.h"
#include "support/numbers.h"

typedef struct Result {
  double error;
  double *alone; /* by layer */
  bool *int8;    /* by layer: chosen */
} Result;

typedef struct Search {
  Layers *layers;
  const Samples *samples;
  const QuantiseOptions *options;
  const QuantiseBuild *build;
  const char *switched, *final; /* paths of modules */
  int n_outputs;
  Result *result; /* shared */
} Search;

/* ---- errors ---- */

/* Of one output. */
typedef struct Sums {
  double noise, signal;
} Sums;

/* Of integers each is a signal of 1: the ratio is the share of those that differ. */
static void add_output(Sums *sums, const rnncc_tensor *got, const rnncc_tensor *expected) {
  int64_t count = min_int(tensor_elements(got), tensor_elements(expected));
  Tensor g = {.dtype = got->dtype, .data = got->data}, e = {.dtype = expected->dtype, .data = expected->data};
  bool floats = dtype_is_float(expected->dtype);
  if (tensor_elements(got) != tensor_elements(expected)) sums->noise = INFINITY;
  for (int64_t i = 0; i < count; i++) {
    double x = tensor_get(&g, i), y = tensor_get(&e, i), off = floats ? x - y : x != y;
    bool same = x == y || (isnan(x) && isnan(y));
    if (!same) sums->noise += off * off;
    if (!floats || isfinite(y)) sums->signal += floats ? y * y : 1;
  }
}

static double error_of(const Sums *sums, int n) {
  double worst = 0;
  for (int i = 0; i < n; i++) {
    if (sums[i].noise == 0) continue;
    double error = sqrt(sums[i].noise / sums[i].signal);
    if (!(error <= worst)) worst = isnan(error) ? INFINITY : error;
  }
  return worst;
}

static bool is_compared(const Search *search, const Run *run) { return run->held_out || !search->samples->n_held_out; }

/* Copies of the f32 network's outputs, by run. */
static rnncc_tensor **expected_of(const Search *search, const Module *module, const bool *switches) {
  Arena *arena = search->layers->graph->arena;
  rnncc_tensor **expected = ARENA_ARRAY(arena, rnncc_tensor *, search->samples->n_runs + 1);
  for (int i = 0; i < search->samples->n_runs; i++) {
    const Run *run = &search->samples->runs[i];
    if (!is_compared(search, run) && !module->info->n_states) continue;
    module_run(module, run, switches);
    expected[i] = arena_copy(arena, module->outputs, (size_t)search->n_outputs * sizeof(rnncc_tensor));
    for (int k = 0; is_compared(search, run) && k < search->n_outputs; k++)
      expected[i][k].data =
          arena_copy(arena, module->outputs[k].data,
                     (size_t)tensor_elements(&module->outputs[k]) * dtype_size(module->outputs[k].dtype));
  }
  return expected;
}

static double error_with(const Search *search, const Module *module, rnncc_tensor *const *expected,
                         const bool *switches) {
  Sums *sums = ARENA_ARRAY(search->layers->graph->arena, Sums, search->n_outputs + 1);
  memset(sums, 0, (size_t)search->n_outputs * sizeof *sums);
  for (int i = 0; i < search->samples->n_runs; i++) {
    const Run *run = &search->samples->runs[i];
    if (!is_compared(search, run) && !module->info->n_states) continue;
    module_run(module, run, switches);
    for (int k = 0; is_compared(search, run) && k < search->n_outputs; k++)
      add_output(&sums[k], &module->outputs[k], &expected[i][k]);
  }
  return error_of(sums, search->n_outputs);
}

/* ---- which layers ---- */

/* Layers of bodies are not measured alone, and are the last that go back to f32. */
static int most_sensitive(const Layers *layers, const double *alone, const bool *int8) {
  int worst = -1;
  for (int i = 0; i < layers->n; i++)
    if (int8[i] && (worst < 0 || alone[i] > alone[worst])) worst = i;
  return worst;
}

/* A layer that only joins or pools is in int8 if one that it reads is. */
static void settle(const Layers *layers, bool *int8) {
  for (int i = 0; i < layers->n; i++) {
    const Layer *layer = &layers->list[i];
    bool reads_int8 = layer->kind->n_weights > 0;
    for (int k = 0; k < layer->n_data; k++) reads_int8 |= layer->sources[k] >= 0 && int8[layer->sources[k]];
    int8[i] &= reads_int8;
  }
}

static void search_body(void *argument) {
  Search *search = argument;
  const Layers *layers = search->layers;
  Result *result = search->result;
  Arena *arena = layers->graph->arena;
  search->n_outputs = layers->graph->n_outputs;
  bool *switches = ARENA_ARRAY(arena, bool, layers->n + 1);
  memset(switches, 0, (size_t)layers->n);
  rewrite_switched(layers, search->options->rewrite);
  search->build->graph(search->build->context, layers->graph, search->switched);
  Module module = module_open(arena, search->switched, search->options->threads);
  rnncc_tensor **expected = expected_of(search, &module, switches);
  for (int i = 0; i < layers->n; i++) {
    result->alone[i] = -1;
    if (layers->list[i].why_not || layers->list[i].graph != layers->graph) continue;
    switches[i] = true;
    result->alone[i] = error_with(search, &module, expected, switches);
    switches[i] = false;
  }
  memcpy(switches, result->int8, (size_t)layers->n);
  settle(layers, switches);
  double bound = search->options->max_error;
  for (int worst; bound >= 0 && error_with(search, &module, expected, switches) > bound;) {
    if ((worst = most_sensitive(layers, result->alone, switches)) < 0) break;
    switches[worst] = false;
    settle(layers, switches);
  }
  memcpy(result->int8, switches, (size_t)layers->n);
}

/* The model as it is written, beside the f32 network. */
static void check_body(void *argument) {
  Search *search = argument;
  const Layers *layers = search->layers;
  Arena *arena = layers->graph->arena;
  bool *switches = ARENA_ARRAY(arena, bool, layers->n + 1);
  memset(switches, 0, (size_t)layers->n);
  search->n_outputs = layers->graph->n_outputs;
  rewrite_chosen(layers, search->options->rewrite);
  search->build->graph(search->build->context, layers->graph, search->final);
  Module reference = module_open(arena, search->switched, search->options->threads);
  Module module = module_open(arena, search->final, search->options->threads);
  search->result->error = error_with(search, &module, expected_of(search, &reference, switches), NULL);
}

static void take_choice(Layers *layers, const Result *result) {
  for (int i = 0; i < layers->n; i++) {
    layers->list[i].int8 = result->int8[i];
    layers->list[i].alone = layers->list[i].why_not ? -1 : result->alone[i];
  }
}

double choose_layers(Layers *layers, const Samples *samples, const QuantiseOptions *options, const QuantiseBuild *build,
                     const char *folder) {
  Arena *arena = layers->graph->arena;
  Search search = {layers,
                   samples,
                   options,
                   build,
                   arena_format(arena, "%s/switched.so", folder),
                   arena_format(arena, "%s/final.so", folder),
                   0,
                   shared_memory(sizeof *search.result)};
  Result *result = search.result;
  result->alone = shared_memory((size_t)layers->n * sizeof *result->alone);
  result->int8 = shared_memory((size_t)layers->n * sizeof *result->int8);
  for (int i = 0; i < layers->n; i++) result->int8[i] = !layers->list[i].why_not;
  run_apart(arena, layers->graph->file, folder, search_body, &search);
  take_choice(layers, result);
  run_apart(arena, layers->graph->file, folder, check_body, &search);
  for (int worst; options->max_error >= 0 && result->error > options->max_error;) {
    if ((worst = most_sensitive(layers, result->alone, result->int8)) < 0) break;
    result->int8[worst] = false;
    settle(layers, result->int8);
    take_choice(layers, result);
    run_apart(arena, layers->graph->file, folder, check_body, &search);
  }
  return result->error;
}
