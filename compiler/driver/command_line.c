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
#include "support/list.h"

/* ---- actions; they return NULL, or what was expected ---- */

enum { MAX_TARGETS = 64 };

/* Of a target that is known, with a feature that it does not take: its features. */
static const char *expected_target(Arena *arena, const char *name) {
  const char *base = arena_format(arena, "%.*s", (int)strcspn(name, "+"), name);
  const Target *target = target_find(base);
  const char *features = target && strcmp(base, "native") != 0 ? target_features(arena, target) : "";
  const char *names[MAX_TARGETS] = {"native"};
  int count = 1;
  if (target && !*features) return arena_format(arena, "%s without features: it takes none", base);
  if (target) return arena_format(arena, "%s with features of %s", base, features);
  for (; count < MAX_TARGETS && target_at(count - 1); count++) names[count] = target_at(count - 1)->name;
  return arena_format(arena, "%s, with features or none, or a triple of Linux; or several, with commas between",
                      nearest_names(arena, base, names, count));
}

static const char *take_one_target(Options *options, const char *name) {
  const char *expected = expected_target(options->arena, name);
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
  ModelSettings *settings = &options->settings;
  if (!settings_add_dim(settings, options->arena, value))
    return "NAME=MIN..OPT..MAX, NAME=MIN..MAX or NAME=N, of numbers from 1 to 2147483647, with :STEP behind it where "
           "all are multiples of STEP";
  bool right = !dim_bounds_fault(options->arena, settings->list[settings->count - 1].dim);
  return right ? NULL : "MIN <= OPT <= MAX, all multiples of STEP";
}

