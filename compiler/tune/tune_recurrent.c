/* SPDX-License-Identifier: MIT */
/*
 * For each distinct recurrent layer of a model, the few variants that are predicted to be best are compiled into the
 * whole model and measured there, each against the best so far, and the winner is recorded.
 */
#include "tune/tuners.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/recurrent/choose.h"
#include "kernels/recurrent/recorded.h"
#include "kernels/recurrent/wavefront.h"
#include "tune/measure.h"

/* Variants of a layer that are tried, if the budget allows. */
enum { MAX_TRIALS = 12 };

static const double MAX_SECONDS = 1.0;  /* of one duel */
static const double MIN_SECONDS = 0.05; /* if the budget is almost spent */
static const double CLEAR_WIN = 0.985;  /* of the best time so far: a smaller gain is noise */

/* A layer or a stack; each distinct one once. */
typedef struct Item {
  RecordKey key;
  const MmLayer *layer; /* or */
  const Stack *stack;
} Item;

struct RecurrentTuner {
  Tuning *tuning;
  Graph *graph;
  const MmDag *dag;
  ScheduleRecords records; /* winners of the layers so far, by which the model of later trials is compiled */
  int count;
  Item *items;
};

/* ---- what to try ---- */

typedef struct Trials {
  int count;
  const RecurrentVariant *variants[MAX_TRIALS];
} Trials;

static int by_rank(const void *a, const void *b) {
  const Candidate *x = *(const Candidate *const *)a, *y = *(const Candidate *const *)b;
  double p = x->cost.total, q = y->cost.total;
  if (p != q) return p < q ? -1 : 1;
  return x < y ? -1 : x > y; /* the same order every time */
}

/* The predicted schedule first, then the others by predicted time. */
static Trials trials_of_layer(const RecurrentTuner *t, const MmLayer *layer) {
  Candidates all = layer_candidates(t->graph, t->dag, layer);
  const Candidate **sorted = ARENA_ARRAY(t->graph->arena, const Candidate *, all.count);
  for (int i = 0; i < all.count; i++) sorted[i] = &all.list[i];
  qsort((void *)sorted, (size_t)all.count, sizeof *sorted, by_rank);
  Trials trials = {.count = 1, .variants = {&all.list[all.chosen].variant}};
  for (int i = 0; i < all.count && trials.count < MAX_TRIALS; i++)
    if (sorted[i] != &all.list[all.chosen]) trials.variants[trials.count++] = &sorted[i]->variant;
  return trials;
}

static Trials trials_of_stack(const RecurrentTuner *t, const Stack *stack) {
  double layer_by_layer;
  Arena *arena = t->graph->arena;
  const LayerCase *cases = stack_cases(t->graph, t->dag, stack, &layer_by_layer);
  StackCandidates all = stack_candidates(t->graph->config->machine, cases, stack->n_layers, layer_by_layer);
  Trials trials = {0};
  for (int i = 0; i < all.count; i++) {
    RecurrentVariant *variant = ARENA_NEW(arena, RecurrentVariant);
    *variant = (RecurrentVariant){.input = INPUT_AHEAD, .workers = 1, .batch_parts = 1, .chunk = all.list[i].chunk};
    trials.variants[trials.count++] = variant;
  }
  const RecurrentVariant *first = trials.variants[all.chosen];
  trials.variants[all.chosen] = trials.variants[0];
  trials.variants[0] = first;
  return trials;
}

/* ---- trying ---- */

static const char *build_trial(RecurrentTuner *t, const RecordKey *key, const RecurrentVariant *variant, int number) {
  Arena *arena = t->graph->arena;
  ScheduleRecords records = t->records;
  records.capacity = records.count; /* so that an added record goes to a new list */
  records_add(arena, &records, (ScheduleRecord){.key = *key, .schedule = variant_text(arena, variant)});
  const char *module = arena_format(arena, "%s/%d_%d.so", t->tuning->folder, t->tuning->tasks.number, number);
  Config config = *t->graph->config;
  config.records = &records;
  t->tuning->build->model(t->tuning->build->context, &config, module);
  return module;
}

typedef struct Trial {
  const RecurrentVariant *variant;
  const char *module;
  double median_us;
} Trial;

/* Times of both; without a module of `other`, `trial` runs alone. False, after a warning, if there are none. */
static bool fight(RecurrentTuner *t, Trial *trial, Trial *other) {
  double seconds = task_seconds_left(&t->tuning->tasks) / 4;
  if (seconds > MAX_SECONDS) seconds = MAX_SECONDS;
  if (seconds < MIN_SECONDS) seconds = MIN_SECONDS;
  Duel duel = {
      .modules = {trial->module, other->module}, .threads = t->graph->config->machine->cores, .seconds = seconds};
  const char *wrong = measure_duel(t->graph, &duel);
  if (wrong) {
    warn_at(LOCATION_FILE(t->tuning->options->model), "%s could not be measured: %s",
            variant_text(t->graph->arena, trial->variant), wrong);
    return false;
  }
  t->tuning->measurements++;
  t->tuning->disturbed += duel.disturbed;
  trial->median_us = duel.median_us[0];
  if (other->module) other->median_us = duel.median_us[1];
  return true;
}

static bool clearly_faster(const Trial *a, const Trial *b) { return a->median_us < CLEAR_WIN * b->median_us; }

