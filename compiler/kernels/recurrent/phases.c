/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/phases.h"

#include <string.h>

#include "support/diagnostics.h"
#include "support/text.h"

static const char *const rule_names[] = {
    [PRUNE_NONE] = "", [PRUNE_ORDER] = "order", [PRUNE_DEPENDENCY] = "dependency", [PRUNE_SYMMETRY] = "symmetry"};

const char *prune_rule_name(PruneRule rule) { return rule_names[rule]; }

/* ---- sets of products ---- */

static PhaseSet one_step(const PhaseWindow *w) { return ((PhaseSet)1 << w->products) - 1; }
PhaseSet phase_step(const PhaseWindow *w, int step) { return one_step(w) << (step * w->products); }
static int bits_of(const PhaseWindow *w) { return w->products * w->steps; }
static PhaseSet whole(const PhaseWindow *w) { return ((PhaseSet)1 << bits_of(w)) - 1; }

static PhaseSet needs_of(const PhaseWindow *w, int bit) {
  int step = bit / w->products;
  const PhaseProduct *product = &w->product[bit % w->products];
  PhaseSet needs = product->same_step << (step * w->products);
  return step ? needs | product->step_before << ((step - 1) * w->products) : needs;
}

static bool bit_is_dependent(const PhaseWindow *w, int bit) { return w->product[bit % w->products].time_dependent; }

/* The products that may run after `done`. */
static PhaseSet ready(const PhaseWindow *w, PhaseSet done) {
  PhaseSet set = 0;
  for (int bit = 0; bit < bits_of(w); bit++)
    if (!(done >> bit & 1) && !(needs_of(w, bit) & ~done)) set |= (PhaseSet)1 << bit;
  return set;
}

bool phase_is_time_dependent(const PhaseWindow *w, PhaseSet phase) {
  for (int bit = 0; bit < bits_of(w); bit++)
    if ((phase >> bit & 1) && bit_is_dependent(w, bit)) return true;
  return false;
}

static bool depends_on(const PhaseWindow *w, PhaseSet phase, PhaseSet earlier) {
  for (int bit = 0; bit < bits_of(w); bit++)
    if ((phase >> bit & 1) && (needs_of(w, bit) & earlier)) return true;
  return false;
}

/* The next non-empty subset of `set`; 0: no more. */
static PhaseSet next_subset(PhaseSet subset, PhaseSet set) { return (subset - 1) & set; }

/* ---- rules ---- */

/* The rule of order or dependency that `phase` would break as the next one. */
static PruneRule rule_of_next(const PhaseWindow *w, const PhasedSchedule *schedule, PhaseSet phase) {
  if (schedule->count == 0) return PRUNE_NONE;
  PhaseSet last = schedule->phases[schedule->count - 1];
  bool dependent = phase_is_time_dependent(w, phase), last_dependent = phase_is_time_dependent(w, last);
  if (last_dependent && !dependent) return PRUNE_ORDER;
  return last_dependent == dependent && !depends_on(w, phase, last) ? PRUNE_DEPENDENCY : PRUNE_NONE;
}

/* Is each product of the phase in it for all steps? */
static bool holds_all_steps(const PhaseWindow *w, PhaseSet phase) {
  PhaseSet products = 0;
  for (int step = 0; step < w->steps; step++) products |= phase >> (step * w->products) & one_step(w);
  PhaseSet expected = 0;
  for (int step = 0; step < w->steps; step++) expected |= products << (step * w->products);
  return phase == expected;
}

static bool is_symmetric(const PhaseWindow *w, const PhasedSchedule *schedule) {
  int first = 0;
  while (first < schedule->count && !phase_is_time_dependent(w, schedule->phases[first]))
    if (!holds_all_steps(w, schedule->phases[first++])) return false;
  int dependent = schedule->count - first, of_step = dependent / w->steps;
  if (of_step * w->steps != dependent) return false;
  for (int i = 0; i < dependent; i++) {
    PhaseSet moved = schedule->phases[first + i % of_step] << (i / of_step * w->products);
    if (schedule->phases[first + i] != moved) return false;
  }
  return true;
}

PruneRule phases_rule(const PhaseWindow *w, const PhasedSchedule *schedule) {
  PhasedSchedule so_far = {.count = 0};
  PruneRule first = PRUNE_NONE;
  for (int i = 0; i < schedule->count; i++) {
    PruneRule rule = rule_of_next(w, &so_far, schedule->phases[i]);
    if (rule != PRUNE_NONE && (first == PRUNE_NONE || rule < first)) first = rule;
    so_far.phases[so_far.count++] = schedule->phases[i];
  }
  if (first != PRUNE_NONE) return first;
  return is_symmetric(w, schedule) ? PRUNE_NONE : PRUNE_SYMMETRY;
}

