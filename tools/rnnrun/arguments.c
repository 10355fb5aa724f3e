/* SPDX-License-Identifier: MIT */
#include "arguments.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"

static void take_module(Arguments *arguments, const CommandLine *line) {
  const CommandVerb *verb = &rnnrun_command.verbs[line->verb];
  int expected = *verb->operands ? 1 : 0;
  const char *wanted = expected ? "one MODULE.so" : "no MODULE.so", *name = verb->name;
  if (line->n_words < expected)
    fail(EXIT_INPUT, "%s: expected %s, found none; see rnnrun %s --help", name, wanted, name);
  if (line->n_words > expected)
    fail(EXIT_INPUT, "%s: expected %s, found %s\"%s\"; see rnnrun %s --help", name, wanted,
         expected ? "a second: " : "", line->words[expected], name);
  if (expected) arguments->module = line->words[0];
}

Arguments parse_arguments(int argc, char **argv) {
  Arguments arguments = {.steps = 1, .runs = 200, .absolute = 1e-6, .relative = 1e-5, .max_error = -1, .min_snr = -1};
  CommandLine line = command_parse(&rnnrun_command, argc, argv, &arguments);
  if (line.help) {
    command_help(stdout, &rnnrun_command, &line);
    check_stdout();
    exit(0);
  }
  arguments.verb = line.verb;
  take_module(&arguments, &line);
  return arguments;
}

static void free_assignments(Assignments *list) {
  for (int i = 0; i < list->count; i++) free(list->items[i].name);
  free(list->items);
}

void free_arguments(Arguments *arguments) {
  free_assignments(&arguments->inputs);
  free_assignments(&arguments->outputs);
  free_assignments(&arguments->expects);
  free_assignments(&arguments->dims);
  free(arguments->threads.items);
}

int one_thread_count(const Arguments *arguments) {
  if (arguments->threads.count > 1) fail(EXIT_INPUT, "--threads: expected one number, found a list; bench takes one");
  return arguments->threads.count ? arguments->threads.items[0] : 0;
}

const char *assignment_find(const Assignments *assignments, const char *name) {
  for (int i = 0; i < assignments->count; i++)
    if (!strcmp(assignments->items[i].name, name)) return assignments->items[i].value;
  return NULL;
}
