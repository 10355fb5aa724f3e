/* SPDX-License-Identifier: MIT */
/* rnncc: a model file becomes a shared object. This file is the table of contents. */
#include "driver/config.h"
#include "driver/inspect.h"
#include "driver/options.h"
#include "driver/output.h"
#include "driver/pipeline.h"
#include "emit/unit.h"
#include "link/toolchain.h"
#include "load/load.h"
#include "machine/calibrate.h"
#include "passes.h"
#include "program/plan_memory.h"
#include "support/files.h"
#include "tune/tune.h"

/* The generated unit of a graph that has been through the passes, and its shared object or folder. */
static void emit_module(const Options *options, Graph *graph, Emitter *emitter) {
  const char *folder = output_folder(options, graph->arena);
  Unit *unit;
  STEP(emit, graph, unit = emit_unit(emitter, build_record(graph)));
  STEP(write_unit, graph, write_unit(graph, unit, folder));
  STEP(check_unit, graph,
       check_unit(graph->arena, unit, folder, clang_args(graph->arena, graph->config->target, SOURCE_KERNELS)));
  if (options->emit == EMIT_C) return;
  STEP(build, graph,
       build_module(graph, folder, options->runtime, output_path(options, graph->arena), options->tool_seconds));
  temporary_remove(folder);
}

/* From the model file to the graph that kernels are chosen for: by all passes of passes.def. */
static Graph *optimise(const Options *options, const Config *config, Arena *arena) {
  Graph *graph;
  STEP(load, NULL, graph = load_model(arena, options->model, &options->settings));
  graph->config = config;
  if (options->emit == EMIT_GRAPH) return graph;
#define GRAPH_PASS(name) PASS(name, graph);
#include "passes.def"
#undef GRAPH_PASS
  return graph;
}

/* From the graph to kernel calls and the places of their data. */
static Emitter *schedule(Graph *graph, MemoryPlan **plan) {
  Emitter *emitter;
  PASS(plan_recurrent, graph);
  PASS(choose_schedules, graph);
  PASS(fuse_pools, graph);
  PASS(pack_weights, graph);
  STEP(lower, graph, emitter = lower(graph));
  STEP(plan_memory, graph, *plan = plan_memory(emitter));
  STEP(place_weights, graph, place_weights(emitter));
  return emitter;
}

static void compile(const Options *options, const Config *config, Arena *arena) {
  MemoryPlan *plan;
  Graph *graph = optimise(options, config, arena);
  switch (options->emit) {
  case EMIT_GRAPH:
    save_model(arena, graph, output_path(options, arena));
    return;
  case EMIT_DOT:
    output_text(options, emit_dot(graph));
    return;
  case EMIT_H:
    output_text(options, emit_header(schedule(graph, &plan)));
    return;
  case EMIT_C:
  case EMIT_SO:
    emit_module(options, graph, schedule(graph, &plan));
    return;
  }
}

static void inspect(const Options *options, Arena *arena) {
  MemoryPlan *plan;
  Graph *graph = optimise(options, config_of(arena, options), arena);
  if (options->explain) {
    inspect_choices(options, graph);
    return;
  }
  Emitter *emitter = schedule(graph, &plan);
  inspect_module(options, emitter, plan);
}

/* A module of the model, by another config than was given. */
static void build_candidate(const Options *options, const Config *config, const char *module) {
  Options candidate = *options;
  Arena *arena = arena_new();
  candidate.verb = VERB_COMPILE;
  candidate.output = module;
  compile(&candidate, config, arena);
  arena_free(arena);
}

/* A module of a graph that the tuner has laid out. */
static void build_trial(const Options *options, Graph *graph, const char *module) {
  MemoryPlan *plan;
  Options trial = *options;
  trial.verb = VERB_COMPILE;
  trial.output = module;
  emit_module(&trial, graph, schedule(graph, &plan));
}

static void tune_model(const Options *options, Arena *arena) {
  static const TuneBuild build = {.model = build_candidate, .graph = build_trial};
  tune(options, optimise(options, config_of(arena, options), arena), &build, output_path(options, arena));
}

static void manage_schedules(const Options *options, Arena *arena) {
  switch (options->schedule_verb) {
  case SCHEDULES_MERGE:
    schedules_merge(arena, options->files, options->output);
    break;
  case SCHEDULES_RENEW:
    schedules_renew(arena, options->files, options->output);
    break;
  case SCHEDULES_CHECK:
    schedules_check(arena, options->files);
    break;
  case SCHEDULES_SHOW:
    schedules_show(arena, options->files, options->workload);
    break;
  }
  stop_on_errors();
}

int main(int argc, char **argv) {
  Arena *arena = arena_new();
  Options options = parse_options(arena, argc, argv);
  pipeline_start(&options);
  switch (options.verb) {
  case VERB_COMPILE:
    compile(&options, config_of(arena, &options), arena);
    break;
  case VERB_INSPECT:
    inspect(&options, arena);
    break;
  case VERB_TUNE:
    tune_model(&options, arena);
    break;
  case VERB_SCHEDULES:
    manage_schedules(&options, arena);
    break;
  case VERB_TARGETS:
    if (options.calibrate)
      calibrate(arena, options.output, options.budget_seconds);
    else
      inspect_targets();
    break;
  }
  arena_free(arena);
  stop(EXIT_OK);
}