/* ---- visiting ---- */

typedef struct Walk {
  const PhaseWindow *window;
  bool prune; /* do not go on with a schedule that breaks order or dependency */
  PhaseVisit *visit;
  void *context;
  PhasedSchedule schedule;
} Walk;

/* Recursion as deep as a window has products. */
static void walk_from(Walk *walk, PhaseSet done) {
  const PhaseWindow *w = walk->window;
  PhasedSchedule *schedule = &walk->schedule;
  if (done == whole(w)) {
    walk->visit(walk->context, schedule, phases_rule(w, schedule));
    return;
  }
  PhaseSet set = ready(w, done);
  for (PhaseSet phase = set; phase; phase = next_subset(phase, set)) {
    if (walk->prune && rule_of_next(w, schedule, phase) != PRUNE_NONE) continue;
    schedule->phases[schedule->count++] = phase;
    walk_from(walk, done | phase);
    schedule->count--;
  }
}

void phases_visit_all(const PhaseWindow *window, PhaseVisit *visit, void *context) {
  Walk walk = {.window = window, .visit = visit, .context = context};
  walk_from(&walk, 0);
}

typedef struct Survivors {
  PhaseVisit *visit;
  void *context;
  PhaseCounts *counts; /* NULL: only visit */
} Survivors;

static void visit_pruned(void *context, const PhasedSchedule *schedule, PruneRule rule) {
  Survivors *survivors = context;
  if (survivors->counts) survivors->counts->depending++;
  if (survivors->counts) survivors->counts->symmetric += rule == PRUNE_NONE;
  if (rule == PRUNE_NONE && survivors->visit) survivors->visit(survivors->context, schedule, rule);
}

static void walk_pruned(const PhaseWindow *window, Survivors *survivors) {
  Walk walk = {.window = window, .prune = true, .visit = visit_pruned, .context = survivors};
  walk_from(&walk, 0);
}

void phases_visit_survivors(const PhaseWindow *window, PhaseVisit *visit, void *context) {
  Survivors survivors = {.visit = visit, .context = context};
  walk_pruned(window, &survivors);
}

/* ---- counting: schedules share their ends, so their number is a sum over sets of what is done ---- */

typedef struct Tally {
  const PhaseWindow *window;
  bool ordered; /* count only schedules that keep the rule of order */
  uint64_t
      *ways[2]; /* by set done, and whether a time-dependent phase ran: ways to continue, plus 1; 0: not known yet */
} Tally;

static uint64_t ways_from(Tally *tally, PhaseSet done, bool dependent_before) {
  const PhaseWindow *w = tally->window;
  if (done == whole(w)) return 1;
  uint64_t *known = &tally->ways[dependent_before][done];
  if (*known) return *known - 1;
  uint64_t sum = 0;
  PhaseSet set = ready(w, done);
  for (PhaseSet phase = set; phase; phase = next_subset(phase, set)) {
    bool dependent = tally->ordered && phase_is_time_dependent(w, phase);
    if (dependent_before && !dependent) continue;
    sum += ways_from(tally, done | phase, dependent);
  }
  *known = sum + 1; /* 0 ways are known too */
  return sum;
}

static uint64_t count_ways(Arena *arena, const PhaseWindow *window, bool ordered) {
  Tally tally = {.window = window, .ordered = ordered};
  for (int i = 0; i <= ordered; i++) tally.ways[i] = ARENA_ARRAY(arena, uint64_t, (size_t)1 << bits_of(window));
  return ways_from(&tally, 0, false);
}

PhaseCounts phases_count(Arena *arena, const PhaseWindow *window) {
  if (bits_of(window) > MAX_PHASE_BITS) bug("a window of %d products", bits_of(window));
  PhaseCounts counts = {.valid = count_ways(arena, window, false), .ordered = count_ways(arena, window, true)};
  Survivors survivors = {.counts = &counts};
  walk_pruned(window, &survivors);
  return counts;
}

/* ---- text ---- */

const char *phases_text(Arena *arena, const PhaseWindow *w, const PhasedSchedule *schedule) {
  Text text = text_new(arena);
  for (int i = 0; i < schedule->count; i++) {
    if (i) text_add(&text, " | ");
    const char *gap = "";
    for (int product = 0; product < w->products; product++) {
      for (int step = 0; step < w->steps; step++) {
        if (!(schedule->phases[i] >> (step * w->products + product) & 1)) continue;
        text_add(&text, "%s%s(%d)", gap, w->product[product].name, step);
        gap = " ";
      }
    }
  }
  return text.data;
}
