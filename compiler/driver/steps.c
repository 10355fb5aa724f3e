/* SPDX-License-Identifier: MIT */
#include "driver/steps.h"

#include <stdio.h>
#include <string.h>

#include "driver/config.h"
#include "driver/output.h"
#include "ir/bodies.h"
#include "link/toolchain.h"
#include "load/load.h"
#include "machine/targets.h"
#include "passes.h"
#include "program/dump.h"
#include "program/program.h"
#include "program/verify_program.h"
#include "support/clock.h"
#include "support/files.h"
#include "support/identifier.h"
#include "support/interrupt.h"
#include "support/numbers.h"

/* ---- steps that are not passes ---- */

static void step_load(Compilation *c, Branch *b) {
  b->graph = load_model(c->arena, c->options->model, &c->options->settings);
  b->graph->config = b->config;
}

static void step_lower(Compilation *c, Branch *b) {
  (void)c;
  b->program = lower(b->graph);
}

static void step_join_weights(Compilation *c) {
  Program **programs = ARENA_ARRAY(c->arena, Program *, c->n_branches);
  for (int i = 0; i < c->n_branches; i++) programs[i] = c->branches[i].program;
  join_weights(programs, c->n_branches);
}

static void step_emit(Compilation *c, Branch *b) {
  UnitPlace place = {.name = c->n_branches > 1 ? identifier_of(c->arena, b->config->target->name) : NULL,
                     .has_weights = b == c->branches};
  b->unit = emit_unit(b->program, build_record(b->graph), &place);
}

static Units units_of(const Compilation *c) {
  const Unit **list = ARENA_ARRAY(c->arena, const Unit *, c->n_branches);
  for (int i = 0; i < c->n_branches; i++) list[i] = c->branches[i].unit;
  return (Units){c->n_branches, list};
}

static void step_write_unit(Compilation *c) {
  Units units = units_of(c);
  c->folder = output_folder(c->options, c->arena);
  write_units(&units, c->folder);
  if (c->options->emit == EMIT_C) write_sources(&units, c->folder, output_name(c->options, c->arena));
}

static Build build_of(const Compilation *c) {
  const Options *options = c->options;
  const Config *config = c->branches->config;
  return (Build){.target = config->target,
                 .edge = config->edge,
                 .name = options->emit == EMIT_A ? output_name(options, c->arena) : NULL,
                 .seconds = options->tool_seconds};
}

/* Of a module clang reads the unit anyhow. */
static void step_check_unit(Compilation *c, Branch *b) {
  if (c->options->emit != EMIT_C) return;
  Build build = build_of(c);
  check_unit(c->arena, b->unit, c->folder, clang_args(c->arena, &build, b->config->target));
}

static void step_build(Compilation *c) {
  const Options *options = c->options;
  Build build = build_of(c);
  Units units = units_of(c);
  build_module(&units, c->folder, &build, options->runtime, output_path(options, c->arena));
  temporary_remove(c->folder);
}

/* ---- the list ---- */

/* One of the four functions is set. */
typedef struct Step {
  const char *name, *group; /* group: NULL: of none */
  const char *says;
  void (*graph_pass)(Graph *graph);
  void (*program_pass)(Program *program);
  void (*step)(Compilation *compilation, Branch *branch);
  void (*joint_step)(Compilation *compilation);
  ProgramStage settled; /* of the program, after it */
} Step;

static const Step steps[] = {
#define STEP(name, says) {#name, NULL, says, .step = step_##name},
#define JOINT_STEP(name, says) {#name, NULL, says, .joint_step = step_##name},
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
static void dump(const Compilation *c, const Branch *b) {
  Text text = text_new(c->arena);
  if (c->n_branches > 1) text_add(&text, "target %s\n", b->config->target->name);
  if (b->program)
    program_dump(&text, b->program);
  else
    graph_dump(&text, b->graph);
  fwrite(text.data, 1, text.length, stderr);
}

static void tell_remarks(Branch *b) {
  const Graph *graph = b->graph;
  for (; b->n_told < graph->n_remarks; b->n_told++) fprintf(stderr, "rnncc:   %s\n", graph->remarks[b->n_told]);
}

static void take(Compilation *c, Branch *b, const Step *step) {
  if (step->graph_pass)
    graph_each(b->graph, step->graph_pass);
  else if (step->program_pass)
    step->program_pass(b->program);
  else if (step->step)
    step->step(c, b);
  else
    step->joint_step(c);
}

/* The graph, until lowering numbers the values of bodies with all others; then the program. */
static void verify_after(const Branch *b, const Step *step) {
  if (step->graph_pass) graph_each(b->graph, verify);
  if (step->settled) verify_stage(b->program, step->settled);
}

/* " for x86-64-v3", of a step for one target of several. */
static const char *for_target(const Compilation *c, const Branch *b, const Step *step) {
  return c->n_branches > 1 && !step->joint_step ? arena_format(c->arena, " for %s", b->config->target->name) : "";
}

/* A joint step for the first branch only. */
static void run_step(Compilation *c, Branch *b, const Step *step) {
  const Options *options = c->options;
  interrupt_check();
  if (step->joint_step && b != c->branches) return;
  if (options->verbose) fprintf(stderr, "rnncc: %s%s\n", step->name, for_target(c, b, step));
  double started = seconds_now();
  take(c, b, step);
  if (options->time_passes)
    fprintf(stderr, "%9.3f ms  %s%s\n", 1e3 * (seconds_now() - started), step->name, for_target(c, b, step));
  if (options->verbose) tell_remarks(b);
  if (options->verify_each) verify_after(b, step);
}

Compilation *compilation_new(const Options *options, Arena *arena) {
  Compilation *c = ARENA_NEW(arena, Compilation);
  *c = (Compilation){.options = options,
                     .arena = arena,
                     .n_branches = options->n_targets,
                     .branches = ARENA_ARRAY(arena, Branch, options->n_targets)};
  for (int i = 0; i < c->n_branches; i++) c->branches[i].config = config_of(arena, options, &options->targets[i]);
  return c;
}

void run_steps(Compilation *c, StepName last) {
  for (; c->next <= last; c->next++) {
    const Step *step = &steps[c->next];
    bool dumped = c->options->dump_after && !strcmp(c->options->dump_after, step->name);
    for (int i = 0; i < c->n_branches; i++) run_step(c, &c->branches[i], step);
    for (int i = 0; dumped && i < c->n_branches; i++) dump(c, &c->branches[i]);
  }
}

Text application_header(const Compilation *c) {
  int64_t bytes = 0;
  for (int i = 0; i < c->n_branches; i++) bytes = max_int(bytes, context_bytes(c->branches[i].program));
  return emit_header(c->branches->program, bytes, output_name(c->options, c->arena));
}
