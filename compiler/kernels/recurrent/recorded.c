/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/recorded.h"

#include "machine/targets.h"
#include "support/text.h"

static const char *workload(Arena *arena, const MmLayer *l) {
  return arena_format(
      arena, "%s_T%lldB%lldof%lldi%lldh%lld%s%s%s%s", cell_info(l->cell)->name, (long long)dim_optimum(l->steps),
      (long long)dim_optimum(l->batch), (long long)dim_upper(l->batch), (long long)l->inputs, (long long)l->hidden,
      l->directions == 2 ? "x2" : "", l->reverse ? "_reverse" : "",
      layer_input(l->node, INPUT_LENGTHS) ? "_lengths" : "", layer_input(l->node, INPUT_H) ? "_state" : "");
}

/* "lstm_T9B1of1i8h16+lstm_T9B1of1i16h16" */
static const char *stack_workload(Arena *arena, const MmDag *dag, const Stack *stack) {
  Text text = text_new(arena);
  for (int i = 0; i < stack->n_layers; i++) {
    int at = 0;
    while (dag->layers[at].node != stack->layers[i]) at++;
    text_add(&text, "%s%s", i ? "+" : "", workload(arena, &dag->layers[at]));
  }
  return text.data;
}

const char *recurrent_kernels(Arena *arena, const Target *target) {
  const char *simd = arena_format(arena, "simd/%s.h", target->isa);
  const char *const sources[] = {"gemm_packed.c", "kernel.h",    "panel.h", "recurrent_steps.c", simd,
                                 "simd/math.h",   "simd/simd.h", NULL};
  return kernels_hash(arena, sources);
}

static RecordKey key_of(Graph *graph, const char *workload_text) {
  const Machine *m = graph->config->machine;
  return (RecordKey){.family = "recurrent",
                     .workload = workload_text,
                     .target = graph->config->target->name,
                     .kernels = recurrent_kernels(graph->arena, graph->config->target),
                     .cores = m->cores,
                     .l1_bytes = m->l1_bytes,
                     .l2_bytes = m->l2_bytes,
                     .l3_bytes = m->l3_bytes};
}

RecordKey recurrent_key(Graph *graph, const MmLayer *layer) { return key_of(graph, workload(graph->arena, layer)); }

RecordKey stack_key(Graph *graph, const MmDag *dag, const Stack *stack) {
  return key_of(graph, stack_workload(graph->arena, dag, stack));
}

static const ScheduleRecord *recorded(Graph *graph, const RecordKey *key, RecurrentVariant *variant) {
  const ScheduleRecord *record = records_use(graph->config->records, key);
  if (!record) return NULL;
  *variant = (RecurrentVariant){.input = INPUT_AHEAD, .workers = 1, .sample_ways = 1};
  if (variant_override(variant, record->schedule, NULL)) return record;
  records_refuse(record, "it says nothing that is known");
  return NULL;
}

const ScheduleRecord *recorded_variant(Graph *graph, const MmLayer *layer, RecurrentVariant *variant) {
  if (!graph->config->records) return NULL;
  RecordKey key = recurrent_key(graph, layer);
  return recorded(graph, &key, variant);
}

const ScheduleRecord *recorded_stack(Graph *graph, const MmDag *dag, const Stack *stack, RecurrentVariant *variant) {
  if (!graph->config->records) return NULL;
  RecordKey key = stack_key(graph, dag, stack);
  return recorded(graph, &key, variant);
}
