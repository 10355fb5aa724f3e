/* SPDX-License-Identifier: MIT */
/*
 * `rnncc tune`: schedules of a model's convolutions and recurrent layers are compiled, measured and recorded. What
 * stands in the output file is not measured again.
 */
#ifndef RNNCC_TUNE_H
#define RNNCC_TUNE_H

#include "driver/options.h"
#include "ir/graph.h"
#include "schedules/records.h"
#include "tune/tasks.h"

/* main.c's pipeline, for modules to be measured. */
typedef struct TuneBuild {
  /* The model by another config than was given. */
  void (*model)(const Options *options, const Config *config, const char *module);
  /* A graph whose layouts are chosen. */
  void (*graph)(const Options *options, Graph *graph, const char *module);
} TuneBuild;

/* What the tuners of convolutions and of recurrent layers share. */
typedef struct Tuning {
  const Options *options;
  Graph *graph; /* what schedules are to be chosen for */
  const TuneBuild *build;
  const char *output, *folder;    /* of records, and of modules */
  const ScheduleRecords *earlier; /* what the output held */
  Tasks tasks;
  int measurements, disturbed; /* how many met other programs */
  int unbuilt;                 /* convolutions of which no trial could be built */
} Tuning;

/* Appends to `output`; progress goes to stderr, results to stdout. */
void tune(const Options *options, Graph *graph, const TuneBuild *build, const char *output);

#endif
