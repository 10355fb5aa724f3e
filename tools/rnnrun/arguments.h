/* SPDX-License-Identifier: MIT */
/* The command line of every verb, as one struct. */
#ifndef RNNRUN_ARGUMENTS_H
#define RNNRUN_ARGUMENTS_H

#include <stdbool.h>

#include "command.h"

/* NAME=VALUE, split at the first '='. */
typedef struct Assignment {
  char *name; /* owned */
  const char *value;
} Assignment;

typedef struct Assignments {
  Assignment *items;
  int count;
} Assignments;

typedef struct Integers {
  int *items;
  int count;
} Integers;

typedef struct Arguments {
  int verb;                                   /* place in options.def */
  const char *module;                         /* path of the .so */
  const char *network;                        /* --network: its name in the module, NULL: not given */
  Assignments inputs, outputs, expects, dims; /* --input, --output, --expect, --dim */
  Integers threads;          /* --threads: one number, or for bench a list; empty: the module decides */
  int steps;                 /* --steps: runs in a row on one context */
  int runs;                  /* --runs: timed runs */
  double absolute, relative; /* --atol, --rtol */
  const char *reference;     /* --reference: another module, NULL: not given */
  int samples;               /* --samples: 0: not given */
  double max_error, min_snr; /* --max-error, --min-snr; negative: not given */
  double signal_ms;          /* --signal-ms: what one run covers, 0: not given */
  const char *weights;       /* --weights: a file of them, NULL: not given */
  const char *trace, *html;  /* --trace, --html: files to write, NULL: none */
  bool json;
} Arguments;

extern const Command rnnrun_command;

/* Prints help or fails where due; else returns a filled struct. */
Arguments parse_arguments(int argc, char **argv);
void free_arguments(Arguments *arguments);

/* --threads of a verb that takes one number, not a list; 0 if it is not given. */
int one_thread_count(const Arguments *arguments);

/* NULL if there is none of that name. */
const char *assignment_find(const Assignments *assignments, const char *name);

#endif
