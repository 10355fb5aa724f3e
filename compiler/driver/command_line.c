/* SPDX-License-Identifier: MIT */
/* options.def as a table, and the readers of its values. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/options.h"
#include "driver/steps.h"
#include "kernels/conv/convolution.h"
#include "kernels/recurrent/variant.h"
#include "machine/portable_target.h"
#include "machine/targets.h"
#include "support/closest.h"
#include "support/diagnostics.h"
#include "support/identifier.h"

/* ---- actions; they return NULL, or what was expected ---- */

static const char *take_one_target(Options *options, const char *name) {
  const char *expected =
      "native, a name that `rnncc targets` lists, with any of its features, or a triple of Linux; or "
      "several, with commas between";
  const Target *target = target_named(options->arena, name);
  if (!target && is_linux_triple(name)) target = portable_target(options->arena, name, &expected);
  if (!target) return expected;
  options_add_target(options, target, !strcmp(name, "native"));
  return NULL;
}

/* A list; each is looked at by itself. */
static const char *take_target(void *into, const char *value) {
  Options *options = into;
  options->n_targets = 0;
  for (const char *name = value;; name++) {
    int length = (int)strcspn(name, ",");
    const char *expected = take_one_target(options, arena_format(options->arena, "%.*s", length, name));
    if (expected) return expected;
    name += length;
    if (!*name) return NULL;
  }
}

static const char *take_name(void *into, const char *value) {
  ((Options *)into)->name = value;
  return is_identifier(value) ? NULL : "an identifier of C: letters, digits and underscores, no digit first";
}

static const char *take_dim(void *into, const char *value) {
  Options *options = into;
  bool right = settings_add_dim(&options->settings, options->arena, value);
  return right ? NULL : "NAME=MIN..OPT..MAX, NAME=MIN..MAX or NAME=N";
}

static const char *take_state(void *into, const char *value) {
  Options *options = into;
  return settings_add_state(&options->settings, options->arena, value) ? NULL : "INPUT=OUTPUT";
}

static const char *take_freeze(void *into, const char *value) {
  Options *options = into;
  return settings_add_freeze(&options->settings, options->arena, value) ? NULL : "NAME=VALUE";
}

static const char *take_seed(void *into, const char *value) {
  char *end;
  errno = 0;
  ((Options *)into)->seed = strtoull(value, &end, 10);
  return *value >= '0' && *value <= '9' && !*end && !errno ? NULL : "a whole number below 2^64";
}

static const char *take_rnn(void *into, const char *value) {
  ParsedSchedule parsed;
  ((Options *)into)->variant = value;
  return !schedule_parse(recurrent_kinds, value, &parsed) ? NULL
                                                          : "KEY=N, more of them after commas, as --help lists them";
}

static const char *take_conv(void *into, const char *value) {
  ParsedSchedule parsed;
  ((Options *)into)->conv_form = value;
  return schedule_parse(convolution_kinds, value, &parsed)
             ? "an algorithm, then its KEY=N after commas, as --help lists them"
             : NULL;
}

static const char *take_memory(void *into, const char *value) {
  Options *options = into;
  options->memory = true;
  options->memory_picture = value;
  return value && !*value ? "a path" : NULL;
}

static const char *take_only(void *into, const char *value) {
  Options *options = into;
  options->tune_conv = !strcmp(value, "conv");
  options->tune_rnn = !strcmp(value, "rnn");
  return options->tune_conv || options->tune_rnn ? NULL : "conv or rnn";
}

static const char *take_trials(void *into, const char *value) {
  enum { MAX_TRIALS = 1000000 };
  Options *options = into;
  char *end;
  long trials = strtol(value, &end, 10);
  options->exhaustive = !strcmp(value, "all");
  options->trials = (int)trials;
  bool right = options->exhaustive || (end != value && !*end && trials >= 1 && trials <= MAX_TRIALS);
  return right ? NULL : "all, or a whole number from 1 to 1000000";
}

static const char *take_shard(void *into, const char *value) {
  enum { MAX_SHARDS = 100000 };
  Options *options = into;
  char *slash, *end = "?";
  long shard = strtol(value, &slash, 10), shards = *slash == '/' ? strtol(slash + 1, &end, 10) : 0;
  options->shard = (int)shard;
  options->shards = (int)shards;
  return *end || shards > MAX_SHARDS || shard < 1 || shard > shards ? "K/N, with K from 1 to N" : NULL;
}

