/* SPDX-License-Identifier: MIT */
#include "tune/tune_recurrent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cpu_limit.h"
#include "recurrent/choose.h"
#include "recurrent/recorded.h"
#include "support/files.h"
#include "tune/measure.h"

/* Variants of a layer that are tried, where the budget lasts. */
enum { MOST_TRIALS = 12 };

static const double MOST_SECONDS = 1.0;   /* a duel */
static const double LEAST_SECONDS = 0.05; /* where the budget is all but spent */
static const double CLEAR_WIN = 0.985;    /* of the best time so far: less is no more than noise */

typedef struct Tuner {
  const Options *options;
  Graph *graph;
  BuildModule *build;
  const char *folder, *output;
  ScheduleRecords records; /* winners of the layers so far, by which the model of later trials is compiled */
  double start, layer_end; /* layer_end: when this layer's part of the budget is spent */
  int layer, layers;       /* distinct ones */
  bool on_terminal;
} Tuner;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double seconds_left(const Tuner *t) { return t->layer_end - now(); }

/* What is left of the budget is shared by the layers that are left. */
static bool begin_layer(Tuner *t) {
  double left = t->start + t->options->budget_seconds - now();
  if (left <= 0 && t->layer > 0) return false;
  t->layer_end = now() + left / (t->layers - t->layer);
  t->layer++;
  return true;
}

/* ---- what to try ---- */

typedef struct Trials {
  int count;
  const RecurrentVariant *variants[MOST_TRIALS];
} Trials;

static int by_rank(const void *a, const void *b) {
  const Candidate *x = *(const Candidate *const *)a, *y = *(const Candidate *const *)b;
  double p = x->cost.total, q = y->cost.total;
  if (p != q) return p < q ? -1 : 1;
  return x < y ? -1 : x > y; /* the same order every time */
}

/* What would be taken without measuring comes first, then the others by predicted time. */
static Trials trials_of(const Tuner *t, const MmLayer *layer) {
  LayerCase numbers = layer_case(layer, t->graph->target);
  Candidates all = recurrent_candidates(t->graph->arena, t->graph->machine, &numbers);
  const Candidate **sorted = ARENA_ARRAY(t->graph->arena, const Candidate *, all.count);
  for (int i = 0; i < all.count; i++) sorted[i] = &all.list[i];
  qsort((void *)sorted, (size_t)all.count, sizeof *sorted, by_rank);
  Trials trials = {.count = 1, .variants = {&all.list[all.chosen].variant}};
  for (int i = 0; i < all.count && trials.count < MOST_TRIALS; i++)
    if (sorted[i] != &all.list[all.chosen]) trials.variants[trials.count++] = &sorted[i]->variant;
  return trials;
}

/* ---- trying ---- */

static const char *build_trial(Tuner *t, const RecordKey *key, const RecurrentVariant *variant, int number) {
  Arena *arena = t->graph->arena;
  ScheduleRecords records = t->records;
  records.list = arena_copy(arena, t->records.list, (size_t)t->records.capacity * sizeof *t->records.list);
  records_add(arena, &records, (ScheduleRecord){.key = *key, .schedule = variant_text(arena, variant)});
  const char *module = arena_format(arena, "%s/%d_%d.so", t->folder, t->layer, number);
  t->build(t->options, &records, module);
  return module;
}

static void tell_progress(const Tuner *t, double best, double current, int done, int trials) {
  fprintf(stderr, "%s[Layer %d/%d] best/now: %.1f/%.1f us | (%d/%d) | %.1f s%s", t->on_terminal ? "\r" : "", t->layer,
          t->layers, best, current, done, trials, now() - t->start, t->on_terminal ? "\033[K" : "\n");
}

typedef struct Winner {
  const RecurrentVariant *variant;
  const char *module;
  double median_us, first_us; /* first: of what is taken without measuring */
} Winner;