/* The first is the choice without measuring, and is measured alone; each other is compared with the best so far. The
 * winner is compared with the first once more, because a chain of close results may end anywhere. */
static Trial best_trial(RecurrentTuner *t, const RecordKey *key, const Trials *trials) {
  Trial first = {0}, best = {0};
  for (int i = 0; i < trials->count && (i < 2 || task_seconds_left(&t->tuning->tasks) > 0); i++) {
    Trial trial = {.variant = trials->variants[i]};
    trial.module = build_trial(t, key, trial.variant, i);
    bool measured = fight(t, &trial, &best);
    if (!measured && i == 0)
      fatal_at(LOCATION_FILE(t->tuning->options->model), EXIT_UNSUPPORTED,
               "the model does not run on made-up inputs, so there is nothing to measure");
    if (i == 0) first = best = trial;
    if (measured && clearly_faster(&trial, &best)) best = trial;
    task_tell(&t->tuning->tasks, trial.median_us, best.median_us, "us", i + 1, trials->count);
  }
  bool stays = best.module == first.module || (fight(t, &best, &first) && clearly_faster(&best, &first));
  return stays ? best : first;
}

static const char *kernels_of(const RecurrentTuner *t, const Item *item, const RecurrentVariant *variant) {
  return item->layer ? recurrent_kernels(t->graph, item->layer, variant)
                     : stack_kernels(t->graph, item->stack, variant);
}

static void tune_item(RecurrentTuner *t, const Item *item) {
  const RecordKey *key = &item->key;
  Trials trials = item->layer ? trials_of_layer(t, item->layer) : trials_of_stack(t, item->stack);
  Trial best = best_trial(t, key, &trials);
  task_end(&t->tuning->tasks);
  ScheduleRecord record = {.key = *key,
                           .kernels = kernels_of(t, item, best.variant),
                           .schedule = variant_text(t->graph->arena, best.variant),
                           .median_us = best.median_us};
  records_append(t->graph->arena, t->tuning->output, &record);
  records_add(t->graph->arena, &t->records, record);
  printf("%-40s %10.1f us  %s%s\n", key->workload, best.median_us, record.schedule,
         best.variant == trials.variants[0] ? "  (as predicted)" : "");
}

/* ---- tasks ---- */

static bool known(const RecurrentTuner *t, const RecordKey *key) {
  for (int i = 0; i < t->count; i++)
    if (!strcmp(t->items[i].key.workload, key->workload)) return true;
  return false;
}

static void add_item(RecurrentTuner *t, Item item) {
  if (!known(t, &item.key)) t->items[t->count++] = item;
}

/* Layers first, then the stacks that they make. */
static void find_items(RecurrentTuner *t) {
  t->items = ARENA_ARRAY(t->graph->arena, Item, t->dag->n_layers + t->graph->n_stacks);
  for (int i = 0; i < t->dag->n_layers; i++)
    add_item(t, (Item){.key = recurrent_key(t->graph, &t->dag->layers[i]), .layer = &t->dag->layers[i]});
  for (int i = 0; i < t->graph->n_stacks; i++)
    add_item(t, (Item){.key = stack_key(t->graph, t->dag, &t->graph->stacks[i]), .stack = &t->graph->stacks[i]});
}

static const ScheduleRecord *earlier_record(const RecurrentTuner *t, const Item *item) {
  return item->layer ? recurrent_record(t->graph, item->layer, t->tuning->earlier)
                     : stack_record(t->graph, t->dag, item->stack, t->tuning->earlier);
}

/* Keeps the layers of this machine's shard that have no record yet. Returns the number dropped. */
static int drop_done(RecurrentTuner *t) {
  const TuneOptions *options = t->tuning->options;
  int kept = 0, done = 0;
  for (int i = 0; i < t->count; i++) {
    if (i % options->shards != options->shard - 1) continue;
    const ScheduleRecord *record = earlier_record(t, &t->items[i]);
    if (record) {
      records_add(t->graph->arena, &t->records, *record);
      done++;
    } else {
      t->items[kept++] = t->items[i];
    }
  }
  t->count = kept;
  return done;
}

/* While layers are tuned, none runs as part of a wavefront. */
static void keep_stacks_apart(RecurrentTuner *t) {
  static const RecurrentVariant apart = {.input = INPUT_AHEAD, .workers = 1, .batch_parts = 1};
  for (int i = 0; i < t->count; i++)
    if (t->items[i].stack)
      records_add(t->graph->arena, &t->records,
                  (ScheduleRecord){.key = t->items[i].key, .schedule = variant_text(t->graph->arena, &apart)});
}

RecurrentTuner *recurrent_tuner(Tuning *tuning, int *tasks, int *done) {
  RecurrentTuner *t = ARENA_NEW(tuning->graph->arena, RecurrentTuner);
  *t = (RecurrentTuner){.tuning = tuning, .graph = tuning->graph, .dag = mm_dag(tuning->graph)};
  find_items(t);
  keep_stacks_apart(t);
  *done += drop_done(t);
  *tasks += t->count;
  return t;
}

void tune_recurrent(RecurrentTuner *t) {
  for (int i = 0; i < t->count && tasks_begin(&t->tuning->tasks); i++) tune_item(t, &t->items[i]);
}
