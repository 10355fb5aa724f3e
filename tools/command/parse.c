/* SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

enum { MAX_OPTIONS = 64, LIST_BYTES = 512, MESSAGE_BYTES = 1024, FIRST_ID = 256, MAX_TOLD = 8 };
static const double MAX_SECONDS = 1e6;

__attribute__((noreturn, format(printf, 2, 3))) static void refuse(const Command *command, const char *format, ...) {
  char message[MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  command->refuse(message);
}

/* ---- lists of names ---- */

typedef struct Names {
  int count;
  const char *list[MAX_OPTIONS];
} Names;

static void add_name(Names *names, const char *name) {
  if (names->count < MAX_OPTIONS) names->list[names->count++] = name;
}

/* "a, b or c", each after `prefix`; `last`: "or", "and". */
static const char *joined(const Names *names, const char *prefix, const char *last, char list[LIST_BYTES]) {
  size_t length = 0;
  list[0] = '\0';
  for (int i = 0; i < names->count && length < LIST_BYTES; i++) {
    bool is_last = i > 0 && i == names->count - 1;
    length += (size_t)snprintf(list + length, LIST_BYTES - length, "%s%s%s%s%s", i ? is_last ? " " : ", " : "",
                               is_last ? last : "", is_last ? " " : "", prefix, names->list[i]);
  }
  return list;
}

static const char *listed(const Names *names, const char *prefix, char list[LIST_BYTES]) {
  return joined(names, prefix, "or", list);
}

/* Refuses a word that is none of these names. `what`: what it should be. */
static _Noreturn void unknown(const Command *command, const char *what, const char *word, const Names *names,
                              const char *prefix) {
  char list[LIST_BYTES];
  const char *closest = command->closest ? command->closest(word, names->list, names->count) : NULL;
  if (closest) refuse(command, "unknown %s %s%s; did you mean %s%s?", what, prefix, word, prefix, closest);
  if (names->count > MAX_TOLD) refuse(command, "unknown %s %s%s", what, prefix, word);
  refuse(command, "unknown %s %s%s; expected %s", what, prefix, word, listed(names, prefix, list));
}

/* ---- values ---- */

/* Returns what was expected; NULL: the value is right. */

static const char *read_count(int *field, const char *value, int limit, char expected[LIST_BYTES]) {
  char *end;
  long count = strtol(value, &end, 10);
  snprintf(expected, LIST_BYTES, "a whole number from 1 to %d", limit);
  if (end == value || *end || count < 1 || count > limit) return expected;
  *field = (int)count;
  return NULL;
}

static const char *read_number(double *field, const char *value, bool zero) {
  char *end;
  double number = strtod(value, &end);
  bool fits = zero ? number >= 0 : number > 0;
  if (end == value || *end || !isfinite(number) || !fits)
    return zero ? "a number that is not negative" : "a number above 0";
  *field = number;
  return NULL;
}

static const char *read_seconds(double *field, const char *value) {
  char *end;
  double seconds = strtod(value, &end);
  if (end != value && !strcmp(end, "s")) end++;
  if (end == value || *end || !(seconds > 0 && seconds < MAX_SECONDS)) return "a number of seconds above 0";
  *field = seconds;
  return NULL;
}

static const char *read_choice(int *field, const char *value, const CommandOption *option, char expected[LIST_BYTES]) {
  char words[LIST_BYTES], *rest = words;
  Names names = {0};
  snprintf(words, sizeof words, "%s", option->words);
  for (char *word; (word = strsep(&rest, " "));) {
    if (!strcmp(word, value)) *field = option->action.limit + names.count;
    if (!strcmp(word, value)) return NULL;
    add_name(&names, word);
  }
  return listed(&names, "", expected);
}

static const char *read_value(const CommandOption *option, void *into, const char *value, char expected[LIST_BYTES]) {
  const Action *action = &option->action;
  void *field = (char *)into + action->field;
  switch (action->kind) {
  case ACTION_FLAG:
    *(bool *)field = true;
    return NULL;
  case ACTION_TEXT:
    *(const char **)field = value;
    return *value ? NULL : option->value;
  case ACTION_COUNT:
    return read_count(field, value, action->limit, expected);
  case ACTION_NUMBER:
    return read_number(field, value, true);
  case ACTION_POSITIVE:
    return read_number(field, value, false);
  case ACTION_SECONDS:
    return read_seconds(field, value);
  case ACTION_CHOICE:
    return read_choice(field, value, option, expected);
  case ACTION_CALL:
    return action->call(into, value);
  case ACTION_HELP:
    return value && strcmp(value, "all") != 0 ? "all, or nothing" : NULL;
  }
  return NULL;
}

