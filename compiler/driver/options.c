/* SPDX-License-Identifier: MIT */
#include "driver/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/help.h"
#include "driver/steps.h"
#include "kernels/conv/form.h"
#include "kernels/recurrent/variant.h"
#include "machine/machine_file.h"
#include "support/diagnostics.h"

enum {
  OPT_EMIT = 256,
  OPT_DIM,
  OPT_STATE,
  OPT_FREEZE,
  OPT_TARGET,
  OPT_THREADS,
  OPT_MACHINE,
  OPT_CALIBRATE,
  OPT_TIMEOUT,
  OPT_RNN,
  OPT_CONV,
  OPT_LAYOUT_SEARCH,
  OPT_BUDGET,
  OPT_RUNNER,
  OPT_ONLY,
  OPT_TRIALS,
  OPT_EXHAUSTIVE,
  OPT_SHARD,
  OPT_NO_WINOGRAD,
  OPT_SCHEDULES,
  OPT_WORKLOAD,
  OPT_MEMORY,
  OPT_EXPLAIN,
  OPT_DUMP,
  OPT_VERIFY,
  OPT_TIME,
  OPT_COLOR,
  OPT_VERSION
};

static const struct option long_options[] = {
    {"output", required_argument, NULL, 'o'},
    {"dim", required_argument, NULL, OPT_DIM},
    {"state", required_argument, NULL, OPT_STATE},
    {"freeze", required_argument, NULL, OPT_FREEZE},
    {"emit", required_argument, NULL, OPT_EMIT},
    {"target", required_argument, NULL, OPT_TARGET},
    {"tool-timeout", required_argument, NULL, OPT_TIMEOUT},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"machine", required_argument, NULL, OPT_MACHINE},
    {"calibrate", no_argument, NULL, OPT_CALIBRATE},
    {"rnn", optional_argument, NULL, OPT_RNN},
    {"layout-search", required_argument, NULL, OPT_LAYOUT_SEARCH},
    {"no-winograd", no_argument, NULL, OPT_NO_WINOGRAD},
    {"budget", required_argument, NULL, OPT_BUDGET},
    {"runner", required_argument, NULL, OPT_RUNNER},
    {"only", required_argument, NULL, OPT_ONLY},
    {"trials", required_argument, NULL, OPT_TRIALS},
    {"exhaustive", no_argument, NULL, OPT_EXHAUSTIVE},
    {"shard", required_argument, NULL, OPT_SHARD},
    {"schedules", required_argument, NULL, OPT_SCHEDULES},
    {"workload", required_argument, NULL, OPT_WORKLOAD},
    {"memory", optional_argument, NULL, OPT_MEMORY},
    {"explain", required_argument, NULL, OPT_EXPLAIN},
    {"dump-after", required_argument, NULL, OPT_DUMP},
    {"verify-each", no_argument, NULL, OPT_VERIFY},
    {"time-passes", no_argument, NULL, OPT_TIME},
    {"verbose", no_argument, NULL, 'v'},
    {"color", required_argument, NULL, OPT_COLOR},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPT_VERSION},
    {"conv", required_argument, NULL, OPT_CONV},
    {NULL, 0, NULL, 0},
};

static const char *const emit_names[] = {
    [EMIT_SO] = "so", [EMIT_C] = "c", [EMIT_H] = "h", [EMIT_GRAPH] = "graph", [EMIT_DOT] = "dot"};

static _Noreturn void usage_error(const char *format, const char *what) {
  error_at(LOCATION_FILE(NULL), EXIT_INVALID, format, what);
  note_at(LOCATION_FILE(NULL), "`rnncc --help` lists what there is");
  stop(EXIT_INVALID);
}

static int choose(const char *given, const char *const *names, int count) {
  for (int i = 0; i < count; i++)
    if (!strcmp(given, names[i])) return i;
  return -1;
}

static void set_emit(Options *options, const char *given) {
  int kind = choose(given, emit_names, sizeof emit_names / sizeof *emit_names);
  if (kind < 0) usage_error("--emit=%s: the kinds are so, c, h, graph, dot", given);
  options->emit = (EmitKind)kind;
}

static void set_target(Options *options, const char *given) {
  options->target = target_find(given);
  options->native = !strcmp(given, "native");
  if (options->target) return;
  error_at(LOCATION_FILE(NULL), EXIT_INVALID, "--target=%s: no such target; `rnncc targets` lists them", given);
  stop(EXIT_INVALID);
}

