/* SPDX-License-Identifier: MIT */
#include "driver/tune_graph.h"

#include <stdio.h>

#include "driver/output.h"
#include "support/clock.h"

/* What trials are made from. */
typedef struct TrialContext {
  const Options *options;
  PlannedModel *model; /* the network that is tuned */
} TrialContext;

static Options options_of_trial(const void *of, const char *module) {
  const TrialContext *context = of;
  Options trial = *context->options;
  trial.verb = VERB_COMPILE;
  trial.output = module;
  trial.models = context->model;
  trial.n_models = 1;
  return trial;
}

static void build_model(const void *context, const Config *config, const char *module) {
  Options trial = options_of_trial(context, module);
  Arena *arena = arena_new();
  run_steps(compilation_of_model(&trial, arena, config), STEP_build);
  arena_free(arena);
}

static void build_graph(const void *context, Graph *graph, const char *runtime, const char *module) {
  Options trial = options_of_trial(context, module);
  trial.runtime = runtime;
  run_steps(compilation_of_graph(&trial, graph, LAST_LAYOUT_STEP + 1), STEP_build);
}

static TuneOptions asked_of(const Options *options) {
  return (TuneOptions){.target = options->targets->target,
                       .convolutions = options->tune_conv,
                       .recurrent = options->tune_rnn,
                       .trials = options->trials,
                       .exhaustive = options->exhaustive,
                       .shard = options->shard,
                       .shards = options->shards,
                       .threads = options->threads,
                       .tool_seconds = options->tool_seconds,
                       .sandbox = options->sandbox,
                       .runner = options->runner};
}

static const char *what_is_missing(const TuneOptions *asked) {
  return !asked->recurrent      ? "no convolution"
         : !asked->convolutions ? "no recurrent layer"
                                : "neither a convolution nor a recurrent layer";
}

static _Noreturn void nothing_to_tune(const Options *options, const TuneOptions *asked) {
  const char *missing = what_is_missing(asked);
  if (options->n_models == 1)
    fatal_at(LOCATION_FILE(options->models->path), EXIT_INVALID, "the model has %s to tune", missing);
  fatal_at(LOCATION_FILE(NULL), EXIT_INVALID, "the networks have %s to tune", missing);
}

/* False: it has nothing to tune. */
static bool tune_network(const Options *options, TuneOptions *asked, PlannedModel *model, Graph *graph) {
  const TrialContext context = {options, model};
  const TuneBuild build = {.context = &context, .model = build_model, .graph = build_graph};
  asked->model = model->path;
  asked->network = model->network;
  if (asked->network) printf("==== %s ====\n", asked->network);
  bool found = tune(asked, graph, &build, output_path(options, graph->arena));
  if (asked->network && !found) printf("%s to tune\n", what_is_missing(asked));
  return found;
}

void tune_networks(const Compilation *c) {
  const Options *options = c->options;
  TuneOptions asked = asked_of(options);
  double end = seconds_now() + options->budget_seconds;
  bool found = false;
  for (int i = 0; i < options->n_models; i++) {
    asked.budget_seconds = (end - seconds_now()) / (options->n_models - i);
    found |= tune_network(options, &asked, &options->models[i], c->branches[i].graph);
  }
  if (!found) nothing_to_tune(options, &asked);
}