/* ---- options ---- */

/* The options of one verb for getopt_long(). */
typedef struct Known {
  struct option options[MAX_OPTIONS + 1];
  char letters[2 * MAX_OPTIONS + 2];
} Known;

static Known known_options(const Command *command, int verb) {
  Known known = {.letters = ":"};
  int count = 0, n_letters = 1;
  for (int i = 0; i < command->n_options && count < MAX_OPTIONS; i++) {
    const CommandOption *option = &command->options[i];
    if (!option_takes(option, verb)) continue;
    int takes = option_value_optional(option) ? optional_argument : option->value ? required_argument : no_argument;
    known.options[count++] = (struct option){option->name, takes, NULL, FIRST_ID + i};
    if (option->letter) known.letters[n_letters++] = option->letter;
    if (option->letter && option->value && !option_value_optional(option)) known.letters[n_letters++] = ':';
  }
  return known;
}

static const CommandOption *option_of(const Command *command, int verb, int id) {
  if (id >= FIRST_ID) return &command->options[id - FIRST_ID];
  for (int i = 0; i < command->n_options; i++)
    if (option_takes(&command->options[i], verb) && command->options[i].letter == id) return &command->options[i];
  return NULL;
}

/* The verbs that have an option of that name, or letter. */
static Names verbs_with(const Command *command, const char *name, char letter) {
  Names verbs = {0};
  for (int i = 0; i < command->n_options; i++) {
    const CommandOption *option = &command->options[i];
    if (!option->name || !(name ? !strcmp(option->name, name) : option->letter == letter)) continue;
    for (int verb = 0; verb < command->n_verbs; verb++)
      if (option_takes(option, verb)) add_name(&verbs, command->verbs[verb].name);
  }
  return verbs;
}

/* Options of the verb whose names begin like that. */
static Names names_like(const Command *command, int verb, const char *start) {
  Names names = {0};
  for (int i = 0; i < command->n_options; i++) {
    const CommandOption *option = &command->options[i];
    if (option_takes(option, verb) && !strncmp(option->name, start, strlen(start))) add_name(&names, option->name);
  }
  return names;
}

/* If other verbs take the option, says so. `given` is the option as it was written. */
static void refuse_misplaced(const Command *command, int verb, const char *given, const Names *verbs) {
  char list[LIST_BYTES], prefix[LIST_BYTES];
  snprintf(prefix, sizeof prefix, "%s ", command->name);
  if (!verbs->count) return;
  refuse(command, "%s goes with %s, not with %s%s", given, joined(verbs, prefix, "and", list), prefix,
         command->verbs[verb].name);
}

static _Noreturn void unknown_letter(const Command *command, int verb, char letter) {
  const char given[] = {'-', letter, '\0'};
  Names others = verbs_with(command, NULL, letter);
  refuse_misplaced(command, verb, given, &others);
  refuse(command, "unknown option %s", given);
}

/* `word` begins with two dashes, and may have a value. */
static _Noreturn void unknown_name(const Command *command, int verb, const char *word) {
  char given[LIST_BYTES], list[LIST_BYTES];
  snprintf(given, sizeof given, "%.*s", (int)strcspn(word, "="), word);
  const char *name = given + 2;
  Names others = verbs_with(command, name, '\0');
  refuse_misplaced(command, verb, given, &others);
  Names alike = names_like(command, verb, name), all = names_like(command, verb, "");
  if (alike.count > 1) refuse(command, "%s may be %s", given, listed(&alike, "--", list));
  unknown(command, "option", name, &all, "--");
}

/* After getopt_long() has returned '?' or ':'; it is about `word`, unless about a letter. */
static _Noreturn void wrong_option(const Command *command, int verb, int answer, const char *word) {
  if (!optopt) unknown_name(command, verb, word);
  const CommandOption *option = option_of(command, verb, optopt);
  if (!option) unknown_letter(command, verb, (char)optopt);
  if (answer == ':') refuse(command, "--%s: expected %s, found nothing", option->name, option->value);
  refuse(command, "--%s: expected no value, found \"%s\"", option->name, strchr(word, '=') + 1);
}

