/* SPDX-License-Identifier: MIT */
#include "driver/options.h"

#include <string.h>

#include "machine/machine_file.h"
#include "machine/targets.h"
#include "support/diagnostics.h"

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
  options->model = words[0];
  if (count == 1) return;
  const char *verb = command_closest_verb(&rnncc_command, words[0]);
  if (verb && strcmp(verb, words[0]) != 0) REFUSE("unknown verb %s; did you mean %s?", words[0], verb);
  REFUSE("expected one model, found a second: \"%s\"", words[1]);
}

static void take_words(Options *options, const CommandLine *line) {
  options->schedule_verb = (ScheduleVerb)line->word;
  if (options->verb == VERB_SCHEDULES)
    take_schedule_words(options, line->words, line->n_words);
  else if (options->verb != VERB_TARGETS)
    take_model(options, line->words, line->n_words);
  else if (line->n_words)
    REFUSE("targets: expected no model, found \"%s\"", line->words[0]);
}

/* ---- options that depend on each other ---- */

static void check_tuning(Options *options) {
  if (options->runner && options->tune_rnn)
    REFUSE("--runner measures convolutions, --only=rnn tunes recurrent layers: these are measured here");
  if (!options->tune_rnn && !options->tune_conv) options->tune_conv = true, options->tune_rnn = !options->runner;
}

static void check_kind(Options *options) {
  if (options->static_library && options->emit != EMIT_SO) REFUSE("--static goes with no --emit but so");
  if (options->static_library) options->emit = EMIT_A;
  bool named = options->emit == EMIT_A || options->emit == EMIT_H || options->emit == EMIT_C;
  if (options->name && !named) REFUSE("--name goes with --static, --emit=h and --emit=c");
}

static void check_profile(Options *options) {
  if (options->profile != PROFILE_EDGE) return;
  const Target *target = options->target;
  if (target && strchr(target->name, '+'))
    REFUSE("--profile=edge: expected a target without features, found %s", target->name);
  if (options->threads > 1) REFUSE("--profile=edge: expected one thread, found --threads=%d", options->threads);
  bool shared = options->verb == VERB_COMPILE && options->emit == EMIT_SO;
  if (shared) REFUSE("--profile=edge goes with --static, --emit=c and --emit=h");
  options->threads = 1;
}

static void check_output(const Options *options) {
  bool to_stdout = options->output && !strcmp(options->output, "-");
  bool is_text = options->emit == EMIT_DOT || options->emit == EMIT_H;
  if (to_stdout && !is_text) REFUSE("-o -: only --emit=h and --emit=dot go to stdout");
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
                     .settings = settings_new(arena, argc)};
  CommandLine line = command_parse(&rnncc_command, argc, argv, &options);
  if (line.help) {
    command_help(stdout, &rnncc_command, line.verb);
    stop(EXIT_OK);
  }
  options.verb = (Verb)line.verb;
  take_words(&options, &line);
  check_tuning(&options);
  check_kind(&options);
  check_profile(&options);
  check_output(&options);
  if (!(options.budget_seconds > 0)) options.budget_seconds = options.verb == VERB_TARGETS ? 6 : 60;
  if (!options.target) options.target = target_find("native"), options.native = true;
  if (options.verb != VERB_TARGETS && options.verb != VERB_SCHEDULES)
    options.machine = machine_choose(arena, options.machine_given, options.target, options.native, options.threads);
  return options;
}
