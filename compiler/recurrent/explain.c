/* SPDX-License-Identifier: MIT */
#include "recurrent/explain.h"

#include <string.h>

#include "recurrent/phase_window.h"

/* Where a window has more schedules than a page holds, so many that each rule prunes are shown. */
enum { FULL_LISTING = 40, EXAMPLES = 3, MOST_VISITED = 200000 };

typedef struct Explain {
  Text *out;
  Arena *arena;
  const MmDag *dag;
  const MmLayer *layer;
} Explain;

static const char *const cell_names[] = {[CELL_RNN] = "RNN",
                                         [CELL_GRU_AFTER] = "GRU, reset after the product",
                                         [CELL_GRU_BEFORE] = "GRU, reset before the product",
                                         [CELL_LSTM] = "LSTM"};

/* ---- the products ---- */

static void add_needed(Text *text, const PhaseWindow *w, PhaseSet set, const char *when) {
  if (!set) return;
  if (text->length) text_add(text, ", ");
  for (int i = 0; i < w->products; i++)
    if (set >> i & 1) text_add(text, "%s ", w->product[i].name);
  text_add(text, "%s", when);
}

static void explain_products(const Explain *e, const LayerWindow *layer) {
  const PhaseWindow *w = &layer->window;
  text_add(e->out, "  %-10s %6s %6s %6s  %-5s %s\n", "product", "M", "N", "K", "time", "waits for");
  for (int i = 0; i < w->products; i++) {
    const MmGroup *group = &layer->groups[i];
    Text needs = text_new(e->arena);
    add_needed(&needs, w, w->product[i].same_step, "of its step");
    add_needed(&needs, w, w->product[i].step_before, "of the step before");
    text_add(e->out, "  %-10s %6lld %6lld %6lld  %-5s %s\n", w->product[i].name,
             (long long)dim_optimum(e->layer->batch), (long long)group->columns, (long long)group->depth,
             w->product[i].time_dependent ? "yes" : "no", needs.length ? needs.data : "-");
  }
}

/* ---- the schedules ---- */

typedef struct Listing {
  const Explain *explain;
  const PhaseWindow *window;
  PruneRule wanted;
  uint64_t limit, seen;
} Listing;

static void list_schedule(void *context, const PhasedSchedule *schedule, PruneRule rule) {
  Listing *listing = context;
  if (rule != listing->wanted || listing->seen++ >= listing->limit) return;
  text_add(listing->explain->out, "  %-12s %s\n", rule == PRUNE_NONE ? "survives" : prune_rule_name(rule),
           phases_text(listing->explain->arena, listing->window, schedule));
}

static void list_pruned(const Explain *e, const PhaseWindow *w, PruneRule rule, uint64_t count, bool full) {
  Listing listing = {.explain = e, .window = w, .wanted = rule, .limit = full ? count : EXAMPLES};
  phases_visit_all(w, list_schedule, &listing);
  if (count > listing.limit)
    text_add(e->out, "  %-12s ... and %llu more\n", prune_rule_name(rule), (unsigned long long)(count - listing.limit));
}

static void explain_counts(const Explain *e, const char *what, const PhaseCounts *c) {
  text_add(e->out, "  %s: %llu valid; order prunes %llu, dependency %llu, symmetry %llu; %llu survive\n", what,
           (unsigned long long)c->valid, (unsigned long long)(c->valid - c->ordered),
           (unsigned long long)(c->ordered - c->depending), (unsigned long long)(c->depending - c->symmetric),
           (unsigned long long)c->symmetric);
}

static void explain_schedules(const Explain *e, const LayerWindow *layer) {
  const PhaseWindow *w = &layer->window;
  PhaseCounts counts = phases_count(e->arena, w);
  text_add(e->out, "\n  %-12s phases of %d steps, in order; the products of a phase run side by side\n", "pruned by",
           w->steps);
  Listing survivors = {.explain = e, .window = w, .wanted = PRUNE_NONE, .limit = UINT64_MAX};
  phases_visit_survivors(w, list_schedule, &survivors);
  if (counts.valid <= MOST_VISITED) {
    bool full = counts.valid <= FULL_LISTING;
    list_pruned(e, w, PRUNE_SYMMETRY, counts.depending - counts.symmetric, full);
    list_pruned(e, w, PRUNE_DEPENDENCY, counts.ordered - counts.depending, full);
    list_pruned(e, w, PRUNE_ORDER, counts.valid - counts.ordered, full);
  }
  explain_counts(e, "together", &counts);
}

static void explain_gates(const Explain *e, int layer) {
  PhaseCounts counts = phases_count(e->arena, &layer_window(e->arena, e->dag, layer, GRAIN_GATE)->window);
  explain_counts(e, e->layer->directions == 2 ? "gate by gate, of one direction" : "gate by gate", &counts);
}

/* ---- */

/* Names come from the model: control characters must not reach the terminal. */
static const char *safe_name(Arena *arena, const char *name) {
  char *copy = arena_string(arena, name);
  for (char *c = copy; *c; c++)
    if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
  return copy;
}

static void explain_layer(const Explain *e, int index) {
  const MmLayer *l = e->layer;
  text_add(e->out, "%slayer %d of %d, %s: %s, T=%lld B=%lld I=%lld H=%lld, %s", index ? "\n" : "", index + 1,
           e->dag->n_layers, safe_name(e->arena, l->node->name), cell_names[l->cell], (long long)dim_optimum(l->steps),
           (long long)dim_optimum(l->batch), (long long)l->inputs, (long long)l->hidden,
           l->directions == 2 ? "bidirectional"
           : l->reverse       ? "reverse"
                              : "forward");
  if (l->below >= 0) text_add(e->out, ", on layer %d", l->below + 1);
  text_add(e->out, "\n");
  LayerWindow *window = layer_window(e->arena, e->dag, index, GRAIN_INPUT);
  explain_products(e, window);
  explain_schedules(e, window);
  explain_gates(e, index);
}

Text explain_recurrent(Graph *graph) {
  Text out = text_new(graph->arena);
  const MmDag *dag = mm_dag(graph);
  if (dag->n_layers == 0) text_add(&out, "no recurrent layers\n");
  for (int i = 0; i < dag->n_layers; i++) {
    Explain explain = {&out, graph->arena, dag, &dag->layers[i]};
    explain_layer(&explain, i);
  }
  return out;
}
