/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/recorded.h"

#include "kernels/recurrent/int8.h"
#include "kernels/recurrent/kernels.h"
#include "machine/targets.h"
#include "support/text.h"
#include "template/fingerprint.h"

static void add_if(Text *text, bool given, const char *word) {
  if (given) text_add(text, "_%s", word);
}

/* "_acts.Relu.Tanh" where they are given. */
static void add_activations(Text *text, const Node *node) {
  const Attribute *names = node_attribute(node, ATTR_activations);
  if (!names) return;
  text_add(text, "_acts");
  for (size_t i = 0; i < names->count; i++) text_add(text, ".%s", names->strings[i]);
}

/* Everything but the extents. */
static void add_kind(Text *text, const MmLayer *l, const Target *target) {
  const Node *node = l->node;
  const Value *lengths = node_input(node, INPUT_LENGTHS);
  if (l->directions == 2) text_add(text, "x2");
  add_if(text, l->reverse, "reverse");
  add_if(text, l->batch_first, "batchfirst");
  add_if(text, lengths != NULL, lengths && lengths->dtype == RNNCC_I64 ? "lengths64" : "lengths");
  add_if(text, node_input(node, INPUT_H), "state");
  add_if(text, node_input(node, INPUT_B), "bias");
  add_if(text, l->cell == CELL_LSTM && node_input(node, INPUT_P), "peepholes");
  add_if(text, l->cell == CELL_LSTM && node_int(node, ATTR_input_forget), "coupled");
  add_if(text, node_has(node, ATTR_clip), "clip");
  add_if(text, int8_asked(node), target->has_dot ? "int8dot" : "int8");
  add_if(text, int8_is_static(node), "static");
  add_activations(text, node);
}

/* "lstm_T100B1of1i256h256_bias"; if the number of steps is known at run time only, "T50of400". */
static const char *workload(const Graph *graph, const MmLayer *l) {
  Text text = text_new(graph->arena);
  text_add(&text, "%s_T%lld", cell_info(l->cell)->name, (long long)dim_optimum(l->steps));
  if (!dim_is_const(l->steps)) text_add(&text, "of%lld", (long long)dim_upper(l->steps));
  text_add(&text, "B%lldof%lldi%lldh%lld", (long long)dim_optimum(l->batch), (long long)dim_upper(l->batch),
           (long long)l->inputs, (long long)l->hidden);
  add_kind(&text, l, graph->config->target);
  return text.data;
}

/* "lstm_T9B1of1i8h16+lstm_T9B1of1i16h16" */
static const char *stack_workload(const Graph *graph, const MmDag *dag, const Stack *stack) {
  Text text = text_new(graph->arena);
  for (int i = 0; i < stack->n_layers; i++) {
    int at = 0;
    while (dag->layers[at].node != stack->layers[i]) at++;
    text_add(&text, "%s%s", i ? "+" : "", workload(graph, &dag->layers[at]));
  }
  return text.data;
}

static RecordKey key_of(Graph *graph, const char *workload_text) {
  return record_key(graph->config, "recurrent", workload_text);
}

RecordKey recurrent_key(Graph *graph, const MmLayer *layer) { return key_of(graph, workload(graph, layer)); }

RecordKey stack_key(Graph *graph, const MmDag *dag, const Stack *stack) {
  return key_of(graph, stack_workload(graph, dag, stack));
}

/* ---- records ---- */

/* The layers of one record. */
typedef struct RecordedLayers {
  Graph *graph;
  int count;
  Node *const *nodes;
  RecurrentVariant variant; /* of the last record that was checked */
} RecordedLayers;

static const char *kernels_by_variant(Graph *graph, Node *const *nodes, int count, const RecurrentVariant *variant) {
  KernelSpec **kernels = ARENA_ARRAY(graph->arena, KernelSpec *, count * MAX_LAYER_KERNELS);
  int n_kernels = 0;
  for (int i = 0; i < count; i++) {
    const Layer *layer = layer_run_by(graph, nodes[i], variant);
    if (!layer) stop_on_errors();
    n_kernels += layer_kernels(graph->arena, layer, kernels + n_kernels);
  }
  return kernels_fingerprint(graph->arena, graph->config->target, kernels, n_kernels);
}

static const char *kernels_of_record(void *layers, const ScheduleRecord *record, const char **why) {
  RecordedLayers *l = layers;
  l->variant = (RecurrentVariant){.input = INPUT_AHEAD, .workers = 1, .batch_parts = 1};
  ParsedSchedule parsed;
  const char *wrong = schedule_parse(recurrent_kinds, record->schedule, &parsed);
  if (wrong) {
    *why = arena_format(l->graph->arena, "expected KEY=N of a recurrent layer, found `%s`", wrong);
    return NULL;
  }
  schedule_set_named(&parsed, &l->variant.knobs);
  return record->kernels ? kernels_by_variant(l->graph, l->nodes, l->count, &l->variant) : "";
}

const char *recurrent_kernels(Graph *graph, const MmLayer *layer, const RecurrentVariant *variant) {
  return kernels_by_variant(graph, &layer->node, 1, variant);
}

const char *stack_kernels(Graph *graph, const Stack *stack, const RecurrentVariant *variant) {
  return kernels_by_variant(graph, stack->layers, stack->n_layers, variant);
}

const ScheduleRecord *recurrent_record(Graph *graph, const MmLayer *layer, const ScheduleRecords *records) {
  RecordKey key = recurrent_key(graph, layer);
  return records_find(records, &key, kernels_of_record, &(RecordedLayers){graph, 1, &layer->node, {0}});
}

const ScheduleRecord *stack_record(Graph *graph, const MmDag *dag, const Stack *stack, const ScheduleRecords *records) {
  RecordKey key = stack_key(graph, dag, stack);
  RecordedLayers layers = {graph, stack->n_layers, stack->layers, {0}};
  return records_find(records, &key, kernels_of_record, &layers);
}

static const ScheduleRecord *record_to_use(RecordedLayers *layers, const RecordKey *key, RecurrentVariant *variant) {
  const ScheduleRecord *record = records_use(layers->graph->config->records, key, kernels_of_record, layers);
  if (record) *variant = layers->variant;
  return record;
}

const ScheduleRecord *recorded_variant(Graph *graph, const MmLayer *layer, RecurrentVariant *variant) {
  if (!graph->config->records) return NULL;
  RecordKey key = recurrent_key(graph, layer);
  return record_to_use(&(RecordedLayers){graph, 1, &layer->node, {0}}, &key, variant);
}

const ScheduleRecord *recorded_stack(Graph *graph, const MmDag *dag, const Stack *stack, RecurrentVariant *variant) {
  if (!graph->config->records) return NULL;
  RecordKey key = stack_key(graph, dag, stack);
  return record_to_use(&(RecordedLayers){graph, stack->n_layers, stack->layers, {0}}, &key, variant);
}
