/* SPDX-License-Identifier: MIT */
/*
 * `rnncc tune`: schedules of a model's convolutions and recurrent layers are compiled, measured and recorded. Workloads
 * that the output file already has are not measured again.
 */
#ifndef RNNCC_TUNE_H
#define RNNCC_TUNE_H

#include "ir/graph.h"
#include "schedules/records.h"
#include "support/sandbox.h"
#include "tune/tasks.h"

/* The options of a tuning. */
typedef struct TuneOptions {
  const char *model, *network;  /* its file and its name among several or NULL, for messages */
  const Target *target;         /* what modules are built for */
  bool convolutions, recurrent; /* what is tuned */
  int trials;                   /* of a convolution; 0: as many as usual */
  bool exhaustive;              /* all schedules of a convolution */
  int shard, shards;            /* the K-th of N shares of the tasks, from 1 */
  int threads;                  /* that modules run on; 0: all that the machine has */
  double budget_seconds;        /* for building and measuring */
  double tool_seconds;          /* how long clang or the linker may take */
  Sandbox sandbox;              /* of clang and the linker */
  const char *runner;           /* shell command that measures; NULL: this machine does */
} TuneOptions;

/* How modules for measurements are built: the compiler's steps, with the user's options. */
typedef struct TuneBuild {
  const void *context; /* the functions' own, passed to them */
  /* Compiles the model with this config instead of the user's. */
  void (*model)(const void *context, const Config *config, const char *module);
  /* Compiles a graph whose layouts are chosen. `runtime`: the runtime's object file. */
  void (*graph)(const void *context, Graph *graph, const char *runtime, const char *module);
} TuneBuild;

/* Shared by the tuners of convolutions and of recurrent layers. */
typedef struct Tuning {
  const TuneOptions *options;
  Graph *graph; /* the model */
  const TuneBuild *build;
  const char *output, *folder;    /* of records, and of modules */
  const ScheduleRecords *earlier; /* those that the output file already has */
  Tasks tasks;
  int measurements, disturbed; /* disturbed: those during which other programs ran */
  int unbuilt;                 /* convolutions of which no trial could be built */
} Tuning;

/* Appends to `output`; progress goes to stderr, results to stdout. False: there is nothing to tune. */
bool tune(const TuneOptions *options, Graph *graph, const TuneBuild *build, const char *output);

#endif
