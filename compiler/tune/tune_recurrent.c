/* SPDX-License-Identifier: MIT */
#include "tune/tune_recurrent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu_limit.h"
#include "recurrent/choose.h"
#include "recurrent/recorded.h"
#include "recurrent/wavefront.h"
#include "support/clock.h"
#include "support/files.h"
#include "tune/measure.h"

/* Variants of a layer that are tried, where the budget lasts. */
enum { MOST_TRIALS = 12 };

static const double MOST_SECONDS = 1.0;   /* a duel */
static const double LEAST_SECONDS = 0.05; /* where the budget is all but spent */
static const double CLEAR_WIN = 0.985;    /* of the best time so far: less is no more than noise */

/* A layer or a stack; each distinct one once. */
typedef struct Item {
  RecordKey key;
  const MmLayer *layer; /* or */
  const Stack *stack;
} Item;

typedef struct Tuner {
  const Options *options;
  Graph *graph;
  const MmDag *dag;
  BuildModule *build;
  const char *folder, *output;
  ScheduleRecords records; /* winners of the layers so far, by which the model of later trials is compiled */
  double start, layer_end; /* layer_end: when this layer's part of the budget is spent */
  int layer, layers;       /* items: which of how many */
  int duels, disturbed;    /* of the duels, how many met other programs */
  bool on_terminal;
} Tuner;

static double seconds_left(const Tuner *t) { return t->layer_end - seconds_now(); }

