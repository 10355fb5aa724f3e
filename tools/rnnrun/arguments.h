/* SPDX-License-Identifier: MIT */
/* The command line of every verb, as one struct. */
#ifndef RNNRUN_ARGUMENTS_H
#define RNNRUN_ARGUMENTS_H

#include <stdint.h>

/* NAME=VALUE, split at the first '='. */
typedef struct Assignment {
  const char *name, *value;
} Assignment;

typedef struct Assignments {
  Assignment *items;
  int count;
} Assignments;

typedef struct Integers {
  int64_t *items;
  int count;
} Integers;

typedef struct Arguments {
  const char *module;                         /* path of the .so */
  Assignments inputs, outputs, expects, dims; /* --input, --output, --expect, --dim */
  Integers threads;                           /* --threads: one number, or for bench a list; none: the module decides */
  int64_t steps;                              /* --steps: runs in a row on one context */
  int64_t runs;                               /* --runs: timed runs */
  double absolute, relative;                  /* --atol, --rtol */
  double signal_ms;                           /* --signal-ms: what one run covers, 0: not given */
  const char *trace;                          /* --trace: a file to write, NULL: none */
  int json;
} Arguments;

typedef struct Verb {
  const char *name;
  const char *options; /* the long options it takes, space-separated; NULL: none and no MODULE.so, it reads stdin */
  int (*run)(const Arguments *);
  const char *summary; /* one line */
  const char *help;    /* the rest of its --help */
} Verb;

/* argv without the program's and the verb's name. Prints help or fails where due; else returns a filled struct. */
Arguments parse_arguments(const Verb *verb, int argc, char **argv);
void free_arguments(Arguments *arguments);

/* --threads where a list makes no sense; 0 if it is not given. */
int one_thread_count(const Arguments *arguments);

/* NULL if there is none of that name. */
const char *assignment_find(const Assignments *assignments, const char *name);

#endif
