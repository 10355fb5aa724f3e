/* SPDX-License-Identifier: MIT */
#include "driver/tune_graph.h"

#include "driver/output.h"
#include "driver/steps.h"

static Options options_of_trial(const Options *options, const char *module) {
  Options trial = *options;
  trial.verb = VERB_COMPILE;
  trial.output = module;
  return trial;
}

static void build_model(const void *options, const Config *config, const char *module) {
  Options trial = options_of_trial(options, module);
  Arena *arena = arena_new();
  Compilation c = {.options = &trial,
                   .arena = arena,
                   .files.arena = arena,
                   .n_branches = 1,
                   .branches = &(Branch){.model = trial.models, .config = config}};
  run_steps(&c, STEP_build);
  arena_free(arena);
}

static void build_graph(const void *options, Graph *graph, const char *runtime, const char *module) {
  Options trial = options_of_trial(options, module);
  trial.runtime = runtime;
  Compilation c = {.options = &trial,
                   .arena = graph->arena,
                   .next = LAST_LAYOUT_STEP + 1,
                   .n_branches = 1,
                   .branches = &(Branch){.model = trial.models, .config = graph->config, .graph = graph}};
  run_steps(&c, STEP_build);
}

void tune_graph(const Options *options, Graph *graph) {
  const TuneBuild build = {.context = options, .model = build_model, .graph = build_graph};
  const TuneOptions asked = {
      .model = options->models->path,
      .target = options->targets->target,
      .convolutions = options->tune_conv,
      .recurrent = options->tune_rnn,
      .trials = options->trials,
      .exhaustive = options->exhaustive,
      .shard = options->shard,
      .shards = options->shards,
      .threads = options->threads,
      .budget_seconds = options->budget_seconds,
      .tool_seconds = options->tool_seconds,
      .runner = options->runner,
  };
  tune(&asked, graph, &build, output_path(options, graph->arena));
}
