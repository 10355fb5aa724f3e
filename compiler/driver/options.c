/* SPDX-License-Identifier: MIT */
#include "driver/bundle.h"
#include "driver/output.h"
#include "link/wheel.h"

#include <stdlib.h>
#include <string.h>

#include "machine/machine_file.h"
#include "machine/targets.h"
#include "support/diagnostics.h"
#include "support/list.h"

#define REFUSE(...) rnncc_command.refuse(arena_format(options->arena, __VA_ARGS__))

/* ---- operands ---- */

/* The word after `schedules`, and its files. */
static void take_schedule_words(Options *options, char **words, int count) {
  if (count < 2) REFUSE("schedules %s: expected files of records, found none", words[0]);
  options->files = (FileList){words + 1, count - 1};
  bool writes = options->schedule_verb == SCHEDULES_MERGE;
  if (writes && !options->output) REFUSE("schedules %s: expected -o RECORDS, found none", words[0]);
  if (!writes && options->output) REFUSE("-o goes with schedules merge, not with %s", words[0]);
}

static void take_model(Options *options, char **words, int count) {
  if (count == 0) REFUSE("expected a model, found none");
  options->models = ARENA_NEW(options->arena, PlannedModel);
  *options->models = (PlannedModel){.path = words[0]};
  options->n_models = 1;
  if (count == 1) return;
  const char *verb = command_closest_verb(&rnncc_command, words[0]);
  if (verb && strcmp(verb, words[0]) != 0) REFUSE("unknown verb %s; did you mean %s?", words[0], verb);
  REFUSE("expected one model, found a second: \"%s\"", words[1]);
}

static void take_words(Options *options, const CommandLine *line) {
  options->schedule_verb = (ScheduleVerb)line->word;
  if (options->verb == VERB_SCHEDULES)
    take_schedule_words(options, line->words, line->n_words);
  else if (bundle_is_meant(options->verb, line->words, line->n_words))
    bundle_networks(options, line->words, line->n_words);
  else if (options->verb != VERB_TARGETS)
    take_model(options, line->words, line->n_words);
  else if (line->n_words)
    REFUSE("targets: expected no model, found \"%s\"", line->words[0]);
}

static void check_settings(const Options *options) {
  bool bundle = options->n_models && options->models[0].network;
  const char *name, *option = settings_twice(&options->settings, bundle, &name);
  if (option) REFUSE("%s: expected \"%.80s\" once, found it twice", option, name);
}

/* ---- targets ---- */

void options_add_target(Options *options, const Target *target, bool native) {
  *LIST_APPEND(options->arena, options->targets, options->n_targets) =
      (PlannedTarget){.target = target, .native = native};
}

/* A feature stands after those that it needs: of two targets, the one whose last feature is later comes first. */
static int by_features(const void *a, const void *b) {
  uint32_t first = ((const PlannedTarget *)a)->target->cpu_features,
           second = ((const PlannedTarget *)b)->target->cpu_features;
  return (first < second) - (first > second);
}

static void check_pair(const Options *options, const Target *first, const Target *second) {
  if (strcmp(first->triple, second->triple) != 0)
    REFUSE("--target: expected targets of one architecture and libc, found %s (%s) and %s (%s)", first->name,
           first->triple, second->name, second->triple);
  if (!strcmp(first->name, second->name)) REFUSE("--target: expected each target once, found %s twice", first->name);
}

static void check_targets(const Options *options) {
  for (int i = 0; i < options->n_targets; i++)
    for (int j = 0; j < i; j++) check_pair(options, options->targets[j].target, options->targets[i].target);
}

/* What is of one target only. */
static void check_one_target(const Options *options) {
  if (options->n_targets <= 1) return;
  const char *one = options->verb == VERB_TUNE         ? "tune"
                    : options->verb == VERB_QUANTIZE   ? "quantize"
                    : options->profile == PROFILE_EDGE ? "--profile=edge"
                    : options->emit == EMIT_DOT        ? "--emit=dot"
                    : options->memory_picture          ? "--memory=FILE"
                    : options->html                    ? "--html"
                                                       : NULL;
  if (one) REFUSE("%s: expected one target, found %d", one, options->n_targets);
}

static void plan_targets(Options *options) {
  if (!options->n_targets) options_add_target(options, target_named(options->arena, "native"), true);
  qsort(options->targets, (size_t)options->n_targets, sizeof *options->targets, by_features);
  for (PlannedTarget *it = options->targets; it < options->targets + options->n_targets; it++)
    it->machine = machine_choose(options->arena, options->machine_given, it->target, it->native, options->threads);
}

/* ---- options that depend on each other ---- */

static void check_tuning(Options *options) {
  if (options->runner && options->tune_rnn)
    REFUSE("--runner measures convolutions, --only=rnn tunes recurrent layers: these are measured here");
  if (!options->tune_rnn && !options->tune_conv) options->tune_conv = true, options->tune_rnn = !options->runner;
}

/* Without --target it is this machine's. */
static void check_samples_run(const Options *options) {
  for (int i = 0; i < options->n_targets; i++)
    if (!target_runs_here(options->targets[i].target))
      REFUSE("--data: the network runs on this machine, which cannot run %s; expected a --target that it can run",
             options->targets[i].target->name);
}

