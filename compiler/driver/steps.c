/* SPDX-License-Identifier: MIT */
#include "driver/steps.h"

#include <stdio.h>
#include <string.h>

#include "driver/config.h"
#include "driver/load_model.h"
#include "driver/output.h"
#include "ir/bodies.h"
#include "ir/mutable.h"
#include "link/toolchain.h"
#include "link/wheel.h"
#include "machine/targets.h"
#include "passes.h"
#include "program/dump.h"
#include "program/program.h"
#include "program/verify_program.h"
#include "support/clock.h"
#include "support/closest.h"
#include "support/files.h"
#include "support/identifier.h"
#include "support/interrupt.h"
#include "support/numbers.h"

/* ---- steps that are not passes ---- */

/* A setting of a bundle may be of any network: all are read. */
static void finish_settings(const Compilation *c) {
  Graph **graphs = ARENA_ARRAY(c->arena, Graph *, c->options->n_models);
  for (int i = 0; i < c->options->n_models; i++) graphs[i] = c->branches[i].graph;
  diagnostics_network(NULL);
  settings_finish_bundle(c->arena, &c->options->settings, graphs, c->options->n_models);
}

static void step_load(Compilation *c, Branch *b) {
  const char *network = b->model->network;
  ModelSettings settings = settings_for(&c->options->settings, network, &c->files);
  settings.config = b->config;
  b->graph = load_model(c->arena, b->model->path, &settings);
  if (!network) return;
  b->graph->name = network;
  bool last = b == &c->branches[c->n_branches - 1];
  if (last) finish_settings(c);
  stop_on_errors();
}

/* What the network's weights derive is compiled as a network that no application sees. */
static void step_add_derivation(Compilation *c, Branch *b) {
  Graph *derivation = b->graph->mutables ? b->graph->mutables->derivation : NULL;
  if (!derivation) return;
  Branch *added = &c->branches[c->n_branches + c->n_derivations++];
  *added = (Branch){.model = b->model, .config = derivation->config, .graph = derivation};
  b->derivation = added;
}

/* Which weights need one is known only then: the rest of the steps is for those that compute something. */
static void step_drop_derivations(Compilation *c) {
  int kept = 0;
  for (int i = 0; i < c->n_branches; i++) {
    Branch *b = &c->branches[i];
    if (!b->derivation) continue;
    if (b->derivation->graph->n_outputs) {
      Branch *to = &c->branches[c->n_branches + kept++];
      *to = *b->derivation;
      b->derivation = to;
    } else {
      b->derivation = NULL;
      b->graph->mutables->derivation = NULL;
    }
  }
  c->n_derivations = kept;
}

static void step_lower(Compilation *c, Branch *b) {
  (void)c;
  b->program = lower(b->graph);
}

static void step_join_weights(Compilation *c) {
  int count = c->n_branches + c->n_derivations;
  Program **programs = ARENA_ARRAY(c->arena, Program *, count);
  for (int i = 0; i < count; i++) programs[i] = c->branches[i].program;
  join_weights(programs, count);
}

/* "encoder", "x86_64_v3", "encoder_x86_64_v3"; NULL: there is no other unit. */
static const char *unit_name(const Compilation *c, const Branch *b) {
  const char *network = b->model->network;
  const char *target = c->options->n_targets > 1 ? identifier_of(c->arena, b->config->target->name) : NULL;
  return network && target ? arena_format(c->arena, "%s_%s", network, target) : network ? network : target;
}

/* No network's name begins with a digit. */
static const char *derivation_name(const Compilation *c, const Branch *b) {
  const char *name = unit_name(c, b);
  return name ? arena_format(c->arena, "0_%s_derivation", name) : "derivation";
}

