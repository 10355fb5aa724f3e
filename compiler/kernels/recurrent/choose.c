/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/choose.h"

#include "kernels/recurrent/input_chunk.h"
#include "support/diagnostics.h"
#include "support/list.h"
#include "support/numbers.h"

/* Rows of a block of depth: four vectors a row make 32 KB, about an L1. */
enum { DEPTH_BLOCK = 128 };

/* The cost model's error, and the price of each further worker, which other programs could use. */
static double variant_handicap(const RecurrentVariant *v) {
  double handicap = v->workers > 1 ? 1.1 : 1;
  for (int workers = 1; workers < v->workers; workers *= 2) handicap *= 1.05;
  if (v->input == INPUT_WITH_STEP) handicap *= 1.03;
  if (v->hide) handicap *= 1.01;
  if (v->depth_block) handicap *= 1.02;
  return handicap;
}

typedef struct Chooser {
  Arena *arena;
  const Machine *machine;
  const LayerCase *layer;
  Candidates result;
} Chooser;

static void add(Chooser *c, const LayerSchedule *schedule, RecurrentVariant variant, Split split) {
  Candidates *all = &c->result;
  MmExtents extents = hidden_extents(c->layer, variant.input);
  *LIST_ADD(c->arena, all->list, all->count, all->capacity) =
      (Candidate){.schedule = schedule,
                  .variant = variant,
                  .split = split,
                  .traffic = pcp_traffic(&extents, split, usable_l2(c->machine)),
                  .cost = recurrent_cost(c->machine, c->layer, &variant)};
}

/* With and without hiding barriers and blocking the depth. */
static void add_split(Chooser *c, const LayerSchedule *schedule, Split split) {
  const LayerCase *l = c->layer;
  RecurrentVariant plain = {.input = schedule->input, .workers = split.i * split.j, .batch_parts = split.i};
  if (plain.input == INPUT_AHEAD) plain.chunk = input_chunk(c->machine, l);
  add(c, schedule, plain, split);
  if (l->takes_hide && split.j == 2) {
    RecurrentVariant hide = plain;
    hide.hide = true;
    add(c, schedule, hide, split);
  }
  bool several_blocks = (l->batch + split.i - 1) / split.i > l->rows;
  if (several_blocks && !l->int8 && !l->matrices && l->hidden > DEPTH_BLOCK) {
    RecurrentVariant blocked = plain;
    blocked.depth_block = DEPTH_BLOCK;
    add(c, schedule, blocked, split);
  }
}

static int least_parts(int64_t n, int parts) { return (int)ceil_div(n, ceil_div(n, parts)); }

/* Without the workers that make no largest share smaller: 16 panels in 9 parts are 2 at most, as in 8. */
static Split without_idle(const MmExtents *mm, Split x) {
  return (Split){least_parts(mm->most_i, x.i), least_parts(mm->most_j, x.j), x.k};
}

static bool is_listed(const Chooser *c, const LayerSchedule *schedule, Split x) {
  for (int i = 0; i < c->result.count; i++) {
    const Candidate *listed = &c->result.list[i];
    if (listed->schedule == schedule && listed->split.i == x.i && listed->split.j == x.j) return true;
  }
  return false;
}

static void add_schedule(Chooser *c, const LayerSchedule *schedule) {
  MmExtents extents = hidden_extents(c->layer, schedule->input);
  int64_t kept = usable_l2(c->machine);
  int64_t useful = extents.most_i * extents.most_j;
  int crew = crew_size(c->machine, c->layer);
  for (int p = 1; p <= crew && p <= useful; p++) {
    Split split = pcp_split(&extents, p, kept);
    if (split.i * split.j != p) continue;
    split = without_idle(&extents, split);
    if (!is_listed(c, schedule, split)) add_split(c, schedule, split);
  }
}

/* The product ahead runs on the whole team, whichever workers run the steps. */
static double rank(const Machine *machine, const Candidate *candidate) {
  RecurrentVariant team = {.workers = machine->cores};
  double steps = candidate->cost.total - candidate->cost.input;
  return candidate->cost.input * variant_handicap(&team) + steps * variant_handicap(&candidate->variant);
}

/* With lengths, samples are at different times in a step, so their W x is made ahead. */
static bool runs(const LayerCase *layer, const LayerSchedule *schedule) {
  return schedule->runs && (schedule->input == INPUT_AHEAD || layer->takes_steps);
}

Candidates recurrent_candidates(Arena *arena, const Machine *machine, const LayerWindow *window,
                                const LayerCase *layer) {
  Chooser c = {.arena = arena, .machine = machine, .layer = layer, .result = {.window = window}};
  Candidates *all = &c.result;
  all->schedules = surviving_schedules(arena, window);
  for (int i = 0; i < all->schedules.count; i++)
    if (runs(layer, all->schedules.list[i])) add_schedule(&c, all->schedules.list[i]);
  if (all->count == 0) bug("no kernel runs any of the %d schedules of a recurrent layer", all->schedules.count);
  for (int i = 1; i < all->count; i++) {
    if (all->list[i].cost.total < all->list[all->least].cost.total) all->least = i;
    if (rank(machine, &all->list[i]) < rank(machine, &all->list[all->chosen])) all->chosen = i;
  }
  return *all;
}

Candidates layer_candidates(Graph *graph, const MmDag *dag, const MmLayer *layer) {
  const LayerCase numbers = layer_case(layer, graph->config->target);
  const LayerWindow *window = layer_window(graph->arena, dag, (int)(layer - dag->layers), GRAIN_INPUT);
  return recurrent_candidates(graph->arena, graph->config->machine, window, &numbers);
}