static const char *take_bound(void *into, const char *value) {
  Options *options = into;
  return settings_add_bound(&options->settings, options->arena, value)
             ? NULL
             : "NAME=MAX or NAME=MIN..MAX, numbers from 1 to 2^31 - 1, MIN <= MAX";
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

/* `oc, px or unroll` */
static const char *knob_names(Arena *arena, const ScheduleKind *kind) {
  Text text = text_new(arena);
  for (const ScheduleKnob *knob = kind->knobs; knob->name; knob++)
    text_add(&text, "%s%s", knob == kind->knobs ? "" : knob[1].name ? ", " : " or ", knob->name);
  return text.data;
}

static const char *kind_names(Arena *arena, const ScheduleKind *const *kinds) {
  Text text = text_new(arena);
  for (const ScheduleKind *const *kind = kinds; *kind; kind++)
    text_add(&text, "%s%s", kind == kinds ? "" : kind[1] ? ", " : " or ", (*kind)->name);
  return text.data;
}

/* NULL, or what was expected: the part that is wrong is of a kind that is known, or not. */
static const char *check_schedule(Arena *arena, const ScheduleKind *const *kinds, const char *value) {
  ParsedSchedule parsed;
  if (!schedule_parse(kinds, value, &parsed)) return NULL;
  if (!parsed.kind) return arena_format(arena, "%s, then its KEY=N after commas", kind_names(arena, kinds));
  if (!parsed.kind->knobs->name) return arena_format(arena, "%s alone", parsed.kind->name);
  return arena_format(arena, "KEY=N of %s%s%s, with commas between", parsed.kind->name ? parsed.kind->name : "",
                      parsed.kind->name ? ": " : "", knob_names(arena, parsed.kind));
}

static const char *take_rnn(void *into, const char *value) {
  Options *options = into;
  options->variant = value;
  return check_schedule(options->arena, recurrent_kinds, value);
}

static const char *take_precision(void *into, const char *value) {
  Options *options = into;
  return precision_parse(options->arena, value, &options->precision);
}

static const char *take_train(void *into, const char *value) {
  Options *options = into;
  return training_parse(options->arena, value, &options->training);
}

static const char *take_loss(void *into, const char *value) {
  ((Options *)into)->training.loss = value;
  return *value ? NULL : "an output's name";
}

static const char *take_conv(void *into, const char *value) {
  Options *options = into;
  options->conv_form = value;
  return check_schedule(options->arena, convolution_kinds, value);
}

static const char *take_memory(void *into, const char *value) {
  Options *options = into;
  options->memory = true;
  options->memory_picture = value;
  return value && !*value ? "a path" : NULL;
}

static const char *take_explain(void *into, const char *value) {
  static const char *const words[] = {
      [EXPLAIN_RNN] = "rnn", [EXPLAIN_CONV] = "conv", [EXPLAIN_LAYOUT] = "layout", [EXPLAIN_INT8] = "int8"};
  Options *options = into;
  options->explain = EXPLAIN_VERDICT;
  if (!value) return NULL;
  for (int i = EXPLAIN_RNN; i <= EXPLAIN_INT8; i++)
    if (!strcmp(value, words[i])) return options->explain = (Explain)i, NULL;
  return "rnn, conv, layout or int8";
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

static const char *take_data(void *into, const char *value) {
  Options *options = into;
  QuantiseOptions *quantise = &options->quantise;
  DataOption *list = list_longer(options->arena, quantise->data, quantise->n_data, sizeof *list);
  list[quantise->n_data++] = data_option(options->arena, value);
  quantise->data = list;
  return *list[quantise->n_data - 1].pattern ? NULL : "a path or a pattern, with NAME= before it or not";
}

static const char *take_ranges(void *into, const char *value) {
  static const char *const rules[] = {
      [RANGES_MINMAX] = "minmax", [RANGES_PERCENTILE] = "percentile", [RANGES_MSE] = "mse"};
  QuantiseOptions *quantise = &((Options *)into)->quantise;
  size_t length = strcspn(value, ":");
  char *end = (char *)(uintptr_t)value + length;
  int rule = 0;
  while (rule <= RANGES_MSE && (strlen(rules[rule]) != length || memcmp(rules[rule], value, length) != 0)) rule++;
  quantise->ranges = (RangeRule)rule;
  if (*end && rule == RANGES_PERCENTILE) quantise->percentile = strtod(end + 1, &end);
  bool right = rule <= RANGES_MSE && !*end && quantise->percentile >= 50 && quantise->percentile <= 100;
  return right ? NULL : "mse, minmax, percentile, or percentile:P with P from 50 to 100";
}

static const char *take_recurrent(void *into, const char *value) {
  static const char *const words[] = {
      [PRODUCTS_f32] = "weights", [PRODUCTS_int8_dynamic] = "dynamic", [PRODUCTS_int8_static] = "static"};
  enum { N_WORDS = sizeof words / sizeof *words };
  int word = 0;
  while (word < N_WORDS && strcmp(words[word], value) != 0) word++;
  ((Options *)into)->quantise.rewrite.recurrent = (RecurrentProducts)word;
  return word < N_WORDS ? NULL : "weights, dynamic or static";
}

static const char *take_group(void *into, const char *value) {
  char *end;
  long group = strtol(value, &end, 10);
  bool right = *value >= '0' && *value <= '9' && !*end && precision_group_fits(group);
  if (right) ((Options *)into)->quantise.rewrite.group = (int)group;
  return right ? NULL : "a power of two from 8 to 1024";
}

static const char *take_dump(void *into, const char *value) {
  if (!strcmp(value, "list")) {
    steps_list();
    stop(EXIT_OK);
  }
  Options *options = into;
  options->dump_after = step_find(value);
  return options->dump_after ? NULL : arena_format(options->arena, "a step: %s", steps_near(options->arena, value));
}

#define STEPS_TO_LEAVE_OUT                                                                                             \
  "join_layers, fuse_attention, split_weighted_sums, products_by_vectors, fuse_epilogue, fuse_chains, fuse_reductions"
static const char without_words[] = STEPS_TO_LEAVE_OUT;

static bool may_be_left_out(const char *step) {
  size_t length = strlen(step);
  for (const char *word = without_words; *word; word += strcspn(word, ", "), word += strspn(word, ", "))
    if (strcspn(word, ", ") == length && !strncmp(word, step, length)) return true;
  return false;
}

static const char *take_without(void *into, const char *value) {
  Options *options = into;
  for (const char *word = strtok(arena_string(options->arena, value), ","); word; word = strtok(NULL, ",")) {
    if (!may_be_left_out(word)) return without_words;
    *LIST_APPEND(options->arena, options->without, options->n_without) = step_find(word);
  }
  return options->n_without ? NULL : without_words;
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
#define ON_MODELS (ON(COMPILE) | ON(BUNDLE) | ON(INSPECT) | ON(TUNE) | ON(QUANTIZE))
#define ON_ALL (ON_MODELS | ON(SCHEDULES) | ON(TARGETS))

#define FIELD(name) .field = offsetof(Options, name)
#define FLAG(name) {.kind = ACTION_FLAG, FIELD(name)}
#define TEXT(name) {.kind = ACTION_TEXT, FIELD(name)}
#define COUNT(name, most) {.kind = ACTION_COUNT, FIELD(name), .limit = (most)}
#define NUMBER(name) {.kind = ACTION_NUMBER, FIELD(name)}
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
                                " With plain, no tensor of f32 is blocked.";

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

#define LENGTH(array) ((int)(sizeof(array) / sizeof *(array)))

static const CommandVerb verbs[] = {
#define VERB(name, text, operands, summary, details, example) {text, operands, summary, details, example},
#include "driver/options.def"
};

static const char *const common[LENGTH(verbs)] = {
#define COMMON(verb, names) [VERB_##verb] = (names),
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
  note_at(LOCATION_FILE(NULL), "`rnncc VERB --help` lists what a verb takes");
  stop(EXIT_INVALID);
}

static const char *closest(const char *word, const char *const *names, int n) {
  Closest closest = closest_to(word);
  for (int i = 0; i < n; i++) closest_try(&closest, names[i]);
  return closest.best;
}

const Command rnncc_command = {
    .name = "rnncc",
    .summary = "rnncc compiles a recurrent or convolutional network into one shared object that needs only libc.",
    .implied_verb = VERB_COMPILE,
    .n_verbs = LENGTH(verbs),
    .verbs = verbs,
    .common = common,
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
