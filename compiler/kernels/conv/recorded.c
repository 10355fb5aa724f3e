/* SPDX-License-Identifier: MIT */
#include "kernels/conv/recorded.h"

#include "layout/blocked.h"
#include "machine/targets.h"
#include "support/text.h"

/* "_h56k3s2p1.1": extent, window, stride, dilation, pads; of an axis that the tensors have not: nothing. */
static void add_axis(Text *text, char name, const ConvAxis *axis) {
  bool absent = axis->kernel == 1 && dim_is_const(axis->in) && dim_value(axis->in) == 1 && axis->stride == 1;
  if (absent && dim_is_const(axis->out) && dim_value(axis->out) == 1) return;
  text_add(text, "_%c%lldk%llds%lld", name, (long long)dim_optimum(axis->in), (long long)axis->kernel,
           (long long)axis->stride);
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
  add_axis(&text, 'd', &conv.d);
  add_axis(&text, 'h', &conv.h);
  add_axis(&text, 'w', &conv.w);
  if (conv.x_block)
    text_add(&text, "_in%d", conv.x_block);
  else
    text_add(&text, "_plain");
  if (layout.writes == LAYOUT_WIDE) text_add(&text, "_out%d", conv.y_block);
  if (!conv.weights->data) text_add(&text, "_weights");
  if (node->exact || graph->config->no_winograd) text_add(&text, "_exact");
  if (conv.bias) text_add(&text, "_bias");
  if (conv.residual) text_add(&text, "_residual");
  int own = conv.residual ? 1 : 0;
  add_chain(&text, "after", node->prologue, node->n_prologue);
  if (node->n_epilogue > own) add_chain(&text, "then", node->epilogue + own, node->n_epilogue - own);
  return text.data;
}

/* Of all algorithms, since a record tells which is best of all. */
const char *convolution_kernels(Arena *arena, const Target *target) {
  const char *simd = arena_format(arena, "simd/%s.h", target->isa);
  const char *const sources[] = {"bands.h",      "conv_depthwise.c", "conv_direct.c", "conv_pad.c",
                                 "conv_plain.c", "conv_winograd.c",  "kernel.h",      simd,
                                 "simd/math.h",  "simd/simd.h",      "winograd.h",    NULL};
  return kernels_hash(arena, sources);
}

RecordKey convolution_key(Graph *graph, const Node *node, NodeLayout layout) {
  const Machine *m = graph->config->machine;
  if (!graph->conv_kernels) graph->conv_kernels = convolution_kernels(graph->arena, graph->config->target);
  return (RecordKey){.family = "conv",
                     .workload = workload(graph, node, layout),
                     .target = graph->config->target->name,
                     .kernels = graph->conv_kernels,
                     .cores = m->cores,
                     .l1_bytes = m->l1_bytes,
                     .l2_bytes = m->l2_bytes,
                     .l3_bytes = m->l3_bytes};
}
