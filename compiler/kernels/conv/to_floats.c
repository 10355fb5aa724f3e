/* SPDX-License-Identifier: MIT */
#include "kernels/conv/to_floats.h"

#include "kernels/elementwise/elementwise.h"
#include "layout/blocked.h"
#include "machine/targets.h"
#include "program/build.h"
#include "support/numbers.h"
#include "template/specialise.h"

/* node->packed. */
enum { WEIGHTS, SUMS, SCALE, BIAS };

static void pack_sums(Graph *graph, Node *node, const IntegerConv *numbers) {
  int64_t padded = round_up(numbers->kernels, graph->config->target->lanes);
  int32_t *sums = ARENA_ARRAY(graph->arena, int32_t, padded);
  for (int64_t k = 0; k < padded; k++) sums[k] = 0;
  for (int64_t i = 0; i < numbers->kernels * numbers->depth; i++) sums[i / numbers->depth] += numbers->weights[i];
  graph_pack(graph, node, graph_constant(graph, "sums", RNNCC_I32, 1, &padded, sums));
}

static Value *of_channels(Graph *graph, const char *name, const float *numbers, int64_t kernels) {
  return channel_constant(graph, name, numbers, kernels, graph->config->target->lanes);
}

static void pack_to_floats(Graph *graph, Node *node, const IntegerConv *numbers) {
  const Value *bias = conv_schedule_of(node)->conv.bias;
  pack_sums(graph, node, numbers);
  graph_pack(graph, node, of_channels(graph, "scale", numbers->scale, numbers->kernels));
  graph_pack(graph, node, bias ? of_channels(graph, bias->name, bias->data, numbers->kernels) : NULL);
}

static const Value *zero_of(const Node *node) { return node_input(node, integer_conv_inputs(node)->x_zero); }

static void knobs_to_floats(KernelSpec *spec, const Graph *graph, const Node *node) {
  const Convolution *conv = &conv_schedule_of(node)->conv;
  kernel_knob(spec, "SIGNED_X", conv->x->dtype == RNNCC_I8);
  kernel_knob(spec, "FLOATS", 1);
  kernel_knob(spec, "BIAS", conv->bias != NULL);
  kernel_knob(spec, "RESIDUAL", conv->residual != NULL);
  kernel_hook(spec, "epilogue", elementwise_epilogue(graph->arena, node));
}

static void operands_to_floats(Call *call, const Graph *graph, const Node *node) {
  const Convolution *conv = &conv_schedule_of(node)->conv;
  operands_blocked(call, graph, conv, node->packed[WEIGHTS], node->packed[BIAS]);
  operand_value(call, "start", node->packed[SUMS], READ);
  operand_value(call, "scale", node->packed[SCALE], READ);
  operand_value(call, "x_scale", node->inputs[integer_conv_inputs(node)->x_scale], READ);
  operand_value(call, "x_point", zero_of(node), READ);
}

/* ---- either form ---- */

void pack_result(Graph *graph, Node *node, const IntegerConv *numbers, StartOfSums start) {
  if (writes_floats(node))
    pack_to_floats(graph, node, numbers);
  else
    pack_requantise(graph, node, numbers, start);
}

void knobs_result(KernelSpec *spec, const Graph *graph, const Node *node) {
  if (writes_floats(node))
    knobs_to_floats(spec, graph, node);
  else
    knobs_requantise(spec, graph, node);
}

void operands_result(Call *call, const Graph *graph, const Node *node) {
  static const char *const of_floats[] = {"bias", "x_scale", "x_point"};
  if (writes_floats(node)) {
    operands_to_floats(call, graph, node);
    operand_value(call, "finish", NULL, READ);
    operand_integer(call, "x_zero", 0);
    return;
  }
  operands_requantise(call, graph, node);
  for (size_t i = 0; i < sizeof of_floats / sizeof *of_floats; i++) operand_value(call, of_floats[i], NULL, READ);
}
