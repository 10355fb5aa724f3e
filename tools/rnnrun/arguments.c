/* SPDX-License-Identifier: MIT */
/* One table of options; a verb lists those it takes, getopt_long sees only these. */
#include "arguments.h"

#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

typedef enum OptionKind { FLAG, COUNT, COUNTS, NUMBER, ASSIGN, WORD } OptionKind;

static const struct {
  const char *name;
  OptionKind kind;
  size_t field;
  const char *value, *help;
} options[] = {
    {"input", ASSIGN, offsetof(Arguments, inputs), "NAME=FILL",
     "an input: @x.npy, 2x3xf32=@x.bin (raw), zeros, or random[:SEED]"},
    {"output", ASSIGN, offsetof(Arguments, outputs), "NAME=@FILE", "where an output goes: .npy, any other name is raw"},
    {"expect", ASSIGN, offsetof(Arguments, expects), "NAME=@FILE", "what an output must be: .npy"},
    {"dim", ASSIGN, offsetof(Arguments, dims), "NAME=N",
     "a run-time dimension, for zeros and random; else its optimum"},
    {"threads", COUNTS, offsetof(Arguments, threads), "N[,N...]",
     "threads, the calling one included; bench takes a list"},
    {"steps", COUNT, offsetof(Arguments, steps), "N",
     "run so many times, keeping the states; the last run's outputs count"},
    {"runs", COUNT, offsetof(Arguments, runs), "N", "timed runs (default 200)"},
    {"atol", NUMBER, offsetof(Arguments, absolute), "X", "absolute tolerance (default 1e-6)"},
    {"rtol", NUMBER, offsetof(Arguments, relative), "X", "relative tolerance (default 1e-5)"},
    {"signal-ms", NUMBER, offsetof(Arguments, signal_ms), "X", "what one run covers: prints the real-time factor"},
    {"trace", WORD, offsetof(Arguments, trace), "FILE", "writes the fastest run for chrome://tracing or Perfetto"},
    {"json", FLAG, offsetof(Arguments, json), NULL, "one JSON object a line and thread count"},
};

enum { OPTIONS = sizeof options / sizeof *options };

static int takes(const Verb *verb, const char *option) {
  size_t length = strlen(option);
  for (const char *at = verb->options ? verb->options : ""; (at = strstr(at, option)); at += length)
    if ((at == verb->options || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return 1;
  return 0;
}

static void print_help(const Verb *verb) {
  printf("usage: rnnrun %s%s\n%s\n\n", verb->name, verb->options ? " [OPTION...] MODULE.so" : "", verb->summary);
  for (int i = 0; i < OPTIONS; i++) {
    if (!takes(verb, options[i].name)) continue;
    char left[64];
    snprintf(left, sizeof left, "--%s%s%s", options[i].name, options[i].value ? " " : "",
             options[i].value ? options[i].value : "");
    printf("  %-22s %s\n", left, options[i].help);
  }
  printf("  %-22s %s\n\n%s", "-h, --help", "this text", verb->help);
}

/* Grows by one; counts are the command line's, so linear growth is fine. */
static void *grow(void *items, int count, size_t size) {
  void *grown = reallocarray(items, (size_t)count + 1, size);
  if (!grown) fail(EXIT_RESOURCE, "out of memory");
  return grown;
}

static void add_assignment(Assignments *list, const char *option, char *text) {
  char *equals = strchr(text, '=');
  if (!equals || equals == text) fail(EXIT_INPUT, "--%s %s: NAME=VALUE expected", option, text);
  *equals = '\0';
  if (assignment_find(list, text)) fail(EXIT_INPUT, "--%s %s is given twice", option, text);
  list->items = grow(list->items, list->count, sizeof *list->items);
  list->items[list->count++] = (Assignment){text, equals + 1};
}

static int64_t positive(const char *option, const char *text) {
  int64_t value;
  if (!parse_integer(text, &value) || value < 1 || value > INT32_MAX)
    fail(EXIT_INPUT, "--%s %s: a whole number from 1 expected", option, text);
  return value;
}

static void add_integers(Integers *list, const char *option, char *text) {
  for (char *part; (part = strsep(&text, ","));) {
    list->items = grow(list->items, list->count, sizeof *list->items);
    list->items[list->count++] = positive(option, part);
  }
}

static double not_negative(const char *option, const char *text) {
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end || !isfinite(value) || value < 0)
    fail(EXIT_INPUT, "--%s %s: a number from 0 expected", option, text);
  return value;
}

static void set_option(Arguments *arguments, int index, char *text) {
  void *field = (char *)arguments + options[index].field;
  const char *name = options[index].name;
  switch (options[index].kind) {
  case FLAG:
    *(int *)field = 1;
    break;
  case COUNT:
    *(int64_t *)field = positive(name, text);
    break;
  case COUNTS:
    add_integers(field, name, text);
    break;
  case NUMBER:
    *(double *)field = not_negative(name, text);
    break;
  case ASSIGN:
    add_assignment(field, name, text);
    break;
  case WORD:
    *(const char **)field = text;
    break;
  }
}

Arguments parse_arguments(const Verb *verb, int argc, char **argv) {
  Arguments arguments = {.steps = 1, .runs = 200, .absolute = 1e-6, .relative = 1e-5};
  struct option long_options[OPTIONS + 2] = {{"help", no_argument, NULL, 'h'}};
  int count = 1;
  for (int i = 0; i < OPTIONS; i++) {
    if (!takes(verb, options[i].name)) continue;
    int has_value = options[i].kind == FLAG ? no_argument : required_argument;
    long_options[count++] = (struct option){options[i].name, has_value, NULL, 256 + i};
  }

  opterr = 0;
  for (int option; (option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1;) {
    if (option == 'h') {
      print_help(verb);
      exit(0);
    }
    if (option == '?' || option == ':')
      fail(EXIT_INPUT, "%s: %s; see rnnrun %s --help", argv[optind - 1],
           option == ':' ? "a value is missing" : "no such option", verb->name);
    set_option(&arguments, option - 256, optarg);
  }
  int modules = verb->options ? 1 : 0;
  if (argc - optind != modules)
    fail(EXIT_INPUT, "%s MODULE.so expected, %d given; see rnnrun %s --help", modules ? "one" : "no", argc - optind,
         verb->name);
  if (modules) arguments.module = argv[optind];
  return arguments;
}

void free_arguments(Arguments *arguments) {
  free(arguments->inputs.items);
  free(arguments->outputs.items);
  free(arguments->expects.items);
  free(arguments->dims.items);
  free(arguments->threads.items);
}

int one_thread_count(const Arguments *arguments) {
  if (arguments->threads.count > 1) fail(EXIT_INPUT, "--threads: one number expected; only bench takes a list");
  return arguments->threads.count ? (int)arguments->threads.items[0] : 0;
}

const char *assignment_find(const Assignments *assignments, const char *name) {
  for (int i = 0; i < assignments->count; i++)
    if (!strcmp(assignments->items[i].name, name)) return assignments->items[i].value;
  return NULL;
}
