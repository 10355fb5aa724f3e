/* SPDX-License-Identifier: MIT */
#include "recurrent/recorded.h"

enum { INPUT_LENGTHS = 4, INPUT_H = 5 };

static const char *workload(Arena *arena, const MmLayer *l) {
  static const char *const names[] = {
      [CELL_RNN] = "rnn", [CELL_GRU_AFTER] = "gru_after", [CELL_GRU_BEFORE] = "gru_before", [CELL_LSTM] = "lstm"};
  return arena_format(arena, "%s_T%lldB%lldof%lldi%lldh%lld%s%s%s%s", names[l->cell], (long long)dim_optimum(l->steps),
                      (long long)dim_optimum(l->batch), (long long)dim_upper(l->batch), (long long)l->inputs,
                      (long long)l->hidden, l->directions == 2 ? "x2" : "", l->reverse ? "_reverse" : "",
                      layer_input(l->node, INPUT_LENGTHS) ? "_lengths" : "",
                      layer_input(l->node, INPUT_H) ? "_state" : "");
}

RecordKey recurrent_key(Graph *graph, const MmLayer *layer) {
  const Machine *m = graph->machine;
  const char *simd = arena_format(graph->arena, "simd/%s.h", graph->target->isa);
  const char *const sources[] = {"gemm_packed.c", "kernel.h",    "panel.h", "recurrent_steps.c", simd,
                                 "simd/math.h",   "simd/simd.h", NULL};
  return (RecordKey){.family = "recurrent",
                     .workload = workload(graph->arena, layer),
                     .target = graph->target->name,
                     .kernels = kernels_hash(graph->arena, sources),
                     .cores = m->cores,
                     .l1_bytes = m->l1_bytes,
                     .l2_bytes = m->l2_bytes,
                     .l3_bytes = m->l3_bytes};
}

const ScheduleRecord *recorded_variant(Graph *graph, const MmLayer *layer, RecurrentVariant *variant) {
  if (!graph->records) return NULL;
  RecordKey key = recurrent_key(graph, layer);
  const ScheduleRecord *record = records_find(graph->records, &key);
  if (!record) return NULL;
  *variant = (RecurrentVariant){.input = INPUT_AHEAD, .workers = 1, .sample_ways = 1};
  if (variant_override(variant, record->schedule, NULL)) return record;
  warn_at(LOCATION_FILE(graph->records->file), "the schedule \"%s\" of %s says nothing that is known: it is not used",
          record->schedule, key.workload);
  return NULL;
}
