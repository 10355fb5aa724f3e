/* SPDX-License-Identifier: MIT */
#include "driver/trial.h"

#include "driver/steps.h"

static Options options_of_trial(const Options *options, const char *module) {
  Options trial = *options;
  trial.verb = VERB_COMPILE;
  trial.output = module;
  return trial;
}

static void build_model(const Options *options, const Config *config, const char *module) {
  Options trial = options_of_trial(options, module);
  Compilation c = {.options = &trial, .arena = arena_new(), .config = config};
  run_steps(&c, STEP_build);
  arena_free(c.arena);
}

static void build_graph(const Options *options, Graph *graph, const char *module) {
  Options trial = options_of_trial(options, module);
  Compilation c = {
      .options = &trial, .arena = graph->arena, .config = graph->config, .graph = graph, .next = LAST_LAYOUT_STEP + 1};
  run_steps(&c, STEP_build);
}

const TuneBuild trial_build = {.model = build_model, .graph = build_graph};