static void set_color(const char *given) {
  static const char *const whens[] = {"never", "always", "auto"};
  int when = choose(given, whens, 3);
  if (when < 0) usage_error("--color=%s: auto, always or never", given);
  diagnostics_color(when == 2 ? -1 : when);
}

static void set_timeout(Options *options, const char *given) {
  char *end;
  options->tool_seconds = strtod(given, &end);
  if (end == given || *end || !(options->tool_seconds > 0))
    usage_error("--tool-timeout=%s: seconds, more than 0", given);
}

static void set_threads(Options *options, const char *given) {
  enum { MAX_THREADS = 1024 };
  char *end;
  long threads = strtol(given, &end, 10);
  if (end == given || *end || threads < 1 || threads > MAX_THREADS)
    usage_error("--threads=%s: a whole number from 1 to 1024", given);
  options->threads = (int)threads;
}

static void set_budget(Options *options, const char *given) {
  char *end;
  options->budget_seconds = strtod(given, &end);
  if (end != given && !strcmp(end, "s")) end++;
  if (end == given || *end || !(options->budget_seconds > 0 && options->budget_seconds < 1e6))
    usage_error("--budget=%s: seconds, more than 0", given);
}

static void set_only(Options *options, const char *given) {
  options->tune_conv = !strcmp(given, "conv");
  options->tune_rnn = !strcmp(given, "rnn");
  if (!options->tune_conv && !options->tune_rnn) usage_error("--only=%s: conv or rnn", given);
}

static void set_trials(Options *options, const char *given) {
  enum { MAX_TRIALS = 1000000 };
  char *end;
  long trials = strtol(given, &end, 10);
  if (end == given || *end || trials < 1 || trials > MAX_TRIALS)
    usage_error("--trials=%s: a whole number from 1 to 1000000", given);
  options->trials = (int)trials;
}

static void set_shard(Options *options, const char *given) {
  enum { MAX_SHARDS = 100000 };
  char *slash, *end = "?";
  long shard = strtol(given, &slash, 10), shards = *slash == '/' ? strtol(slash + 1, &end, 10) : 0;
  if (*end || shards > MAX_SHARDS || shard < 1 || shard > shards)
    usage_error("--shard=%s: K/N, with K from 1 to N", given);
  options->shard = (int)shard;
  options->shards = (int)shards;
}

/* Options of `rnncc tune`; false if it is none. */
static bool set_tuning(Options *options, int option, const char *argument) {
  switch (option) {
  case OPT_BUDGET:
    set_budget(options, argument);
    return true;
  case OPT_ONLY:
    set_only(options, argument);
    return true;
  case OPT_TRIALS:
    set_trials(options, argument);
    return true;
  case OPT_EXHAUSTIVE:
    options->exhaustive = true;
    return true;
  case OPT_SHARD:
    set_shard(options, argument);
    return true;
  case OPT_RUNNER:
    options->runner = argument;
    return true;
  default:
    return false;
  }
}

/* With a value it forces a variant; alone it says what to tune. */
static void set_rnn(Options *options, const char *given) {
  if (!given) {
    set_only(options, "rnn");
    return;
  }
  RecurrentVariant variant = {0};
  const char *wrong;
  if (!variant_override(&variant, given, &wrong)) usage_error("--rnn: `%s` is no KEY=VALUE that it knows", wrong);
  options->variant = given;
}

static void set_conv(Options *options, const char *given) {
  const char *wrong = form_wrong(given);
  if (wrong) usage_error("--conv: `%s` is no algorithm or KEY=N that it knows", wrong);
  options->conv_form = given;
}

static void set_layout_search(Options *options, const char *given) {
  static const char *const searches[] = {
      [LAYOUT_SEARCH_GREEDY] = "greedy", [LAYOUT_SEARCH_NONE] = "none", [LAYOUT_SEARCH_WIDE] = "wide",
      [LAYOUT_SEARCH_DP] = "dp",         [LAYOUT_SEARCH_PBQP] = "pbqp", [LAYOUT_SEARCH_AUTO] = "auto"};
  int search = choose(given, searches, sizeof searches / sizeof *searches);
  if (search < 0) usage_error("--layout-search=%s: none, greedy, wide, dp, pbqp or auto", given);
  options->layout_search = (LayoutSearch)search;
}

static void set_explain(Options *options, const char *given) {
  static const char *const names[] = {[EXPLAIN_RNN] = "rnn", [EXPLAIN_CONV] = "conv", [EXPLAIN_LAYOUT] = "layout"};
  int explain = choose(given, names + 1, sizeof names / sizeof *names - 1) + 1;
  if (explain == EXPLAIN_NOTHING) usage_error("--explain=%s: it explains rnn, conv and layout", given);
  options->explain = (Explain)explain;
}