static void take_option(const Command *command, const CommandOption *option, void *into, const char *value) {
  char buffer[LIST_BYTES];
  const char *expected = read_value(option, into, value, buffer);
  if (expected && value) refuse(command, "--%s: expected %s, found \"%s\"", option->name, expected, value);
  if (expected) refuse(command, "--%s: expected %s, found nothing", option->name, expected);
}

/* ---- the line ---- */

static int verb_find(const Command *command, const char *word) {
  for (int i = 0; i < command->n_verbs; i++)
    if (!strcmp(command->verbs[i].name, word)) return i;
  return -1;
}

static Names verb_names(const Command *command) {
  Names verbs = {0};
  for (int i = 0; i < command->n_verbs; i++) add_name(&verbs, command->verbs[i].name);
  return verbs;
}

const char *command_closest_verb(const Command *command, const char *word) {
  Names verbs = verb_names(command);
  return command->closest(word, verbs.list, verbs.count);
}

static _Noreturn void no_verb(const Command *command, const char *word) {
  char list[LIST_BYTES];
  Names verbs = verb_names(command);
  if (word) unknown(command, "verb", word, &verbs, "");
  refuse(command, "expected a verb: %s", listed(&verbs, "", list));
}

/* The first operand of a verb that has words. */
static int find_word(const Command *command, const CommandLine *line) {
  Names words = {0};
  char list[LIST_BYTES];
  for (int i = 0; i < command->n_words; i++)
    if (command->words[i].verb == line->verb) add_name(&words, command->words[i].name);
  const char *verb = command->verbs[line->verb].name;
  char what[LIST_BYTES];
  snprintf(what, sizeof what, "%s verb", verb);
  if (words.count && line->n_words == 0)
    refuse(command, "%s: expected %s, found nothing", verb, listed(&words, "", list));
  for (int i = 0; i < words.count; i++)
    if (!strcmp(words.list[i], line->words[0])) return i;
  if (words.count) unknown(command, what, line->words[0], &words, "");
  return 0;
}

static void take_options(const Command *command, int argc, char **argv, CommandLine *line, void *into) {
  Known known = known_options(command, line->verb);
  optind = 0; /* from the start, also where it was called before */
  opterr = 0;
  for (int answer; (answer = getopt_long(argc, argv, known.letters, known.options, NULL)) != -1;) {
    if (answer == '?' || answer == ':') wrong_option(command, line->verb, answer, argv[optind - 1]);
    const CommandOption *option = option_of(command, line->verb, answer);
    take_option(command, option, into, optarg);
    line->help |= option->action.kind == ACTION_HELP;
    line->all |= option->action.kind == ACTION_HELP && optarg;
  }
}

/* Index in argv of the first word that is neither an option nor its value; argc: none. */
static int first_word(const Command *command, int argc, char **argv) {
  Known known = known_options(command, -1);
  for (struct option *option = known.options; option->name; option++) option->val = FIRST_ID;
  opterr = 0;
  optind = 0; /* from the start, also where it was called before */
  char letters[sizeof known.letters + 1];
  snprintf(letters, sizeof letters, "+%s", known.letters); /* stops there */
  while (getopt_long(argc, argv, letters, known.options, NULL) != -1) continue;
  return optind;
}

/* Takes the verb out of argv, if it is there. */
static int take_verb(const Command *command, int *argc, char **argv) {
  int first = first_word(command, *argc, argv);
  int verb = first < *argc ? verb_find(command, argv[first]) : -1;
  if (verb < 0) return -1;
  for (int i = first; i < *argc; i++) argv[i] = argv[i + 1]; /* the last one is NULL */
  --*argc;
  return verb;
}

static bool asks_for(int argc, char **argv, const char *word) { return argc > 1 && !strcmp(argv[1], word); }

CommandLine command_parse(const Command *command, int argc, char **argv, void *into) {
  int verb = take_verb(command, &argc, argv);
  CommandLine line = {.verb = verb < 0 ? command->implied_verb : verb};
  line.all = line.verb < 0 && asks_for(argc, argv, "--help=all");
  line.help = line.all || (line.verb < 0 && (asks_for(argc, argv, "-h") || asks_for(argc, argv, "--help")));
  if (line.help) return line;
  if (line.verb < 0) no_verb(command, argv[1]);
  take_options(command, argc, argv, &line, into);
  if (line.help && verb < 0) line.verb = -1;
  if (line.help) return line;
  line.n_words = argc - optind;
  line.words = argv + optind;
  line.word = find_word(command, &line);
  return line;
}
