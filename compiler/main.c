/* SPDX-License-Identifier: MIT */
/* rnncc: a model file becomes a shared object. compile() is the table of contents. */
#include "emit/unit.h"
#include "inspect.h"
#include "link/toolchain.h"
#include "load/load.h"
#include "options.h"
#include "output.h"
#include "passes.h"
#include "pipeline.h"
#include "plan/plan_memory.h"
#include "support/files.h"

/* The generated unit of a graph that has been through the passes, and its shared object or folder. */
static void emit_module(const Options *options, Graph *graph, Emitter *emitter) {
  const char *folder = output_folder(options, graph->arena);
  Unit *unit;
  STEP(emit, graph, unit = emit_unit(emitter, build_record(graph)));
  STEP(write_unit, graph, write_unit(graph, unit, folder));
  STEP(check_unit, graph,
       check_unit(graph->arena, unit, folder, clang_args(graph->arena, graph->target, SOURCE_KERNELS)));
  if (options->emit == EMIT_C) return;
  STEP(build, graph, build_module(graph, folder, output_path(options, graph->arena), options->tool_seconds));
  temporary_remove(folder);
}

static void compile(const Options *options, Arena *arena) {
  Graph *graph;
  Emitter *emitter;
  MemoryPlan *plan;
  STEP(load, NULL, graph = load_model(arena, options->model));
  graph->target = options->target;
  if (options->emit == EMIT_GRAPH) return save_model(arena, graph, output_path(options, arena));
  PASS(verify, graph);
  PASS(infer_shapes, graph);
  PASS(simplify, graph);
  PASS(fuse_epilogue, graph);
  PASS(alias_views, graph);
  if (options->emit == EMIT_DOT) return output_text(options, emit_dot(graph));
  PASS(choose_schedules, graph);
  PASS(pack_weights, graph);
  STEP(lower, graph, emitter = lower(graph));
  STEP(plan_memory, graph, plan = plan_memory(emitter));
  STEP(place_weights, graph, place_weights(emitter));
  if (options->emit == EMIT_H) return output_text(options, emit_header(emitter));
  if (options->verb == VERB_INSPECT) return inspect_module(options, emitter, plan);
  emit_module(options, graph, emitter);
}

int main(int argc, char **argv) {
  Options options = parse_options(argc, argv);
  Arena *arena = arena_new();
  pipeline_start(&options);
  if (options.verb == VERB_TARGETS)
    inspect_targets();
  else
    compile(&options, arena);
  arena_free(arena);
  stop(EXIT_OK);
}