static void check_quantising(Options *options) {
  options->quantise.rewrite.correct_bias = !options->no_bias_correction;
  if (options->quantise.rewrite.seven_bits && options->quantise.rewrite.recurrent == PRODUCTS_f32)
    REFUSE("--seven-bits is for products of integers: expected --recurrent=dynamic or static");
  if (options->quantise.n_data) {
    check_samples_run(options);
    return;
  }
  if (options->quantise.max_error >= 0) REFUSE("--max-error needs samples: expected --data, found none");
  if (options->quantise.plot) REFUSE("--plot needs samples: expected --data, found none");
  if (options->quantise.feedback) REFUSE("--feedback needs samples: expected --data, found none");
  if (options->quantise.rewrite.recurrent == PRODUCTS_int8_static)
    REFUSE("--recurrent=static needs samples: expected --data, found none");
}

static void check_kind(Options *options) {
  if (options->static_library && options->emit != EMIT_SO) REFUSE("--static goes with no --emit but so");
  if (options->static_library) options->emit = EMIT_A;
  bool named = options->emit == EMIT_A || options->emit == EMIT_H || options->emit == EMIT_C;
  if (options->name && !named && options->emit != EMIT_WHEEL)
    REFUSE("--name goes with --static, --emit=h, --emit=c and --emit=wheel");
}

static void check_wheel(const Options *options) {
  if (options->emit != EMIT_WHEEL) return;
  if (options->depfile) REFUSE("--depfile goes with outputs whose path is known, not with --emit=wheel");
  if (options->output && file_has_suffix(options->output, ".whl"))
    REFUSE("-o: expected the folder of the wheel, whose name says what it is for, found %s", options->output);
  const char *name = output_name(options, options->arena);
  if (is_python_word(name))
    REFUSE("--emit=wheel: no package can be called %s, a word of Python; expected --name=NAME", name);
}

static void check_profile(Options *options) {
  if (options->profile != PROFILE_EDGE) return;
  const Target *target = options->n_targets ? options->targets->target : NULL;
  bool tells_itself = target && !strncmp(target->triple, "x86_64-", 7); /* no system is asked for its features */
  if (target && strchr(target->name, '+') && !tells_itself)
    REFUSE("--profile=edge: expected a target without features, found %s", target->name);
  if (options->threads > 1) REFUSE("--profile=edge: expected one thread, found --threads=%d", options->threads);
  bool compiles = options->verb == VERB_COMPILE || options->verb == VERB_BUNDLE;
  bool shared = compiles && (options->emit == EMIT_SO || options->emit == EMIT_WHEEL);
  if (shared) REFUSE("--profile=edge goes with --static, --emit=c and --emit=h");
  options->threads = 1;
}

static void check_training(const Options *options) {
  if (options->training.loss && !options->training.wanted) REFUSE("--loss goes with --train");
  if (options->training.outer_loss && !options->training.wanted) REFUSE("--outer-loss goes with --train");
  if (options->training.outer_loss && options->training.loss)
    REFUSE("expected --loss or --outer-loss, found both: the loss is in the model or outside of it");
  if (options->training.wanted && options->emit == EMIT_GRAPH)
    REFUSE("--train: --emit=graph writes the model, not a module");
  if (options->training.wanted && options->profile == PROFILE_EDGE) REFUSE("--train: expected no --profile=edge");
}

static void check_weights(const Options *options) {
  if (options->weights != WEIGHTS_MUTABLE) return;
  if (options->profile == PROFILE_EDGE)
    REFUSE("--weights=mutable: a model has memory of its own for them, which --profile=edge has not");
  if (options->emit == EMIT_GRAPH) REFUSE("--weights=mutable: --emit=graph writes the model, not a module");
  if (options->training.wanted) REFUSE("--weights=mutable: --train has weights that change already");
}

static void check_output(const Options *options) {
  bool to_stdout = options->output && !strcmp(options->output, "-");
  bool is_text = options->emit == EMIT_DOT || options->emit == EMIT_H;
  if (to_stdout && !is_text) REFUSE("-o -: only --emit=h and --emit=dot go to stdout");
  if (options->n_models && options->models->network) bundle_check(options);
  check_wheel(options);
  bool alone = options->verb == VERB_TARGETS && !options->calibrate;
  if (alone && options->output) REFUSE("targets: -o goes with --calibrate");
  if (alone && options->budget_seconds > 0) REFUSE("targets: --budget goes with --calibrate");
}

Options parse_options(Arena *arena, int argc, char **argv) {
  Options options = {.arena = arena,
                     .layout_search = LAYOUT_SEARCH_AUTO,
                     .tool_seconds = 300,
                     .shard = 1,
                     .shards = 1,
                     .quantise = {.ranges = RANGES_MSE, .percentile = 99.99, .max_error = -1},
                     .settings = settings_new(arena, argc)};
  CommandLine line = command_parse(&rnncc_command, argc, argv, &options);
  if (line.help) {
    command_help(stdout, &rnncc_command, &line);
    stop(EXIT_OK);
  }
  options.verb = (Verb)line.verb;
  take_words(&options, &line);
  check_settings(&options);
  check_tuning(&options);
  check_quantising(&options);
  check_kind(&options);
  check_targets(&options);
  check_one_target(&options);
  check_profile(&options);
  check_training(&options);
  check_weights(&options);
  check_output(&options);
  if (!(options.budget_seconds > 0)) options.budget_seconds = options.verb == VERB_TARGETS ? 6 : 60;
  if (options.verb != VERB_TARGETS && options.verb != VERB_SCHEDULES) plan_targets(&options);
  return options;
}
