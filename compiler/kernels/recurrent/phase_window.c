/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/phase_window.h"

#include <string.h>

#include "support/list.h"
#include "support/text.h"

typedef struct Builder {
  Arena *arena;
  const MmDag *dag;
  const MmLayer *layer;
  LayerWindow *result;
  int *group_of; /* by index in dag->mms: its group, -1 */
} Builder;

/* ---- groups ---- */

static MmGroup *add_group(Builder *b, MmOperand operand, int direction) {
  LayerWindow *result = b->result;
  if (result->window.products == MAX_GROUPS) bug("a layer of more than %d groups", MAX_GROUPS);
  MmGroup *group = &result->groups[result->window.products++];
  *group = (MmGroup){.operand = operand, .direction = direction, .input = result->window.products};
  return group;
}

static void add_mm(Builder *b, MmGroup *group, int index) {
  const Mm *mm = &b->dag->mms[index];
  group->mms[group->n_mms++] = index;
  group->columns += mm->columns;
  group->depth = mm->depth;
  b->group_of[index] = (int)(group - b->result->groups);
}

static bool same_needs(const Mm *a, const Mm *b) {
  return a->n_needs == b->n_needs &&
         (a->n_needs == 0 || !memcmp(a->needs, b->needs, (size_t)a->n_needs * sizeof *a->needs));
}

/* The group of an earlier gate with the same input and the same dependencies; NULL: none. */
static MmGroup *group_alike(Builder *b, const Mm *mm) {
  for (int i = 0; i < b->result->window.products; i++) {
    MmGroup *group = &b->result->groups[i];
    const Mm *first = &b->dag->mms[group->mms[0]];
    if (group->operand == mm->operand && group->direction == mm->direction && same_needs(first, mm)) return group;
  }
  return NULL;
}

static void add_gates(Builder *b, int direction, MmOperand operand, Grain grain) {
  for (int gate = 0; gate < b->layer->gates; gate++) {
    int index = mm_index(b->layer, direction, operand, gate);
    MmGroup *alike = group_alike(b, &b->dag->mms[index]);
    MmGroup *group = alike && grain == GRAIN_INPUT ? alike : add_group(b, operand, direction);
    if (alike) group->input = alike->input;
    add_mm(b, group, index);
  }
}

/* MatMuls and Gemms that compute this layer's x step by step. */
static void add_feeders(Builder *b) {
  const Mm *reader = &b->dag->mms[mm_index(b->layer, 0, MM_INPUT, 0)];
  int count = 0;
  for (int i = 0; i < reader->n_needs; i++) {
    const MmNeed *need = &reader->needs[i];
    bool feeds = b->dag->mms[need->from].operand == MM_AROUND && need->when == MM_SAME_STEP;
    if (feeds && count++ < MAX_FEEDERS) add_mm(b, add_group(b, MM_AROUND, 0), need->from);
  }
}

/* ---- products ---- */

static const char *group_name(const Builder *b, const MmGroup *group) {
  Text text = text_new(b->arena);
  if (group->operand == MM_AROUND) {
    int number = (int)(group - b->result->groups);
    text_add(&text, number ? "P%d" : "P", number + 1);
    return text.data;
  }
  text_add(&text, "%c%s", group->operand == MM_INPUT ? 'W' : 'R',
           b->layer->directions == 1 ? ""
           : group->direction        ? "b"
                                     : "f");
  if (group->n_mms == b->layer->gates) return text.data;
  const CellKind *kind = cell_kind(b->layer->node->op->kind);
  text_add(&text, "_");
  for (int i = 0; i < group->n_mms; i++) text_add(&text, "%c", kind->letters[b->dag->mms[group->mms[i]].gate]);
  return text.data;
}

static PhaseProduct product_of(const Builder *b, const MmGroup *group) {
  PhaseProduct product = {.name = group_name(b, group), .time_dependent = group->operand == MM_HIDDEN};
  for (int i = 0; i < group->n_mms; i++) {
    const Mm *mm = &b->dag->mms[group->mms[i]];
    for (int n = 0; n < mm->n_needs; n++) {
      int from = b->group_of[mm->needs[n].from];
      if (from < 0) continue;
      if (mm->needs[n].when == MM_SAME_STEP) product.same_step |= (PhaseSet)1 << from;
      if (mm->needs[n].when == MM_STEP_BEFORE) product.step_before |= (PhaseSet)1 << from;
    }
  }
  return product;
}

