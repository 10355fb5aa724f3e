/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/explain.h"

#include <string.h>

#include "kernels/recurrent/choose.h"
#include "kernels/recurrent/phase_window.h"
#include "kernels/recurrent/recorded.h"
#include "kernels/recurrent/wavefront.h"

/* If a window has more schedules than FULL_LISTING, EXAMPLES pruned by each rule are listed. */
enum { FULL_LISTING = 40, EXAMPLES = 3, MAX_VISITED = 200000 };

typedef struct Explain {
  Text *out;
  Graph *graph;
  Arena *arena;
  const MmDag *dag;
  const MmLayer *layer;
  bool in_full;
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

/* "[W 100x1024x256] | [R 1x1024x256]": the fused products up to the end of the first step. */
static void list_fused(const Explain *e, const LayerWindow *layer, const PhasedSchedule *schedule) {
  static const char *const operands[] = {[MM_INPUT] = "W", [MM_HIDDEN] = "R", [MM_AROUND] = "P"};
  int phases = 0;
  while (phases < schedule->count && !(schedule->phases[phases] & phase_step(&layer->window, 1) &&
                                       phase_is_time_dependent(&layer->window, schedule->phases[phases])))
    phases++;
  text_add(e->out, "  %-12s ", "");
  for (int i = 0; i < phases; i++) {
    FusedMm fused[MAX_PHASE_BITS];
    int count = fuse_phase(layer, schedule->phases[i], fused);
    text_add(e->out, i ? " | " : "= ");
    for (int k = 0; k < count; k++) {
      int64_t rows = dim_optimum(e->layer->batch) * (fused[k].steps > 1 ? dim_optimum(e->layer->steps) : 1);
      text_add(e->out, "%s[%s %lldx%lldx%lld]", k ? " " : "", operands[fused[k].operand], (long long)rows,
               (long long)fused[k].columns, (long long)fused[k].depth);
    }
  }
}

/* The least cost of the candidates with this schedule; NULL: none. */
static const RecurrentCost *least_cost(const Candidates *all, const LayerSchedule *schedule) {
  const RecurrentCost *least = NULL;
  for (int i = 0; i < all->count; i++)
    if (all->list[i].schedule == schedule && (!least || all->list[i].cost.total < least->total))
      least = &all->list[i].cost;
  return least;
}

/* Prints what happens to a survivor. */
static void list_fate(const Explain *e, const Candidates *all, const LayerSchedule *schedule) {
  const RecurrentCost *least = least_cost(all, schedule);
  const char *input = schedule->input == INPUT_AHEAD ? "ahead" : "step";
  bool chosen = all->list[all->chosen].schedule == schedule;
  if (!schedule->runs)
    text_add(e->out, "; no kernel runs it\n");
  else if (!least)
    text_add(e->out, "; input=%s: not with sequence lengths\n", input);
  else
    text_add(e->out, "; input=%s: %.2f us%s\n", input, least->total / 1e3, chosen ? ", chosen" : "");
}

static void list_schedules(const Explain *e, const Candidates *all, PruneRule rule) {
  for (int i = 0; i < all->schedules.count; i++) {
    const LayerSchedule *schedule = all->schedules.list[i];
    if (schedule->pruned != rule) continue;
    text_add(e->out, "  %-12s %s\n", rule == PRUNE_NONE ? "survives" : prune_rule_name(rule),
             phases_text(e->arena, &all->window->window, &schedule->phases));
    if (rule != PRUNE_NONE) continue;
    list_fused(e, all->window, &schedule->phases);
    list_fate(e, all, schedule);
  }
}

static void list_pruned(const Explain *e, const Candidates *all, PruneRule rule, uint64_t count, uint64_t limit) {
  list_schedules(e, all, rule);
  if (count > limit)
    text_add(e->out, "  %-12s ... and %llu more\n", prune_rule_name(rule), (unsigned long long)(count - limit));
}

static void explain_counts(const Explain *e, const char *what, const PhaseCounts *c) {
  text_add(e->out, "  %s: %llu valid; order prunes %llu, dependency %llu, symmetry %llu; %llu survive\n", what,
           (unsigned long long)c->valid, (unsigned long long)(c->valid - c->ordered),
           (unsigned long long)(c->ordered - c->depending), (unsigned long long)(c->depending - c->symmetric),
           (unsigned long long)c->symmetric);
}

/* The candidates' schedules and the pruned ones. */
static void explain_schedules(const Explain *e, Candidates *all) {
  const PhaseWindow *w = &all->window->window;
  PhaseCounts counts = phases_count(e->arena, w);
  text_add(e->out, "\n  %-12s phases of %d steps, in order; the products of a phase run side by side\n", "pruned by",
           w->steps);
  if (counts.valid <= MAX_VISITED) {
    uint64_t limit = e->in_full || counts.valid <= FULL_LISTING ? counts.valid : EXAMPLES;
    add_pruned_schedules(e->arena, all->window, limit, &all->schedules);
    list_schedules(e, all, PRUNE_NONE);
    list_pruned(e, all, PRUNE_SYMMETRY, counts.depending - counts.symmetric, limit);
    list_pruned(e, all, PRUNE_DEPENDENCY, counts.ordered - counts.depending, limit);
    list_pruned(e, all, PRUNE_ORDER, counts.valid - counts.ordered, limit);
  } else {
    list_schedules(e, all, PRUNE_NONE);
  }
  explain_counts(e, "together", &counts);
}

static void explain_gates(const Explain *e, int layer) {
  PhaseCounts counts = phases_count(e->arena, &layer_window(e->arena, e->dag, layer, GRAIN_GATE)->window);
  explain_counts(e, e->layer->directions == 2 ? "gate by gate, of one direction" : "gate by gate", &counts);
  if (counts.symmetric > 2)
    text_add(e->out, "  (kernels treat all gates alike: W of all ahead, or of all with its step)\n");
}

/* ---- the candidates ---- */

enum { MAX_ROWS = 24 };

/* Is it the best one of its schedule and degree of parallelism? */
static bool is_best_of_degree(const Candidates *all, int index) {
  const Candidate *one = &all->list[index];
  for (int i = 0; i < all->count; i++) {
    const Candidate *other = &all->list[i];
    bool rivals = other->schedule == one->schedule && other->variant.workers == one->variant.workers;
    if (rivals && other->cost.total < one->cost.total) return false;
  }
  return true;
}

static void explain_candidate(const Explain *e, const Candidate *c, const char *mark) {
  const RecurrentCost *cost = &c->cost;
  text_add(e->out, "%-2s%-6s %3d  %3dx%3dx%d %11.3f  %-4s %5d  %10.2f %10.2f %8.2f %8.2f %10.2f\n", mark,
           c->variant.input == INPUT_AHEAD ? "ahead" : "step", c->split.i * c->split.j * c->split.k, c->split.i,
           c->split.j, c->split.k, c->traffic / 1e6, c->variant.hide ? "yes" : "no", c->variant.depth_block,
           cost->input / 1e3, cost->products / 1e3, cost->cells / 1e3, cost->waits / 1e3, cost->total / 1e3);
}

static void explain_choice(const Explain *e, const Candidates *all) {
  const Candidate *chosen = &all->list[all->chosen], *least = &all->list[all->least];
  text_add(e->out, "  chosen: %s: ", variant_text(e->arena, &chosen->variant));
  if (all->chosen == all->least)
    text_add(e->out, "the least predicted time\n");
  else
    text_add(e->out, "%.1f%% over the least, %s, which takes more for it\n",
             100 * (chosen->cost.total / least->cost.total - 1), variant_text(e->arena, &least->variant));
  RecurrentVariant measured;
  const ScheduleRecord *record = recorded_variant(e->graph, e->layer, &measured);
  if (record)
    text_add(e->out, "  measured: %s: %.1f us a run of the model it was tuned in, by %s\n", record->schedule,
             record->median_us, record->file->path);
  if (e->graph->config->rnn_schedule) text_add(e->out, "  forced by --rnn: %s\n", e->graph->config->rnn_schedule);
}

static void explain_candidates(const Explain *e, const Candidates *all) {
  const Machine *m = e->graph->config->machine;
  text_add(e->out, "\n  predicted for %d cores of %.0f GFLOP/s, %lld KB of L1, %lld KB of L2, %lld MB of L3; %s\n",
           m->cores, m->gflops, (long long)m->l1_bytes >> 10, (long long)m->l2_bytes >> 10,
           (long long)m->l3_bytes >> 20,
           e->layer->directions == 2 ? "each direction has half of them"
                                     : "split X_i (samples) x X_j (units) x X_k (depth)");
  text_add(e->out, "  %-6s %3s  %9s %11s  %-4s %5s  %10s %10s %8s %8s %10s\n", "input", "P", "split", "L3->L2 MB",
           "hide", "block", "input us", "products", "cells", "waits", "total us");
  for (int i = 0; i < all->count; i++)
    if (all->count <= MAX_ROWS || i == all->chosen || is_best_of_degree(all, i))
      explain_candidate(e, &all->list[i], i == all->chosen ? "* " : "");
  explain_choice(e, all);
}

/* ---- */

static void explain_layer(const Explain *e, int index) {
  const MmLayer *l = e->layer;
  text_add(e->out, "%slayer %d of %d, %s: %s, T=%lld B=%lld I=%lld H=%lld, %s", index ? "\n" : "", index + 1,
           e->dag->n_layers, printable(e->arena, l->node->name), cell_names[l->cell], (long long)dim_optimum(l->steps),
           (long long)dim_optimum(l->batch), (long long)l->inputs, (long long)l->hidden,
           l->directions == 2 ? "bidirectional"
           : l->reverse       ? "reverse"
                              : "forward");
  int place;
  const Stack *stack = stack_of(e->graph, l->node, &place);
  if (stack) text_add(e->out, ", number %d of a stack of %d", place + 1, stack->n_layers);
  text_add(e->out, "\n");
  Candidates all = layer_candidates(e->graph, e->dag, l);
  explain_products(e, all.window);
  explain_schedules(e, &all);
  explain_gates(e, index);
  explain_candidates(e, &all);
}

/* ---- stacks ---- */

static void explain_stack(const Explain *e, const Stack *stack) {
  double layer_by_layer;
  const LayerCase *cases = stack_cases(e->graph, e->dag, stack, &layer_by_layer);
  StackCandidates all = stack_candidates(e->graph->config->machine, cases, stack->n_layers, layer_by_layer);
  text_add(e->out, "\nstack of %d layers from %s on\n  %-24s %10s\n", stack->n_layers,
           printable(e->arena, stack->layers[0]->name), "", "total us");
  for (int i = 0; i < all.count; i++) {
    const char *how =
        all.list[i].chunk ? arena_format(e->arena, "wavefront, chunk=%d", all.list[i].chunk) : "layer by layer";
    text_add(e->out, "%-2s%-24s %10.2f\n", i == all.chosen ? "* " : "", how, all.list[i].total_ns / 1e3);
  }
  RecurrentVariant measured;
  const ScheduleRecord *record = recorded_stack(e->graph, e->dag, stack, &measured);
  text_add(e->out, "  chosen: chunk=%d%s\n", record ? measured.chunk : all.list[all.chosen].chunk,
           record            ? arena_format(e->arena, ", measured, by %s", record->file->path)
           : all.chosen == 0 ? ": no wavefront is clearly faster"
                             : ": the least predicted time; each chunk of a layer then has one worker");
}

Text explain_recurrent(Graph *graph, bool in_full) {
  Text out = text_new(graph->arena);
  const MmDag *dag = mm_dag(graph);
  if (dag->n_layers == 0) text_add(&out, "no recurrent layers\n");
  for (int i = 0; i < dag->n_layers; i++) {
    Explain explain = {&out, graph, graph->arena, dag, &dag->layers[i], in_full};
    explain_layer(&explain, i);
  }
  for (int i = 0; i < graph->n_stacks; i++) {
    Explain explain = {&out, graph, graph->arena, dag, NULL, in_full};
    explain_stack(&explain, &graph->stacks[i]);
  }
  return out;
}
