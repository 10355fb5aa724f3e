/* SPDX-License-Identifier: MIT */
/*
 * Transposed convolution over one to three spatial axes; one axis is a plane of one row. On row-major tensors extents
 * may be dims.
 */
#include "ir/family.h"
#include "kernels/conv_transposed/transposed.h"
#include "kernels/elementwise/elementwise.h"
#include "machine/machine.h"
#include "machine/targets.h"
#include "program/build.h"
#include "support/numbers.h"

static KernelSpec *plain_spec(Program *program, const Node *node, const Convolution *conv) {
  KernelSpec *spec = kernel_spec(program, "conv_transposed");
  kernel_window(spec, 3, &conv->w, &conv->h, &conv->d);
  kernel_knob(spec, "BIAS", conv->bias != NULL);
  kernel_hook(spec, "epilogue", elementwise_epilogue(program->arena, node));
  return spec;
}

static void lower_plain(Program *program, const Node *node) {
  Convolution conv = transposed_of(program->graph, node);
  Call *call = kernel_call(program, node, plain_spec(program, node, &conv));
  operand_value(call, "x", conv.x, READ);
  operand_value(call, "w", conv.weights, READ);
  operand_value(call, "bias", conv.bias, READ);
  operand_value(call, "y", conv.y, WRITE);
  operand_dim(call, "n", conv.x->shape[0]);
  operand_integer(call, "groups", conv.groups);
  operand_integer(call, "channels", conv.channels);
  operand_integer(call, "kernels", conv.kernels);
  operand_dim(call, "in_d", conv.d.in);
  operand_dim(call, "in_h", conv.h.in);
  operand_dim(call, "in_w", conv.w.in);
  operand_dim(call, "out_d", conv.d.out);
  operand_dim(call, "out_h", conv.h.out);
  operand_dim(call, "out_w", conv.w.out);
  operand_dim(call, "front", conv.d.pad_begin);
  operand_dim(call, "top", conv.h.pad_begin);
  operand_dim(call, "left", conv.w.pad_begin);
  double floats = (double)value_max_count(conv.x) + (double)value_max_count(conv.y) + (double)value_count(conv.weights);
  call_cost(call, 2 * transposed_macs(&conv), 4 * floats);
}

/* Share of the machine's peak, measured on two cores with AVX-512: of the blocked kernel, and of the row-major one,
 * which uses no vectors. */
static const double BLOCKED_SHARE = 0.65, PLAIN_SHARE = 0.04;

static double seconds(Graph *graph, const Node *node, NodeLayout layout) {
  Convolution conv = transposed_of(graph, node);
  double flops = 2 * transposed_macs(&conv),
         peak = 1e9 * graph->config->machine->gflops * graph->config->machine->cores;
  if (layout.writes == LAYOUT_ROW_MAJOR) return flops / (PLAIN_SHARE * peak);
  int64_t lanes = graph->config->target->lanes, vectors = ceil_div(conv.kernels, lanes);
  return flops * (double)(vectors * lanes) / (double)conv.kernels / (BLOCKED_SHARE * peak);
}

static LayoutSet layouts(Graph *graph, const Node *node) {
  return transposed_runs_blocked(graph, node) ? LAYOUT_SET_BLOCKED : 0;
}

static void schedule(Graph *graph, Node *node) {
  if (is_blocked(node)) transposed_schedule_blocked(graph, node);
}

static void pack(Graph *graph, Node *node) {
  if (is_blocked(node)) transposed_pack_blocked(graph, node);
}

static void lower_node(Program *program, Node *node) {
  if (is_blocked(node))
    transposed_lower_blocked(program, node);
  else
    lower_plain(program, node);
}

const KernelFamily family_conv_transposed = {
    .name = "conv_transposed",
    .layouts = layouts,
    .seeks_blocked = true,
    .seconds = seconds,
    .schedule = schedule,
    .pack = pack,
    .takes_epilogue = elementwise_follows,
    .lower = lower_node,
};
