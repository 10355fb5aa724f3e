/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convolution/form.h"
#include "machine_file.h"
#include "passes.h"
#include "recurrent/variant.h"
#include "support/diagnostics.h"

static const char help_text[] =
    "rnncc compiles a recurrent or convolutional network into one shared object that needs only libc.\n"
    "\n"
    "usage: rnncc [compile] MODEL.onnx|MODEL.json [-o MODULE.so] [options]\n"
    "       rnncc inspect MODEL [--memory[=SVG] | --explain=rnn|conv|layout]\n"
    "       rnncc tune MODEL [-o RECORDS.jsonl] [--budget=S]\n"
    "       rnncc schedules merge|renew|check|show RECORDS.jsonl... [-o RECORDS.jsonl] [--workload=TEXT]\n"
    "       rnncc targets [--calibrate [-o FILE] [--budget=S]]\n"
    "\n"
    "compile (the plain form)         example: rnncc digits_rnn.json -o digits_rnn.so --target=x86-64-v3\n"
    "  -o, --output=PATH       what to write; default: the model's name with the kind's suffix; - is stdout, for h and "
    "dot\n"
    "      --emit=KIND         so (default), c (a folder that builds without rnncc), h, graph (our JSON), dot\n"
    "      --target=TARGET     native (default) or a name that `rnncc targets` lists\n"
    "      --threads=N         plans for at most N threads; default: this machine's CPUs, or what the target usually "
    "has\n"
    "      --machine=MACHINE   whose speeds schedules are chosen by: native (default for --target=native; as `rnncc "
    "targets\n"
    "                          --calibrate` measured it, if it did), typical (of the target), or a file that "
    "--calibrate wrote\n"
    "      --tool-timeout=S    seconds that clang or the linker may take, default 300\n"
    "      --rnn=KEY=N,...     how recurrent layers run, instead of what rnncc would choose: input=ahead|step, "
    "workers,\n"
    "                          sample_ways, hide, depth_block, chunk\n"
    "      --conv=FORM         how convolutions run where they can: an algorithm, and what is said of its KEY=N after "
    "commas:\n"
    "                          direct,oc=N,px=N,unroll=N,pass=N,groups=N,tiles=N, "
    "winograd,tile=N,oc=N,by_groups=0|1,parts=N,\n"
    "                          depthwise,px=N or plain,k=N,w=N,flat=0|1,tiles=N; plain leaves no tensor blocked\n"
    "      --layout-search=HOW how the layouts of tensors are chosen: auto (default), dp, pbqp, greedy, or none: "
    "every\n"
    "                          convolution transforms what it reads and writes\n"
    "      --no-winograd       convolutions add up products of inputs and weights, and nothing else: up to three "
    "times\n"
    "                          slower, and more exact\n"
    "      --schedules=FILE    schedules that `rnncc tune` measured and recorded, used where they fit, before those "
    "that come\n"
    "                          with rnncc; none: those neither\n"
    "the model                        example: rnncc vad.onnx --dim T=1..50..400 --state h=hN --freeze sr=16000\n"
    "      --dim NAME=RANGE    bounds a named dim: MIN..OPT..MAX, MIN..MAX or N; OPT is what schedules are chosen for\n"
    "      --state IN=OUT      the context keeps that output for the next run's input\n"
    "      --freeze NAME=VALUE makes an input a constant: a JSON number, true, false, or a nested list of those\n"
    "inspect                          example: rnncc inspect digits_cnn.json --memory\n"
    "      --memory[=SVG]      prints the memory plan, and draws it: tensors over time, and what is live at once\n"
    "      --explain=rnn       prints how recurrent layers could run, what is ruled out and why, and what is chosen;\n"
    "                          with -v every order of products, however many\n"
    "      --explain=conv      prints the schedules of each distinct convolution that should be best, with predicted "
    "times,\n"
    "                          and what is chosen and why; with -v all schedules\n"
    "      --explain=layout    prints what each layout of each node would cost, the transforms between them, and what\n"
    "                          each way to search comes to\n"
    "tune                             example: rnncc tune digits_cnn.json -o digits.jsonl --budget=30s\n"
    "  -o, --output=PATH       where to append records; default: the model's name with .jsonl; what it holds is not\n"
    "                          measured again\n"
    "      --budget=S          seconds to spend, default 60\n"
    "      --runner=COMMAND    measures convolutions by this shell command, so on another machine: 'ssh board rnnrun "
    "measure'\n"
    "      --only=conv|rnn     of the model's convolutions and recurrent layers only those; --rnn is short for "
    "--only=rnn\n"
    "      --trials=N          schedules of a convolution to measure, default 8: those predicted to be best\n"
    "      --exhaustive        all of them\n"
    "      --shard=K/N         the K-th of N machines that share the work, from 1; their records are then joined\n"
    "schedules                        example: rnncc schedules merge shard1.jsonl shard2.jsonl -o machine.jsonl\n"
    "      merge               writes the best record of each work on each machine to -o, without trials\n"
    "      renew               the same, of records that are taken for those of this rnncc's kernels: after a change "
    "of the\n"
    "                          kernels that leaves their speed as it was\n"
    "      check               names each line that is no record, and counts those of other versions of the kernels\n"
    "      show                prints the records as a table\n"
    "      --workload=TEXT     show: those whose workload has TEXT in it\n"
    "targets                          example: rnncc targets --calibrate\n"
    "      --calibrate         measures this machine's multiply-adds, caches and memory, for plans made on it from "
    "then "
    "on\n"
    "  -o, --output=PATH       where to write that; default: $XDG_CACHE_HOME/rnncc/machine.json, in ~/.cache if not "
    "set\n"
    "      --budget=S          seconds to measure, default 6\n"
    "looking inside                   example: rnncc m.json -o m.so --dump-after=fuse_epilogue\n"
    "      --dump-after=PASS   prints the graph after that pass to stderr; `--dump-after=list` lists the passes\n"
    "      --verify-each       checks the graph's invariants after every pass\n"
    "      --time-passes       prints each pass's time to stderr\n"
    "  -v, --verbose           says what is done\n"
    "      --color=WHEN        auto (default), always, never\n"
    "  -h, --help              prints this\n"
    "      --version           prints the version\n"
    "\n"
    "exit: 0 ok, 2 usage or invalid input, 3 valid but unsupported, 4 resource limit, 5 environment\n";

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
  enum { MOST_THREADS = 1024 };
  char *end;
  long threads = strtol(given, &end, 10);
  if (end == given || *end || threads < 1 || threads > MOST_THREADS)
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
  enum { MOST_TRIALS = 1000000 };
  char *end;
  long trials = strtol(given, &end, 10);
  if (end == given || *end || trials < 1 || trials > MOST_TRIALS)
    usage_error("--trials=%s: a whole number from 1 to 1000000", given);
  options->trials = (int)trials;
}