/* What they say of the model is checked with it. */
static void add_setting(Options *options, Arena *arena, int option, const char *given) {
  ModelSettings *settings = &options->settings;
  if (option == OPT_DIM && !settings_add_dim(settings, arena, given))
    usage_error("--dim %s: NAME=MIN..OPT..MAX, NAME=MIN..MAX or NAME=N", given);
  if (option == OPT_STATE && !settings_add_state(settings, arena, given))
    usage_error("--state %s: INPUT=OUTPUT", given);
  if (option == OPT_FREEZE && !settings_add_freeze(settings, arena, given))
    usage_error("--freeze %s: NAME=VALUE", given);
}

static void set_dump(Options *options, const char *given) {
  if (!strcmp(given, "list")) {
    steps_list();
    stop(EXIT_OK);
  }
  options->dump_after = step_find(given);
  if (!options->dump_after) usage_error("--dump-after=%s: no such step; --dump-after=list lists them", given);
}

/* Options that change what is told, not what is made. */
static void set_view(Options *options, int option, const char *argument) {
  switch (option) {
  case 'v':
    options->verbose = true;
    break;
  case OPT_EXPLAIN:
    set_explain(options, argument);
    break;
  case OPT_WORKLOAD:
    options->workload = argument;
    break;
  case OPT_MEMORY:
    options->memory = true;
    options->memory_picture = argument;
    break;
  case OPT_DUMP:
    set_dump(options, argument);
    break;
  case OPT_VERIFY:
    options->verify_each = true;
    break;
  case OPT_TIME:
    options->time_passes = true;
    break;
  case OPT_COLOR:
    set_color(argument);
    break;
  default:
    note_at(LOCATION_FILE(NULL), "`rnncc --help` lists what there is");
    stop(EXIT_INVALID);
  }
}

static void set_option(Options *options, Arena *arena, int option, const char *argument) {
  switch (option) {
  case 'o':
    options->output = argument;
    break;
  case 'h':
    fputs(help_text, stdout);
    stop(EXIT_OK);
  case OPT_VERSION:
    puts("rnncc " RNNCC_VERSION);
    stop(EXIT_OK);
  case OPT_DIM:
  case OPT_STATE:
  case OPT_FREEZE:
    add_setting(options, arena, option, argument);
    break;
  case OPT_EMIT:
    set_emit(options, argument);
    break;
  case OPT_TARGET:
    set_target(options, argument);
    break;
  case OPT_THREADS:
    set_threads(options, argument);
    break;
  case OPT_MACHINE:
    options->machine_given = argument;
    break;
  case OPT_CALIBRATE:
    options->calibrate = true;
    break;
  case OPT_TIMEOUT:
    set_timeout(options, argument);
    break;
  case OPT_RNN:
    set_rnn(options, argument);
    break;
  case OPT_CONV:
    set_conv(options, argument);
    break;
  case OPT_LAYOUT_SEARCH:
    set_layout_search(options, argument);
    break;
  case OPT_NO_WINOGRAD:
    options->no_winograd = true;
    break;
  case OPT_SCHEDULES:
    options->schedules = argument;
    break;
  default:
    if (!set_tuning(options, option, argument)) set_view(options, option, argument);
  }
}

/* A first word that is a verb and not a file to compile. */
static bool take_verb(Options *options, const char *word) {
  static const char *const verbs[] = {[VERB_COMPILE] = "compile",
                                      [VERB_INSPECT] = "inspect",
                                      [VERB_TUNE] = "tune",
                                      [VERB_SCHEDULES] = "schedules",
                                      [VERB_TARGETS] = "targets"};
  int verb = choose(word, verbs, sizeof verbs / sizeof *verbs);
  if (verb >= 0) options->verb = (Verb)verb;
  return verb >= 0;
}

/* What `schedules` is to do, and with which files. */
static void take_schedule_words(Options *options, char **words, int count) {
  static const char *const verbs[] = {
      [SCHEDULES_MERGE] = "merge", [SCHEDULES_RENEW] = "renew", [SCHEDULES_CHECK] = "check", [SCHEDULES_SHOW] = "show"};
  int verb = count > 0 ? choose(words[0], verbs, sizeof verbs / sizeof *verbs) : -1;
  if (verb < 0) usage_error("schedules: merge, renew, check or show is due%s", "");
  if (count < 2) usage_error("schedules %s: no file given", words[0]);
  options->schedule_verb = (ScheduleVerb)verb;
  options->files = (FileList){words + 1, count - 1};
  bool writes = verb == SCHEDULES_MERGE || verb == SCHEDULES_RENEW;
  if (writes && !options->output) usage_error("schedules %s: -o says where to", words[0]);
  if (!writes && options->output) usage_error("schedules: -o %s goes with merge and renew", options->output);
  if (verb != SCHEDULES_SHOW && options->workload) usage_error("--workload=%s goes with show", options->workload);
}

