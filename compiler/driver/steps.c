/* SPDX-License-Identifier: MIT */
#include "driver/steps.h"

#include <stdio.h>
#include <string.h>

#include "driver/config.h"
#include "driver/output.h"
#include "ir/bodies.h"
#include "link/toolchain.h"
#include "load/load.h"
#include "passes.h"
#include "program/dump.h"
#include "program/program.h"
#include "program/verify_program.h"
#include "support/clock.h"
#include "support/files.h"
#include "support/interrupt.h"

/* ---- steps that are not passes ---- */

static void step_load(Compilation *c) {
  c->graph = load_model(c->arena, c->options->model, &c->options->settings);
  c->graph->config = c->config;
}

static void step_lower(Compilation *c) { c->program = lower(c->graph); }

static void step_emit(Compilation *c) { c->unit = emit_unit(c->program, build_record(c->graph)); }

static void step_write_unit(Compilation *c) {
  c->folder = output_folder(c->options, c->arena);
  write_unit(c->program, c->unit, c->folder);
  if (c->options->emit == EMIT_C) write_sources(c->graph, c->folder, output_name(c->options, c->arena));
}

static Build build_of(const Compilation *c) {
  const Options *options = c->options;
  return (Build){.target = c->config->target,
                 .edge = c->config->edge,
                 .name = options->emit == EMIT_A ? output_name(options, c->arena) : NULL,
                 .seconds = options->tool_seconds};
}

/* Of a module clang reads the unit anyhow. */
static void step_check_unit(Compilation *c) {
  if (c->options->emit != EMIT_C) return;
  Build build = build_of(c);
  check_unit(c->arena, c->unit, c->folder, clang_args(c->arena, &build, SOURCE_KERNELS));
}

static void step_build(Compilation *c) {
  const Options *options = c->options;
  Build build = build_of(c);
  build_module(c->program, c->unit, c->folder, &build, options->runtime, output_path(options, c->arena));
  temporary_remove(c->folder);
}

/* ---- the list ---- */

/* One of the three functions is set. */
typedef struct Step {
  const char *name, *group; /* group: NULL: of none */
  const char *says;
  void (*graph_pass)(Graph *graph);
  void (*program_pass)(Program *program);
  void (*step)(Compilation *compilation);
  ProgramStage settled; /* of the program, after it */
} Step;

static const Step steps[] = {
#define STEP(name, says) {#name, NULL, says, .step = step_##name},
#define GRAPH_PASS(name, says) {#name, NULL, says, .graph_pass = (name)},
#define SUB_PASS(group, name, says) {#name, #group, says, .graph_pass = (name)},
#define PROGRAM_PASS(name, settles, says) {#name, NULL, says, .program_pass = (name), .settled = PROGRAM_##settles},
#define PROGRAM_STEP(name, settles, says) {#name, NULL, says, .step = step_##name, .settled = PROGRAM_##settles},
#include "passes.def"
};

const char *step_find(const char *name) {
  const char *found = NULL;
  for (int i = 0; i < STEPS; i++)
    if (!strcmp(steps[i].name, name) || (steps[i].group && !strcmp(steps[i].group, name))) found = steps[i].name;
  return found;
}

void steps_list(void) {
  for (const Step *step = steps; step < steps + STEPS; step++)
    printf("%-25s %s%s%s\n", step->name, step->group ? step->group : "", step->group ? ": " : "", step->says);
}

/* ---- a step ---- */

/* The program, once there is one. */
static void dump(const Compilation *c) {
  Text text = text_new(c->arena);
  if (c->program)
    program_dump(&text, c->program);
  else
    graph_dump(&text, c->graph);
  fwrite(text.data, 1, text.length, stderr);
}

static void tell_remarks(Compilation *c) {
  const Graph *graph = c->graph;
  for (; c->n_told < graph->n_remarks; c->n_told++) fprintf(stderr, "rnncc:   %s\n", graph->remarks[c->n_told]);
}

static void take(Compilation *c, const Step *step) {
  if (step->graph_pass)
    graph_each(c->graph, step->graph_pass);
  else if (step->program_pass)
    step->program_pass(c->program);
  else
    step->step(c);
}

/* The graph, until lowering numbers the values of bodies with all others; then the program. */
static void verify_after(Compilation *c, const Step *step) {
  if (step->graph_pass) graph_each(c->graph, verify);
  if (step->settled) verify_stage(c->program, step->settled);
}

static void run_step(Compilation *c, const Step *step) {
  const Options *options = c->options;
  interrupt_check();
  if (options->verbose) fprintf(stderr, "rnncc: %s\n", step->name);
  double started = seconds_now();
  take(c, step);
  if (options->time_passes) fprintf(stderr, "%9.3f ms  %s\n", 1e3 * (seconds_now() - started), step->name);
  if (options->verbose) tell_remarks(c);
  if (options->verify_each) verify_after(c, step);
  if (options->dump_after && !strcmp(options->dump_after, step->name)) dump(c);
}

Compilation *compilation_new(const Options *options, Arena *arena) {
  Compilation *c = ARENA_NEW(arena, Compilation);
  *c = (Compilation){.options = options, .arena = arena, .config = config_of(arena, options)};
  return c;
}

void run_steps(Compilation *c, StepName last) {
  while (c->next <= last) run_step(c, &steps[c->next++]);
}
