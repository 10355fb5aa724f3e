/* SPDX-License-Identifier: MIT */
#include "kernels/conv/recorded.h"

#include "ir/narrow.h"
#include "kernels/conv/candidates.h"
#include "support/text.h"
#include "template/fingerprint.h"

/* "_h56k3s2p1.1": extent, window, stride, dilation, pads; "" for an axis that the tensors do not have. `sized`: kernels
 * of extents that only the run knows are others: "_w256of512k3s1p1.1". */
static void add_axis(Text *text, char name, const ConvAxis *axis, bool sized) {
  bool absent = axis->kernel == 1 && dim_equals(axis->in, 1) && axis->stride == 1;
  if (absent && dim_equals(axis->out, 1)) return;
  text_add(text, "_%c%lld", name, (long long)dim_optimum(axis->in));
  if (sized && !dim_is_const(axis->in)) text_add(text, "of%lld", (long long)dim_upper(axis->in));
  text_add(text, "k%llds%lld", (long long)axis->kernel, (long long)axis->stride);
  if (axis->dilation != 1) text_add(text, "d%lld", (long long)axis->dilation);
  text_add(text, "p%lld.%lld", (long long)dim_optimum(axis->pad_begin), (long long)dim_optimum(axis->pad_end));
}

/* ".BatchNormalization.Relu" */
static void add_chain(Text *text, const char *place, Node *const *steps, int count) {
  if (count > 0) text_add(text, "_%s", place);
  for (int i = 0; i < count; i++) text_add(text, ".%s", steps[i]->op->name);
}

/* "n1c64k64_h56k3s1p1.1_w56k3s1p1.1_in16_bias_residual_then.Relu" */
static const char *workload(Graph *graph, const Node *node, NodeLayout layout) {
  Convolution conv = convolution_of(graph, node, layout);
  const Dim *images = conv.x->shape[0];
  Text text = text_new(graph->arena);
  text_add(&text, "n%lld", (long long)dim_optimum(images));
  if (!dim_is_const(images)) text_add(&text, "of%lld", (long long)dim_upper(images));
  text_add(&text, "c%lldk%lld", (long long)conv.channels, (long long)conv.kernels);
  if (conv.groups > 1) text_add(&text, "g%lld", (long long)conv.groups);
  add_axis(&text, 'd', &conv.d, conv.x_block > 0);
  add_axis(&text, 'h', &conv.h, conv.x_block > 0);
  add_axis(&text, 'w', &conv.w, conv.x_block > 0);
  if (conv.x_block)
    text_add(&text, "_in%d", conv.x_block);
  else
    text_add(&text, "_plain");
  if (conv.integer) text_add(&text, "_%sto%s", dtype_name(conv.x->dtype), dtype_name(conv.y->dtype));
  if (layout.writes == LAYOUT_WIDE) text_add(&text, "_out%d", conv.y_block);
  if (!conv.weights->data) text_add(&text, "_weights");
  if (conv.weights->narrow && conv.weights->narrow->rounds_rows) text_add(&text, "_bf16");
  if (node->exact || graph->config->no_winograd) text_add(&text, "_exact");
  if (conv.bias) text_add(&text, "_bias");
  if (conv.residual) text_add(&text, "_residual");
  int own = conv.residual ? 1 : 0;
  add_chain(&text, "after", node->prologue, node->n_prologue);
  if (node->n_epilogue > own) add_chain(&text, "then", node->epilogue + own, node->n_epilogue - own);
  return text.data;
}

RecordKey convolution_key(Graph *graph, const Node *node, NodeLayout layout) {
  return record_key(graph->config, "conv", workload(graph, node, layout));
}

/* ---- records ---- */

/* Without a fused pooling, which is fused later and not part of the workload. */
const char *convolution_kernels(Graph *graph, const Node *node, ConvSchedule *schedule) {
  const ConvAlgorithm *algorithm = algorithm_of(schedule->base.kind);
  KernelSpec *kernels[2];
  int count = 0;
  Node like = *node;
  like.schedule = &schedule->base;
  like.pool = NULL;
  KernelSpec *before = algorithm->before ? algorithm->before(graph, &like) : NULL;
  if (before) kernels[count++] = before;
  kernels[count++] = algorithm->spec(graph, &like);
  return kernels_fingerprint(graph->arena, graph->config->target, kernels, count);
}

typedef struct RecordedLayer {
  Graph *graph;
  const Node *node;
  NodeLayout layout;
  ConvSchedule *schedule; /* of the last record that was checked */
} RecordedLayer;

static const char *kernels_of_record(void *layer, const ScheduleRecord *record, const char **why) {
  RecordedLayer *l = layer;
  l->schedule = convolution_of_text(l->graph, l->node, l->layout, record->schedule, why);
  if (!l->schedule) return NULL;
  return record->kernels ? convolution_kernels(l->graph, l->node, l->schedule) : "";
}

const ScheduleRecord *convolution_record(Graph *graph, const Node *node, NodeLayout layout,
                                         const ScheduleRecords *records) {
  RecordedLayer layer = {.graph = graph, .node = node, .layout = layout};
  RecordKey key = convolution_key(graph, node, layout);
  return records_find(records, &key, kernels_of_record, &layer);
}

const ScheduleRecord *convolution_record_to_use(Graph *graph, const Node *node, NodeLayout layout,
                                                ConvSchedule **schedule) {
  *schedule = NULL;
  if (!graph->config->records) return NULL;
  RecordedLayer layer = {.graph = graph, .node = node, .layout = layout};
  RecordKey key = convolution_key(graph, node, layout);
  const ScheduleRecord *record = records_use(graph->config->records, &key, kernels_of_record, &layer);
  if (!record) return NULL;
  *schedule = layer.schedule;
  if (record->median_us > 0) layer.schedule->seconds = 1e-6 * record->median_us;
  return record;
}