static const char *take_dump(void *into, const char *value) {
  if (!strcmp(value, "list")) {
    steps_list();
    stop(EXIT_OK);
  }
  ((Options *)into)->dump_after = step_find(value);
  return step_find(value) ? NULL : "a step that --dump-after=list lists";
}

static const char *take_color(void *into, const char *value) {
  static const char *const whens[] = {"never", "always", "auto"};
  (void)into;
  for (int when = 0; when < 3; when++)
    if (!strcmp(whens[when], value)) return diagnostics_color(when == 2 ? -1 : when), NULL;
  return "auto, always or never";
}

static const char *take_version(void *into, const char *value) {
  (void)into, (void)value;
  puts("rnncc " RNNCC_VERSION);
  stop(EXIT_OK);
}

/* ---- the table ---- */

#define ON(verb) (1u << VERB_##verb)
#define ON_MODELS (ON(COMPILE) | ON(BUNDLE) | ON(INSPECT) | ON(TUNE))
#define ON_ALL (ON_MODELS | ON(SCHEDULES) | ON(TARGETS))

#define FIELD(name) .field = offsetof(Options, name)
#define FLAG(name) {.kind = ACTION_FLAG, FIELD(name)}
#define TEXT(name) {.kind = ACTION_TEXT, FIELD(name)}
#define COUNT(name, most) {.kind = ACTION_COUNT, FIELD(name), .limit = (most)}
#define SECONDS(name) {.kind = ACTION_SECONDS, FIELD(name)}
#define CHOICE(name, first) {.kind = ACTION_CHOICE, FIELD(name), .limit = (first)}
#define CALL(function) {.kind = ACTION_CALL, .call = (function)}
#define HELP {.kind = ACTION_HELP}

static const char target_words[] = "native"
#define TARGET(name, ...) " " name
#define MUSL(name, ...) " " name
#include "machine/targets.def"
    ;

static const char rnn_text[] = "Forces how recurrent layers run, by these keys:"
#define KNOB(name, min, max, words) " " #name
#include "kernels/recurrent/knobs.def"
                               ". input is ahead or step, the others are numbers.";

static const char conv_text[] = "Forces how convolutions run where they can: an algorithm, then its KEY=N after commas."
#define KNOB(algorithm, name) " " #name
#define ALGORITHM(name, knobs) " " #name ":" knobs "."
#include "kernels/conv/algorithms.def"
                                " With plain, no tensor is blocked.";

static const char conv_words[] =
#define ALGORITHM(name, knobs) #name " "
#include "kernels/conv/algorithms.def"
    ;

static const char step_words[] = "list simplify"
#define STEP(name, says) " " #name
#define GRAPH_PASS(name, says) STEP(name, says)
#define SUB_PASS(group, name, says) STEP(name, says)
#define PROGRAM_PASS(name, settles, says) STEP(name, says)
#include "passes.def"
    ;

static const CommandVerb verbs[] = {
#define VERB(name, text, operands, summary, details, example) {text, operands, summary, details, example},
#include "driver/options.def"
};

static const CommandWord words[] = {
#define WORD(verb, name, text, help) {VERB_##verb, text, help},
#include "driver/options.def"
};

static const CommandOption options[] = {
#define SECTION(title) {.help = (title)},
#define OPTION(...) {__VA_ARGS__},
#include "driver/options.def"
};

static const CommandNote variables[] = {
#define VARIABLE(name, help) {name, help},
#include "driver/options.def"
};

static const CommandNote exits[] = {
#define STATUS(code, help) {code, help},
#include "driver/options.def"
};

static __attribute__((noreturn)) void refuse(const char *message) {
  error_at(LOCATION_FILE(NULL), EXIT_INVALID, "%s", message);
  note_at(LOCATION_FILE(NULL), "`rnncc --help` lists what there is");
  stop(EXIT_INVALID);
}

static const char *closest(const char *word, const char *const *names, int n) {
  Closest closest = closest_to(word);
  for (int i = 0; i < n; i++) closest_try(&closest, names[i]);
  return closest.best;
}

#define LENGTH(array) ((int)(sizeof(array) / sizeof *(array)))

const Command rnncc_command = {
    .name = "rnncc",
    .summary = "rnncc compiles a recurrent or convolutional network into one shared object that needs only libc.",
    .implied_verb = VERB_COMPILE,
    .n_verbs = LENGTH(verbs),
    .verbs = verbs,
    .n_words = LENGTH(words),
    .words = words,
    .n_options = LENGTH(options),
    .options = options,
    .n_variables = LENGTH(variables),
    .variables = variables,
    .n_exits = LENGTH(exits),
    .exits = exits,
    .refuse = refuse,
    .closest = closest,
};
