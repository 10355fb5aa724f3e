/* SPDX-License-Identifier: MIT */
/* options.def as a table, and how its values are read. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "support.h"

/* ---- actions: NULL, or what is expected ---- */

/* Grows by one; counts are the command line's, so linear growth is fine. */
static void *grow(void *items, int count, size_t size) {
  void *grown = reallocarray(items, (size_t)count + 1, size);
  if (!grown) fail(EXIT_RESOURCE, "out of memory");
  return grown;
}

static const char *take_assignment(Assignments *list, const char *text) {
  const char *equals = strchr(text, '=');
  if (!equals || equals == text) return "NAME=VALUE";
  char *name = strndup(text, (size_t)(equals - text));
  if (!name) fail(EXIT_RESOURCE, "out of memory");
  if (assignment_find(list, name)) fail(EXIT_INPUT, "%s is given twice", name);
  list->items = grow(list->items, list->count, sizeof *list->items);
  list->items[list->count++] = (Assignment){name, equals + 1};
  return NULL;
}

static const char *take_input(void *into, const char *value) {
  return take_assignment(&((Arguments *)into)->inputs, value);
}

static const char *take_output(void *into, const char *value) {
  return take_assignment(&((Arguments *)into)->outputs, value);
}

static const char *take_expect(void *into, const char *value) {
  return take_assignment(&((Arguments *)into)->expects, value);
}

static const char *take_dim(void *into, const char *value) {
  return take_assignment(&((Arguments *)into)->dims, value);
}

static const char *take_threads(void *into, const char *value) {
  Integers *list = &((Arguments *)into)->threads;
  for (const char *part = value; part; part = strchr(part, ',') ? strchr(part, ',') + 1 : NULL) {
    char *end;
    long count = strtol(part, &end, 10);
    if (end == part || (*end && *end != ',') || count < 1 || count > INT32_MAX) return "whole numbers from 1";
    list->items = grow(list->items, list->count, sizeof *list->items);
    list->items[list->count++] = (int)count;
  }
  return NULL;
}

/* ---- the table ---- */

enum {
#define VERB(name, operands, summary, details, example) VERB_##name,
#include "options.def"
};

#define ON(verb) (1u << VERB_##verb)
#define ON_RUNS (ON(run) | ON(verify) | ON(bench) | ON(profile))
#define ON_ALL (ON_RUNS | ON(inspect) | ON(measure))

#define FIELD(name) .field = offsetof(Arguments, name)
#define FLAG(name) {.kind = ACTION_FLAG, FIELD(name)}
#define TEXT(name) {.kind = ACTION_TEXT, FIELD(name)}
#define COUNT(name) {.kind = ACTION_COUNT, FIELD(name), .limit = INT32_MAX}
#define NUMBER(name) {.kind = ACTION_NUMBER, FIELD(name)}
#define POSITIVE(name) {.kind = ACTION_POSITIVE, FIELD(name)}
#define CALL(function) {.kind = ACTION_CALL, .call = (function)}
#define HELP {.kind = ACTION_HELP}

static const CommandVerb verbs[] = {
#define VERB(name, operands, summary, details, example) {#name, operands, summary, details, example},
#include "options.def"
};

static const char *const common[sizeof verbs / sizeof *verbs] = {
#define COMMON(verb, names) [VERB_##verb] = (names),
#include "options.def"
};

static const CommandOption options[] = {
    {.help = "options"},
#define OPTION(...) {__VA_ARGS__},
#include "options.def"
};

static const CommandNote variables[] = {
#define VARIABLE(name, help) {name, help},
#include "options.def"
};

static const CommandNote exits[] = {
#define STATUS(code, help) {code, help},
#include "options.def"
};

static __attribute__((noreturn)) void refuse(const char *message) {
  fail(EXIT_INPUT, "%s; see rnnrun --help", message);
}

const Command rnnrun_command = {
    .name = "rnnrun",
    .summary = "rnnrun runs, verifies, benchmarks, profiles and inspects a compiled module. It needs libc only, so it "
               "goes to the device with the module. Results go to stdout, everything else to stderr.",
    .implied_verb = -1,
    .n_verbs = sizeof verbs / sizeof *verbs,
    .verbs = verbs,
    .common = common,
    .n_options = sizeof options / sizeof *options,
    .options = options,
    .n_variables = sizeof variables / sizeof *variables,
    .variables = variables,
    .n_exits = sizeof exits / sizeof *exits,
    .exits = exits,
    .refuse = refuse,
};