static void step_emit(Compilation *c, Branch *b) {
  bool is_derivation = b >= c->branches + c->n_branches;
  UnitPlace place = {.name = is_derivation ? derivation_name(c, b) : unit_name(c, b),
                     .has_weights = b == c->branches,
                     .derivation = b->derivation ? derivation_name(c, b->derivation) : NULL,
                     .is_derivation = is_derivation};
  b->unit = emit_unit(b->program, build_record(c->options, b->graph), &place);
}

static Units units_of(const Compilation *c) {
  int count = c->n_branches + c->n_derivations;
  const Unit **list = ARENA_ARRAY(c->arena, const Unit *, count);
  for (int i = 0; i < count; i++) list[i] = c->branches[i].unit;
  return (Units){count, c->n_branches, c->options->n_models, list};
}

static void step_write_unit(Compilation *c) {
  Units units = units_of(c);
  c->folder = output_folder(c->options, c->arena);
  if (c->options->emit == EMIT_C)
    write_sources(&units, c->folder, output_name(c->options, c->arena));
  else
    write_units(&units, c->folder);
}

static Build build_of(const Compilation *c) {
  const Options *options = c->options;
  const Config *config = c->branches->config;
  return (Build){.target = config->target,
                 .edge = config->edge,
                 .name = options->emit == EMIT_A ? output_name(options, c->arena) : NULL,
                 .seconds = options->tool_seconds,
                 .sandbox = options->sandbox};
}

/* Of a module clang reads the unit anyhow. */
static void step_check_unit(Compilation *c, Branch *b) {
  if (c->options->emit != EMIT_C) return;
  Build build = build_of(c);
  check_unit(c->arena, b->unit, c->folder, clang_args(c->arena, &build, b->config->target));
}

static void build_wheel(const Compilation *c, const Units *units, const Build *build, const char *output) {
  Graph *graph = c->branches->graph;
  const char *module = arena_format(c->arena, "%s/built.so", c->folder);
  Wheel wheel = {.name = output_name(c->options, c->arena),
                 .version = graph->version,
                 .triple = build->target->triple,
                 .build = build_record(c->options, graph)};
  build_module(units, c->folder, build, c->options->runtime, module);
  puts(wheel_write(c->arena, &wheel, module, output));
}