static void set_shard(Options *options, const char *given) {
  enum { MOST_SHARDS = 100000 };
  char *slash, *end = "?";
  long shard = strtol(given, &slash, 10), shards = *slash == '/' ? strtol(slash + 1, &end, 10) : 0;
  if (*end || shards > MOST_SHARDS || shard < 1 || shard > shards)
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
  static const char *const searches[] = {[LAYOUT_SEARCH_GREEDY] = "greedy",
                                         [LAYOUT_SEARCH_NONE] = "none",
                                         [LAYOUT_SEARCH_DP] = "dp",
                                         [LAYOUT_SEARCH_PBQP] = "pbqp",
                                         [LAYOUT_SEARCH_AUTO] = "auto"};
  int search = choose(given, searches, sizeof searches / sizeof *searches);
  if (search < 0) usage_error("--layout-search=%s: none, greedy, dp, pbqp or auto", given);
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

static void list_passes(void) {
  for (int i = 0; pass_names[i]; i++) puts(pass_names[i]);
  stop(EXIT_OK);
}

static void set_dump(Options *options, const char *given) {
  if (!strcmp(given, "list")) list_passes();
  for (int i = 0; pass_names[i]; i++)
    if (!strcmp(pass_names[i], given)) options->dump_after = given;
  if (!options->dump_after) usage_error("--dump-after=%s: no such pass; --dump-after=list lists them", given);
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
