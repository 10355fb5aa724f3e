/* SPDX-License-Identifier: MIT */
/*
 * Convolutions of quantised tensors by matrices in registers (templates/conv_matrices_int8.c), with
 * results of direct_int8.
 */
#include "kernels/conv/matrices_plan.h"
#include "kernels/conv/to_floats.h"
#include "machine/targets.h"
#include "program/build.h"
#include "template/specialise.h"

static ConvSchedule *make(Graph *graph, const Node *node, const Convolution *conv, const Knobs *knobs) {
  (void)node;
  return matrices_make(graph, conv, knobs, "matrices_int8");
}

static void pack_weights(const Graph *graph, const MatricesSchedule *s, const int8_t *source, int8_t *packed) {
  const Convolution *conv = &s->base.conv;
  int64_t lanes = graph->config->target->lanes;
  for (int64_t k = 0; k < conv->groups * conv->kernels; k++)
    for (int64_t c = 0; c < conv->channels; c++)
      for (int64_t tap = 0; tap < conv->h.kernel * conv->w.kernel; tap++)
        packed[matrices_weight_at(s, k, c, tap, lanes)] = *source++;
}

static void pack(Graph *graph, Node *node) {
  const MatricesSchedule *schedule = matrices_schedule_of(node);
  IntegerConv numbers = integer_conv_of(graph->arena, node);
  int64_t bytes = matrices_weights_bytes(&schedule->layer);
  int8_t *weights = ARENA_ARRAY(graph->arena, int8_t, bytes);
  pack_weights(graph, schedule, numbers.weights, weights);
  const char *name = schedule->base.conv.weights->name;
  graph_pack(graph, node, graph_constant(graph, name, RNNCC_I8, 1, &bytes, weights));
  pack_result(graph, node, &numbers, START_OF_BYTES);
}

static KernelSpec *spec_of(const Graph *graph, const Node *node) {
  KernelSpec *spec = kernel_spec_new(graph->arena, "conv_matrices_int8");
  matrices_knobs(spec, matrices_schedule_of(node));
  knobs_result(spec, graph, node);
  return spec;
}

static void lower_node(Program *program, Node *node) {
  const Convolution *conv = &matrices_schedule_of(node)->base.conv;
  Call *call = kernel_call(program, node, spec_of(program->graph, node));
  operands_result(call, program->graph, node);
  matrices_operands(call, program->graph, node);
  convolution_flops(call, conv, 1);
  convolution_bytes(call, conv, 1);
  call_products(call, RNNCC_I8);
}

const ConvAlgorithm convolution_matrices_int8 = {.kind = {"matrices_int8", matrices_int8_knobs},
                                                 .integer = true,
                                                 .to_floats = true,
                                                 .runs_blocked = matrices_run,
                                                 .suits = matrices_suit,
                                                 .list = matrices_list,
                                                 .fit = matrices_fit,
                                                 .make = make,
                                                 .spec = spec_of,
                                                 .scratch = matrices_scratch,
                                                 .pack = pack,
                                                 .lower = lower_node};