LayerWindow *layer_window(Arena *arena, const MmDag *dag, int layer, Grain grain) {
  LayerWindow *result = ARENA_NEW(arena, LayerWindow);
  Builder b = {.arena = arena, .dag = dag, .layer = &dag->layers[layer], .result = result};
  b.group_of = ARENA_ARRAY(arena, int, dag->n_mms);
  for (int i = 0; i < dag->n_mms; i++) b.group_of[i] = -1;
  if (grain == GRAIN_INPUT) add_feeders(&b);
  int directions = grain == GRAIN_INPUT ? b.layer->directions : 1;
  for (int direction = 0; direction < directions; direction++) {
    add_gates(&b, direction, MM_INPUT, grain);
    add_gates(&b, direction, MM_HIDDEN, grain);
  }
  for (int i = 0; i < result->window.products; i++) result->products[i] = product_of(&b, &result->groups[i]);
  result->window.product = result->products;
  result->window.steps = WINDOW_STEPS;
  return result;
}

/* ---- fusion ---- */

/* Both directions share x of all steps; in one step they are at different times. */
static bool shares_input(const LayerWindow *layer, const FusedMm *fused, const MmGroup *group, int steps) {
  if (fused->steps != steps) return false;
  if (steps == layer->window.steps && group->operand == MM_INPUT) return fused->operand == MM_INPUT;
  return fused->input == group->input;
}

static void fuse_group(const LayerWindow *layer, int index, int steps, FusedMm *fused, int *count) {
  const MmGroup *group = &layer->groups[index];
  int at = 0;
  while (at < *count && !shares_input(layer, &fused[at], group, steps)) at++;
  if (at == *count)
    fused[(*count)++] =
        (FusedMm){.steps = steps, .input = group->input, .operand = group->operand, .depth = group->depth};
  fused[at].groups |= (PhaseSet)1 << index;
  fused[at].columns += group->columns;
}

int fuse_phase(const LayerWindow *layer, PhaseSet phase, FusedMm *fused) {
  const PhaseWindow *w = &layer->window;
  int count = 0;
  for (int index = 0; index < w->products; index++) {
    int steps = 0;
    for (int step = 0; step < w->steps; step++) steps += phase >> (step * w->products + index) & 1;
    if (steps) fuse_group(layer, index, steps, fused, &count);
  }
  return count;
}

/* ---- schedules ---- */

/* Are the operand's products of the first step all in the phases [begin, end)? By symmetry then those of all steps. */
static bool all_stand_in(const LayerWindow *layer, const PhasedSchedule *schedule, MmOperand operand, int begin,
                         int end) {
  for (int i = 0; i < schedule->count; i++)
    for (int index = 0; index < layer->window.products; index++) {
      bool stands_here = schedule->phases[i] >> index & 1;
      if (stands_here && layer->groups[index].operand == operand && (i < begin || i >= end)) return false;
    }
  return true;
}

static LayerSchedule *schedule_of(Arena *arena, const LayerWindow *layer, const PhasedSchedule *phases,
                                  PruneRule rule) {
  LayerSchedule *schedule = ARENA_NEW(arena, LayerSchedule);
  *schedule = (LayerSchedule){.phases = *phases, .pruned = rule};
  if (rule != PRUNE_NONE) return schedule;
  int first = 0; /* phase of the steps */
  while (!phase_is_time_dependent(&layer->window, phases->phases[first])) first++;
  bool ahead = all_stand_in(layer, phases, MM_INPUT, 0, first);
  schedule->input = ahead ? INPUT_AHEAD : INPUT_WITH_STEP;
  schedule->runs = all_stand_in(layer, phases, MM_AROUND, 0, first) &&
                   (ahead || all_stand_in(layer, phases, MM_INPUT, first, first + 1));
  return schedule;
}

typedef struct Collection {
  Arena *arena;
  const LayerWindow *layer;
  LayerSchedules *schedules;
  uint64_t limit, kept[PRUNE_SYMMETRY + 1]; /* of each rule that prunes */
} Collection;

static void collect(void *context, const PhasedSchedule *phases, PruneRule rule) {
  Collection *c = context;
  LayerSchedules *all = c->schedules;
  *LIST_ADD(c->arena, all->list, all->count, all->capacity) = schedule_of(c->arena, c->layer, phases, rule);
}

static void collect_pruned(void *context, const PhasedSchedule *phases, PruneRule rule) {
  Collection *c = context;
  if (rule != PRUNE_NONE && c->kept[rule]++ < c->limit) collect(c, phases, rule);
}

LayerSchedules surviving_schedules(Arena *arena, const LayerWindow *layer) {
  LayerSchedules survivors = {0};
  Collection collection = {.arena = arena, .layer = layer, .schedules = &survivors};
  phases_visit_survivors(&layer->window, collect, &collection);
  return survivors;
}

void add_pruned_schedules(Arena *arena, const LayerWindow *layer, uint64_t limit, LayerSchedules *schedules) {
  Collection collection = {.arena = arena, .layer = layer, .schedules = schedules, .limit = limit};
  phases_visit_all(&layer->window, collect_pruned, &collection);
}
