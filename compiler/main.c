/* SPDX-License-Identifier: MIT */
/* rnncc: a model file becomes a shared object. This file and passes.def are the table of contents: which steps each
 * verb and each kind of output takes. */
#include "driver/depfile.h"
#include "driver/inspect.h"
#include "driver/options.h"
#include "driver/output.h"
#include "driver/quantise_graph.h"
#include "driver/steps.h"
#include "driver/tune_graph.h"
#include "emit/unit.h"
#include "load/load.h"
#include "machine/calibrate.h"
#include "support/files.h"
#include "support/interrupt.h"

static void compile(Compilation *c) {
  switch (c->options->emit) {
  case EMIT_GRAPH:
    run_steps(c, STEP_load);
    save_model(c->arena, c->branches->graph, output_path(c->options, c->arena));
    break;
  case EMIT_DOT:
    run_steps(c, LAST_LAYOUT_STEP);
    output_text(c->options, emit_dot(c->branches->graph));
    break;
  case EMIT_H:
    run_steps(c, LAST_PROGRAM_STEP);
    output_text(c->options, application_header(c));
    break;
  case EMIT_A:
    run_steps(c, STEP_build);
    tell_sizes(c);
    output_header_beside(c->options, application_header(c));
    break;
  case EMIT_C:
    run_steps(c, STEP_check_unit);
    tell_sizes(c);
    break;
  case EMIT_SO:
  case EMIT_WHEEL:
    run_steps(c, STEP_build);
    break;
  }
  write_depfile(c);
}

static void inspect(Compilation *c) {
  switch (c->options->explain) {
  case EXPLAIN_NOTHING:
    run_steps(c, LAST_PROGRAM_STEP);
    for (int i = 0; i < c->n_branches; i++) inspect_module(c->options, c->branches[i].program);
    break;
  case EXPLAIN_VERDICT:
    run_steps(c, LAST_PROGRAM_STEP);
    for (int i = 0; i < c->n_branches; i++) inspect_verdict(c->options, c->branches[i].program);
    break;
  case EXPLAIN_RNN:
  case EXPLAIN_CONV:
  case EXPLAIN_LAYOUT:
    run_steps(c, LAST_LAYOUT_STEP);
    for (int i = 0; i < c->n_branches; i++) inspect_choices(c->options, c->branches[i].graph);
    break;
  case EXPLAIN_INT8:
    inspect_int8(c);
    break;
  }
}

static void tune_models(Compilation *c) {
  run_steps(c, LAST_LAYOUT_STEP);
  tune_networks(c);
}

static void manage_schedules(const Options *options, Arena *arena) {
  switch (options->schedule_verb) {
  case SCHEDULES_MERGE:
    schedules_merge(arena, options->files, options->output);
    break;
  case SCHEDULES_CHECK:
    schedules_check(arena, options->files);
    break;
  case SCHEDULES_SHOW:
    schedules_show(arena, options->files);
    break;
  }
  stop_on_errors();
}

static void show_targets(const Options *options, Arena *arena) {
  if (options->calibrate)
    calibrate(arena, options->output, options->budget_seconds);
  else
    inspect_targets(arena);
}

int main(int argc, char **argv) {
  diagnostics_by_line();
  Arena *arena = arena_new();
  Options options = parse_options(arena, argc, argv);
  interrupt_catch();
  outputs_are_known(&options, arena);
  switch (options.verb) {
  case VERB_COMPILE:
  case VERB_BUNDLE:
    compile(compilation_new(&options, arena));
    break;
  case VERB_INSPECT:
    inspect(compilation_new(&options, arena));
    break;
  case VERB_TUNE:
    tune_models(compilation_new(&options, arena));
    break;
  case VERB_QUANTIZE:
    quantise_model(compilation_new(&options, arena));
    break;
  case VERB_SCHEDULES:
    manage_schedules(&options, arena);
    break;
  case VERB_TARGETS:
    show_targets(&options, arena);
    break;
  }
  arena_free(arena);
  stop(EXIT_OK);
}