/* The model's own choice is measured alone; every other meets the best so far. */
static bool measure_trial(Tuner *t, Winner *winner, const RecurrentVariant *variant, const char *module,
                          double *current) {
  double seconds = seconds_left(t) / 4;
  if (seconds > MOST_SECONDS) seconds = MOST_SECONDS;
  if (seconds < LEAST_SECONDS) seconds = LEAST_SECONDS;
  Duel duel = {.modules = {module, winner->module}, .threads = t->graph->machine->cores, .seconds = seconds};
  const char *wrong = measure_duel(t->graph, &duel);
  if (wrong) {
    warn_at(LOCATION_FILE(t->options->model), "%s could not be measured: %s", variant_text(t->graph->arena, variant),
            wrong);
    return false;
  }
  *current = duel.median_us[0];
  bool first = !winner->module, wins = first || duel.median_us[0] < CLEAR_WIN * duel.median_us[1];
  if (!first) winner->median_us = duel.median_us[1];
  if (first) winner->first_us = duel.median_us[0];
  if (wins) *winner = (Winner){variant, module, duel.median_us[0], winner->first_us};
  return true;
}

static void tune_layer(Tuner *t, const MmLayer *layer, const RecordKey *key) {
  Trials trials = trials_of(t, layer);
  Winner winner = {0};
  int done = 0;
  for (; done < trials.count && (done < 2 || seconds_left(t) > 0); done++) {
    double current = 0;
    const char *module = build_trial(t, key, trials.variants[done], done);
    if (!measure_trial(t, &winner, trials.variants[done], module, &current) && done == 0)
      fatal_at(LOCATION_FILE(t->options->model), EXIT_UNSUPPORTED,
               "the model does not run on made-up inputs, so there is nothing to measure");
    tell_progress(t, winner.median_us, current, done + 1, trials.count);
  }
  if (t->on_terminal) fputc('\n', stderr);
  ScheduleRecord record = {*key, variant_text(t->graph->arena, winner.variant), winner.median_us};
  records_append(t->graph->arena, t->output, &record);
  records_add(t->graph->arena, &t->records, record);
  printf("%-40s %10.1f us  %s%s\n", key->workload, winner.median_us, record.schedule,
         winner.variant == trials.variants[0] ? "  (as predicted)" : "");
}

/* ---- */

/* Times of another machine, or of threads that take turns on a CPU, would say nothing. */
static void check_machine(const Options *options, const Graph *graph) {
  int cpus = cpu_limit_threads();
  if (!target_runs_here(graph->target))
    fatal_at(LOCATION_FILE(NULL), EXIT_UNSUPPORTED, "tune measures on this machine, which cannot run %s",
             graph->target->name);
  if (options->threads > cpus)
    fatal_at(LOCATION_FILE(NULL), EXIT_INVALID, "--threads=%d: only %d can be measured here", options->threads, cpus);
}

/* Is an earlier layer the same work? */
static bool known(const RecordKey *keys, int index) {
  for (int i = 0; i < index; i++)
    if (!strcmp(keys[i].workload, keys[index].workload)) return true;
  return false;
}

void tune_recurrent(const Options *options, Graph *graph, BuildModule *build, const char *output) {
  Arena *arena = graph->arena;
  const MmDag *dag = mm_dag(graph);
  Tuner tuner = {.options = options, .graph = graph, .build = build, .output = output, .start = now()};
  tuner.on_terminal = isatty(STDERR_FILENO) && !getenv("NO_COLOR");
  check_machine(options, graph);
  if (dag->n_layers == 0)
    fatal_at(LOCATION_FILE(options->model), EXIT_INVALID, "the model has no recurrent layer to tune");
  RecordKey *keys = ARENA_ARRAY(arena, RecordKey, dag->n_layers);
  for (int i = 0; i < dag->n_layers; i++) keys[i] = recurrent_key(graph, &dag->layers[i]);
  for (int i = 0; i < dag->n_layers; i++) tuner.layers += !known(keys, i);
  tuner.folder = temporary_directory(arena);
  for (int i = 0; i < dag->n_layers; i++) {
    if (known(keys, i)) continue;
    if (!begin_layer(&tuner)) {
      note_at(LOCATION_FILE(options->model), "the budget is spent: %d of %d layers were tuned", tuner.layer,
              tuner.layers);
      break;
    }
    tune_layer(&tuner, &dag->layers[i], &keys[i]);
  }
  temporary_remove(tuner.folder);
}