static void step_build(Compilation *c) {
  const Options *options = c->options;
  Build build = build_of(c);
  Units units = units_of(c);
  const char *output = output_path(options, c->arena);
  if (options->emit == EMIT_WHEEL)
    build_wheel(c, &units, &build, output);
  else
    build_module(&units, c->folder, &build, options->runtime, output);
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

const char *steps_near(Arena *arena, const char *name) {
  const char *names[STEPS];
  for (int i = 0; i < STEPS; i++) names[i] = steps[i].name;
  return nearest_names(arena, name, names, STEPS);
}

void steps_list(void) {
  for (const Step *step = steps; step < steps + STEPS; step++)
    printf("%-25s %s%s%s\n", step->name, step->group ? step->group : "", step->group ? ": " : "", step->says);
}

/* ---- a step ---- */

/* The program, once there is one. */
static void dump(const Compilation *c, const Branch *b) {
  Text text = text_new(c->arena);
  if (b->model->network) text_add(&text, "network %s\n", b->model->network);
  if (c->options->n_targets > 1) text_add(&text, "target %s\n", b->config->target->name);
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

/* " of encoder for x86-64-v3", of a step that is not of all. */
static const char *of_branch(const Compilation *c, const Branch *b, const Step *step) {
  if (step->joint_step) return "";
  const char *network = b->model->network, *target = c->options->n_targets > 1 ? b->config->target->name : NULL;
  return arena_format(c->arena, "%s%s%s%s", network ? " of " : "", network ? network : "", target ? " for " : "",
                      target ? target : "");
}

/* A joint step for the first branch only. */
static void run_step(Compilation *c, Branch *b, const Step *step) {
  const Options *options = c->options;
  interrupt_check();
  if (step->joint_step && b != c->branches) return;
  if (options->verbose) fprintf(stderr, "rnncc: %s%s\n", step->name, of_branch(c, b, step));
  double started = seconds_now();
  const char *before = diagnostics_network(step->joint_step ? NULL : b->model->network);
  take(c, b, step);
  if (options->time_passes)
    fprintf(stderr, "%9.3f ms  %s%s\n", 1e3 * (seconds_now() - started), step->name, of_branch(c, b, step));
  if (options->verbose) tell_remarks(b);
  if (options->verify_each) verify_after(b, step);
  diagnostics_network(before);
}

static Compilation *compilation_of(const Options *options, Arena *arena, int n_branches) {
  Compilation *c = ARENA_NEW(arena, Compilation);
  int most = 2 * n_branches; /* each may have a derivation */
  *c = (Compilation){.options = options,
                     .arena = arena,
                     .files.arena = arena,
                     .n_branches = n_branches,
                     .branches = ARENA_ARRAY(arena, Branch, most)};
  return c;
}

Compilation *compilation_of_model(const Options *options, Arena *arena, const Config *config) {
  Compilation *c = compilation_of(options, arena, 1);
  *c->branches = (Branch){.model = options->models, .config = config};
  return c;
}

Compilation *compilation_of_graph(const Options *options, Graph *graph, StepName next) {
  PlannedModel *model = ARENA_NEW(graph->arena, PlannedModel);
  Compilation *c = compilation_of(options, graph->arena, 1);
  *model = (PlannedModel){.path = graph->file};
  *c->branches = (Branch){.model = model, .config = graph->config, .graph = graph};
  c->next = next;
  return c;
}

Compilation *compilation_new(const Options *options, Arena *arena) {
  Compilation *c = compilation_of(options, arena, options->n_targets * options->n_models);
  for (int target = 0; target < options->n_targets; target++) {
    const Config *config = config_of(arena, options, &options->targets[target]);
    for (int model = 0; model < options->n_models; model++)
      c->branches[target * options->n_models + model] = (Branch){.model = &options->models[model], .config = config};
  }
  return c;
}

static bool is_left_out(const Options *options, const Step *step) {
  for (int i = 0; i < options->n_without; i++)
    if (!strcmp(options->without[i], step->name)) return true;
  return false;
}

void run_steps(Compilation *c, StepName last) {
  for (; c->next <= last; c->next++) {
    const Step *step = &steps[c->next];
    if (is_left_out(c->options, step)) continue;
    bool dumped = c->options->dump_after && !strcmp(c->options->dump_after, step->name);
    for (int i = 0; i < c->n_branches + c->n_derivations; i++) run_step(c, &c->branches[i], step);
    for (int i = 0; dumped && i < c->n_branches + c->n_derivations; i++) dump(c, &c->branches[i]);
  }
}

/* The first target's branch has the inputs and outputs of all. */
static HeaderPart header_part(const Compilation *c, int model) {
  const Branch *first = &c->branches[model];
  const char *name = output_name(c->options, c->arena), *network = first->model->network;
  HeaderPart part = {.network = network,
                     .program = first->program,
                     .prefix = network ? arena_format(c->arena, "%s_%s", name, network) : name};
  for (const Branch *b = first; b < c->branches + c->n_branches; b += c->options->n_models)
    part.context_bytes = max_int(part.context_bytes, context_bytes(b->program));
  return part;
}

Text application_header(const Compilation *c) {
  int count = c->options->n_models;
  HeaderPart *parts = ARENA_ARRAY(c->arena, HeaderPart, count);
  for (int i = 0; i < count; i++) parts[i] = header_part(c, i);
  return emit_header(c->arena, parts, count, output_name(c->options, c->arena));
}

void tell_sizes(const Compilation *c) {
  for (int i = 0; i < c->options->n_models; i++) {
    const Branch *b = &c->branches[i];
    output_sizes(c->options, b->model->network ? b->model->network : output_name(c->options, c->arena), b->program);
  }
}
