/* SPDX-License-Identifier: MIT */
#include "tune/tune.h"

#include <unistd.h>

#include "cpu_limit.h"
#include "machine/targets.h"
#include "support/files.h"
#include "tune/tuners.h"

/* Times of another machine, or of threads that share a CPU, would be useless. A runner's machine is not known here. */
static void check_machine(const TuneOptions *options) {
  int cpus = cpu_limit_threads();
  if (options->runner) return;
  if (!target_runs_here(options->target))
    fatal_at(LOCATION_FILE(NULL), EXIT_UNSUPPORTED,
             "this machine cannot run %s; --runner=COMMAND measures convolutions on another", options->target->name);
  if (options->threads > cpus)
    fatal_at(LOCATION_FILE(NULL), EXIT_INVALID, "--threads=%d: only %d can be measured here", options->threads, cpus);
}

static const ScheduleRecords *records_before(Arena *arena, const char *output) {
  return access(output, F_OK) == 0 ? records_read(arena, output) : ARENA_NEW(arena, ScheduleRecords);
}

/* Notes of two networks may be of one file. */
static Location where_of(const Tuning *t, const char *file) {
  const char *network = t->options->network;
  return (Location){
      .file = file, .path = network ? arena_format(t->graph->arena, "network %s", network) : NULL, .byte = -1};
}

/* Counts all tasks, then does as many of them as the budget allows. False: there are none. */
static bool run_tasks(Tuning *t) {
  int convolutions = 0, layers = 0, done = 0;
  const TuneOptions *options = t->options;
  ConvolutionTuner *convolution = options->convolutions ? convolution_tuner(t, &convolutions, &done) : NULL;
  RecurrentTuner *recurrent = options->recurrent ? recurrent_tuner(t, &layers, &done) : NULL;
  int count = convolutions + layers;
  if (count + done == 0) return options->shards > 1;
  if (done) note_at(where_of(t, t->output), "%d of %d tasks are done", done, done + count);
  t->tasks = tasks_new(count, options->budget_seconds);
  if (convolutions) tune_convolutions(convolution);
  if (layers) tune_recurrent(recurrent);
  if (t->tasks.number < count)
    note_at(where_of(t, options->model), "the budget is spent: %d of %d tasks were tuned", t->tasks.number, count);
  return true;
}

bool tune(const TuneOptions *options, Graph *graph, const TuneBuild *build, const char *output) {
  Arena *arena = graph->arena;
  Tuning tuning = {.options = options, .graph = graph, .build = build, .output = output};
  check_machine(options);
  records_check_output(arena, output);
  tuning.earlier = records_before(arena, output);
  tuning.folder = temporary_directory(arena);
  diagnostics_network(options->network);
  bool found = run_tasks(&tuning);
  temporary_remove(tuning.folder);
  if (2 * tuning.disturbed > tuning.measurements)
    warn_at(LOCATION_FILE(options->model), "other programs ran during %d of %d measurements: tune on an idle machine",
            tuning.disturbed, tuning.measurements);
  if (tuning.unbuilt)
    fatal_at(LOCATION_FILE(options->model), EXIT_ENVIRONMENT, "no trial could be built of %d of %d tasks",
             tuning.unbuilt, tuning.tasks.count);
  diagnostics_network(NULL);
  return found;
}
