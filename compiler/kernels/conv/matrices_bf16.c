/* SPDX-License-Identifier: MIT */
/*
 * Convolutions of f32 by weights of bf16 to which what they multiply is rounded (--precision=bf16-dynamic),
 * by matrices in registers: templates/conv_matrices_bf16.c.
 */
#include "ir/narrow.h"
#include "ir/tensor.h"
#include "kernels/conv/candidates.h"
#include "kernels/conv/matrices_plan.h"
#include "kernels/conv/prologue.h"
#include "kernels/elementwise/elementwise.h"
#include "layout/blocked.h"
#include "machine/targets.h"
#include "passes/narrow_weights.h"
#include "program/build.h"
#include "template/specialise.h"

static bool can_run(const Graph *graph, const Convolution *conv) {
  return matrices_run(graph, conv) && !convolution_direct.obstacle(graph, conv);
}

/* As the layout search will choose it, if it chooses blocks. */
static NodeLayout blocks_of(const Graph *graph, const Node *node) {
  bool few = dim_value(node->inputs[0]->shape[1]) < graph->config->target->lanes;
  return (NodeLayout){few ? LAYOUT_NARROW : LAYOUT_BLOCKED, LAYOUT_BLOCKED};
}

static double best_seconds(Graph *graph, const Node *node, const Convolution *conv) {
  ConvCandidates best = {.arena = graph->arena, .algorithm = &convolution_matrices_bf16, .only_best = true};
  matrices_list(graph, node, conv, &best);
  return best.list->seconds;
}

bool convolution_multiplies_bf16(Graph *graph, const Node *node) {
  if (!is_op(node, OP_Conv) || !can_be_narrow(node->inputs[1])) return false;
  if (!can_be_blocked(node->inputs[0]) || !can_be_blocked(node->outputs[0])) return false;
  NodeLayout blocks = blocks_of(graph, node);
  Convolution conv = convolution_of(graph, node, blocks);
  if (!can_run(graph, &conv) || !matrices_suit(graph, node, &conv)) return false;
  const ConvAlgorithm *forced = convolution_forced(graph);
  if (forced) return forced == &convolution_matrices_bf16;
  return best_seconds(graph, node, &conv) < convolution_first(graph, node, blocks).seconds;
}

static bool runs_blocked(const Graph *graph, const Convolution *conv) {
  const NarrowWeights *narrow = conv->weights->narrow;
  return narrow && narrow->rounds_rows && can_run(graph, conv);
}

static bool takes_prologue(const Graph *graph, const Convolution *conv) {
  return runs_blocked(graph, conv) && prologue_fits(graph, conv);
}

static ConvSchedule *make(Graph *graph, const Node *node, const Convolution *conv, const Knobs *knobs) {
  (void)node;
  return matrices_make(graph, conv, knobs, "matrices_bf16");
}

/* ---- memory ---- */

static Value *packed_weights(Graph *graph, const MatricesSchedule *s) {
  const Convolution *conv = &s->base.conv;
  int64_t lanes = graph->config->target->lanes, taps = conv->h.kernel * conv->w.kernel, i = 0;
  int64_t count = matrices_weights_bytes(&s->layer) / s->layer.element;
  Tensor *tensor = tensor_new(graph->arena, RNNCC_BF16, 1, &count);
  const float *source = conv->weights->data;
  for (int64_t k = 0; k < conv->groups * conv->kernels; k++)
    for (int64_t c = 0; c < conv->channels; c++)
      for (int64_t tap = 0; tap < taps; tap++)
        tensor_set(tensor, matrices_weight_at(s, k, c, tap, lanes) / s->layer.element, source[i++]);
  Value *packed = graph_constant(graph, conv->weights->name, RNNCC_BF16, 1, &count, tensor->data);
  packed->narrow = conv->weights->narrow;
  return packed;
}

/* Weights, bias or NULL, and what the prologue has. */
static void pack(Graph *graph, Node *node) {
  const MatricesSchedule *schedule = matrices_schedule_of(node);
  const Value *bias = schedule->base.conv.bias;
  graph_pack(graph, node, packed_weights(graph, schedule));
  graph_pack(graph, node,
             bias ? channel_constant(graph, bias->name, bias->data,
                                     schedule->base.conv.groups * schedule->base.conv.kernels,
                                     graph->config->target->lanes)
                  : NULL);
  pack_prologue(graph, node, schedule->base.conv.x_block);
}

/* ---- the call ---- */

static KernelSpec *spec_of(const Graph *graph, const Node *node) {
  const MatricesSchedule *schedule = matrices_schedule_of(node);
  const Convolution *conv = &schedule->base.conv;
  KernelSpec *spec = kernel_spec_new(graph->arena, "conv_matrices_bf16");
  matrices_knobs(spec, schedule);
  kernel_knob(spec, "CHANNEL_TAIL", conv->groups * conv->channels % conv->x_block);
  kernel_knob(spec, "BIAS", conv->bias != NULL);
  kernel_knob(spec, "RESIDUAL", conv->residual != NULL);
  kernel_hook(spec, "epilogue", elementwise_epilogue(graph->arena, node));
  knobs_prologue(spec, graph, node);
  return spec;
}

static void lower_node(Program *program, Node *node) {
  const Convolution *conv = &matrices_schedule_of(node)->base.conv;
  Call *call = kernel_call(program, node, spec_of(program->graph, node));
  operands_blocked(call, program->graph, conv, node->packed[0], node->packed[1]);
  operands_prologue(call, node);
  matrices_operands(call, program->graph, node);
  convolution_flops(call, conv, 1);
  convolution_bytes(call, conv, sizeof(float));
  call_products(call, RNNCC_BF16);
}

const ConvAlgorithm convolution_matrices_bf16 = {.kind = {"matrices_bf16", matrices_bf16_knobs},
                                                 .runs_blocked = runs_blocked,
                                                 .takes_prologue = takes_prologue,
                                                 .suits = matrices_suit,
                                                 .list = matrices_list,
                                                 .fit = matrices_fit,
                                                 .make = make,
                                                 .spec = spec_of,
                                                 .scratch = matrices_scratch,
                                                 .pack = pack,
                                                 .lower = lower_node};