static void take_words(Options *options, char **words, int count) {
  int first = count > 0 && take_verb(options, words[0]) ? 1 : 0;
  if (options->verb == VERB_SCHEDULES) {
    take_schedule_words(options, words + 1, count - 1);
    return;
  }
  if (count - first > 1) usage_error("`%s` is one model too many: one at a time", words[first + 1]);
  if (count - first == 1) options->model = words[first];
  bool takes_model = options->verb != VERB_TARGETS;
  if (takes_model && !options->model) usage_error("no model given%s", "");
  if (!takes_model && options->model) usage_error("`targets` takes no model, but `%s` was given", options->model);
}

static void check_verb(const Options *options) {
  bool tunes = options->verb == VERB_TUNE;
  if (options->memory && options->verb != VERB_INSPECT) usage_error("--memory goes with `rnncc inspect`%s", "");
  if (options->memory_picture && !*options->memory_picture) usage_error("--memory: the path is empty%s", "");
  if (options->workload && options->verb != VERB_SCHEDULES)
    usage_error("--workload=%s goes with `rnncc schedules show`", options->workload);
  if (options->explain && options->verb != VERB_INSPECT) usage_error("--explain goes with `rnncc inspect`%s", "");
  if (tunes && options->conv_form) usage_error("tune: --conv=%s would leave nothing to choose", options->conv_form);
  if (tunes && options->variant) usage_error("tune: --rnn=%s would leave nothing to choose", options->variant);
  if (tunes && options->schedules) usage_error("tune: --schedules=%s is for compiling", options->schedules);
  if (!tunes && options->runner) usage_error("--runner goes with `rnncc tune`%s", "");
  if (tunes && options->runner && options->tune_rnn)
    usage_error("--runner measures convolutions: recurrent layers are measured on this machine%s", "");
  if (options->runner && !*options->runner) usage_error("--runner: the command is empty%s", "");
  if (!tunes && options->tune_rnn) usage_error("--rnn: KEY=VALUE is due; without it goes with `rnncc tune`%s", "");
  if (!tunes && (options->tune_conv || options->trials || options->exhaustive || options->shards))
    usage_error("--only, --trials, --exhaustive and --shard go with `rnncc tune`%s", "");
  if (options->calibrate && options->verb != VERB_TARGETS) usage_error("--calibrate goes with `rnncc targets`%s", "");
  if (!tunes && !options->calibrate && options->budget_seconds > 0)
    usage_error("--budget goes with `rnncc tune` and --calibrate%s", "");
}

static void check_output(const Options *options) {
  bool to_stdout = options->output && !strcmp(options->output, "-");
  bool text = options->emit == EMIT_DOT || options->emit == EMIT_H;
  if (to_stdout && !text) usage_error("-o -: only the kinds h and dot go to stdout, not %s", emit_names[options->emit]);
  if (options->output && !*options->output) usage_error("-o: the path is empty%s", "");
  if (options->verb == VERB_TUNE && options->emit != EMIT_SO)
    usage_error("tune: it writes records, not %s", emit_names[options->emit]);
}

Options parse_options(Arena *arena, int argc, char **argv) {
  Options options = {.verb = VERB_COMPILE,
                     .layout_search = LAYOUT_SEARCH_AUTO,
                     .tool_seconds = 300,
                     .settings = settings_new(arena, argc)};
  int option;
  while ((option = getopt_long(argc, argv, "o:vh", long_options, NULL)) != -1)
    set_option(&options, arena, option, optarg);
  take_words(&options, argv + optind, argc - optind);
  check_verb(&options);
  if (!(options.budget_seconds > 0)) options.budget_seconds = options.calibrate ? 6 : 60;
  if (!options.tune_rnn && !options.tune_conv) options.tune_conv = true, options.tune_rnn = !options.runner;
  if (!options.shards) options.shard = options.shards = 1;
  check_output(&options);
  if (!options.target) set_target(&options, "native");
  if (options.verb != VERB_TARGETS && options.verb != VERB_SCHEDULES)
    options.machine = machine_choose(arena, options.machine_given, options.target, options.native, options.threads);
  return options;
}