/* What is left of the budget is shared by the layers that are left. */
static bool begin_layer(Tuner *t) {
  double left = t->start + t->options->budget_seconds - seconds_now();
  if (left <= 0 && t->layer > 0) return false;
  t->layer_end = seconds_now() + left / (t->layers - t->layer);
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
static Trials trials_of_layer(const Tuner *t, const MmLayer *layer) {
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

static Trials trials_of_stack(const Tuner *t, const Stack *stack) {
  double layer_by_layer;
  Arena *arena = t->graph->arena;
  const LayerCase *cases = stack_cases(t->graph, t->dag, stack, &layer_by_layer);
  StackCandidates all = stack_candidates(t->graph->machine, cases, stack->n_layers, layer_by_layer);
  Trials trials = {0};
  for (int i = 0; i < all.count; i++) {
    RecurrentVariant *variant = ARENA_NEW(arena, RecurrentVariant);
    *variant = (RecurrentVariant){.input = INPUT_AHEAD, .workers = 1, .sample_ways = 1, .chunk = all.list[i].chunk};
    trials.variants[trials.count++] = variant;
  }
  const RecurrentVariant *first = trials.variants[all.chosen];
  trials.variants[all.chosen] = trials.variants[0];
  trials.variants[0] = first;
  return trials;
}

/* ---- trying ---- */

static const char *build_trial(Tuner *t, const RecordKey *key, const RecurrentVariant *variant, int number) {
  Arena *arena = t->graph->arena;
  ScheduleRecords records = t->records;
  records.capacity = records.count; /* what is added goes to a list of its own */
  records_add(arena, &records, (ScheduleRecord){.key = *key, .schedule = variant_text(arena, variant)});
  const char *module = arena_format(arena, "%s/%d_%d.so", t->folder, t->layer, number);
  t->build(t->options, &records, module);
  return module;
}

static void tell_progress(const Tuner *t, double best, double current, int done, int trials) {
  fprintf(stderr, "%s[Layer %d/%d] best/now: %.1f/%.1f us | (%d/%d) | %.1f s%s", t->on_terminal ? "\r" : "", t->layer,
          t->layers, best, current, done, trials, seconds_now() - t->start, t->on_terminal ? "\033[K" : "\n");
}

typedef struct Trial {
  const RecurrentVariant *variant;
  const char *module;
  double median_us;
} Trial;

/* Times of both; `other` may have no module: then `trial` runs alone. False, after a warning, if there are none. */
static bool fight(Tuner *t, Trial *trial, Trial *other) {
  double seconds = seconds_left(t) / 4;
  if (seconds > MOST_SECONDS) seconds = MOST_SECONDS;
  if (seconds < LEAST_SECONDS) seconds = LEAST_SECONDS;
  Duel duel = {.modules = {trial->module, other->module}, .threads = t->graph->machine->cores, .seconds = seconds};
  const char *wrong = measure_duel(t->graph, &duel);
  if (wrong) {
    warn_at(LOCATION_FILE(t->options->model), "%s could not be measured: %s",
            variant_text(t->graph->arena, trial->variant), wrong);
    return false;
  }
  t->duels++;
  t->disturbed += duel.disturbed;
  trial->median_us = duel.median_us[0];
  if (other->module) other->median_us = duel.median_us[1];
  return true;
}

static bool clearly_faster(const Trial *a, const Trial *b) { return a->median_us < CLEAR_WIN * b->median_us; }

/* The first is what would be taken without measuring, and is measured alone; each other meets the best so far. Who has
 * won meets the first once more, for a chain of close fights may end anywhere. */
static Trial best_trial(Tuner *t, const RecordKey *key, const Trials *trials) {
  Trial first = {0}, best = {0};
  for (int i = 0; i < trials->count && (i < 2 || seconds_left(t) > 0); i++) {
    Trial trial = {.variant = trials->variants[i]};
    trial.module = build_trial(t, key, trial.variant, i);
    bool measured = fight(t, &trial, &best);
    if (!measured && i == 0)
      fatal_at(LOCATION_FILE(t->options->model), EXIT_UNSUPPORTED,
               "the model does not run on made-up inputs, so there is nothing to measure");
    if (i == 0) first = best = trial;
    if (measured && clearly_faster(&trial, &best)) best = trial;
    tell_progress(t, best.median_us, trial.median_us, i + 1, trials->count);
  }
  bool stays = best.module == first.module || (fight(t, &best, &first) && clearly_faster(&best, &first));
  return stays ? best : first;
}

static void tune_item(Tuner *t, const RecordKey *key, Trials trials) {
  Trial best = best_trial(t, key, &trials);
  if (t->on_terminal) fputc('\n', stderr);
  ScheduleRecord record = {
      .key = *key, .schedule = variant_text(t->graph->arena, best.variant), .median_us = best.median_us};
  records_append(t->graph->arena, t->output, &record);
  records_add(t->graph->arena, &t->records, record);
  printf("%-40s %10.1f us  %s%s\n", key->workload, best.median_us, record.schedule,
         best.variant == trials.variants[0] ? "  (as predicted)" : "");
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

static bool known(const Item *items, int count, const RecordKey *key) {
  for (int i = 0; i < count; i++)
    if (!strcmp(items[i].key.workload, key->workload)) return true;
  return false;
}

/* Layers first, then the stacks that they make. */
static int find_items(const Tuner *t, Item *items) {
  int count = 0;
  for (int i = 0; i < t->dag->n_layers; i++) {
    RecordKey key = recurrent_key(t->graph, &t->dag->layers[i]);
    if (!known(items, count, &key)) items[count++] = (Item){.key = key, .layer = &t->dag->layers[i]};
  }
  for (int i = 0; i < t->graph->n_stacks; i++) {
    RecordKey key = stack_key(t->graph, t->dag, &t->graph->stacks[i]);
    if (!known(items, count, &key)) items[count++] = (Item){.key = key, .stack = &t->graph->stacks[i]};
  }
  return count;
}

/* While layers are tuned, none runs as part of a wavefront. */
static void keep_stacks_apart(Tuner *t, const Item *items) {
  static const RecurrentVariant apart = {.input = INPUT_AHEAD, .workers = 1, .sample_ways = 1};
  for (int i = 0; i < t->layers; i++)
    if (items[i].stack)
      records_add(t->graph->arena, &t->records,
                  (ScheduleRecord){.key = items[i].key, .schedule = variant_text(t->graph->arena, &apart)});
}

void tune_recurrent(const Options *options, Graph *graph, BuildModule *build, const char *output) {
  Arena *arena = graph->arena;
  Tuner tuner = {.options = options, .graph = graph, .dag = mm_dag(graph), .build = build, .output = output};
  tuner.start = seconds_now();
  tuner.on_terminal = isatty(STDERR_FILENO) && !getenv("NO_COLOR");
  check_machine(options, graph);
  records_check_output(arena, output);
  if (tuner.dag->n_layers == 0)
    fatal_at(LOCATION_FILE(options->model), EXIT_INVALID, "the model has no recurrent layer to tune");
  Item *items = ARENA_ARRAY(arena, Item, tuner.dag->n_layers + graph->n_stacks);
  tuner.layers = find_items(&tuner, items);
  keep_stacks_apart(&tuner, items);
  tuner.folder = temporary_directory(arena);
  while (tuner.layer < tuner.layers) {
    const Item *item = &items[tuner.layer];
    if (!begin_layer(&tuner)) {
      note_at(LOCATION_FILE(options->model), "the budget is spent: %d of %d layers and stacks were tuned", tuner.layer,
              tuner.layers);
      break;
    }
    tune_item(&tuner, &item->key,
              item->layer ? trials_of_layer(&tuner, item->layer) : trials_of_stack(&tuner, item->stack));
  }
  temporary_remove(tuner.folder);
  if (2 * tuner.disturbed > tuner.duels)
    warn_at(LOCATION_FILE(options->model), "other programs ran during %d of %d measurements: tune on an idle machine",
            tuner.disturbed, tuner.duels);
}
