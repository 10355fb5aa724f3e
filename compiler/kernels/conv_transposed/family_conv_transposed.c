/* SPDX-License-Identifier: MIT */
/*
 * Transposed convolution over one to three spatial axes; one axis is a plane of one row. On row-major tensors weights
 * need not be constant.
 */
#include "ir/family.h"
#include "kernels/conv_transposed/blocked.h"
#include "kernels/elementwise/elementwise.h"
#include "machine/machine.h"
#include "program/build.h"

static LayoutSet layouts(Graph *graph, const Node *node) {
  Convolution conv = transposed_of(graph, node, (NodeLayout){LAYOUT_BLOCKED, LAYOUT_BLOCKED});
  return transposed_layouts(graph, &conv);
}

static void schedule(Graph *graph, Node *node) {
  if (is_blocked(node)) transposed_schedule(graph, node);
}

static void pack(Graph *graph, Node *node) {
  if (is_blocked(node)) transposed_pack(graph, node);
}

/* ---- row-major tensors ---- */

static KernelSpec *plain_spec(Program *program, const Node *node, const Convolution *conv) {
  KernelSpec *spec = kernel_spec(program, "conv_transposed");
  kernel_window(spec, 3, &conv->w, &conv->h, &conv->d);
  kernel_knob(spec, "BIAS", conv->bias != NULL);
  kernel_hook(spec, "epilogue", elementwise_epilogue(program->arena, node));
  return spec;
}

static void lower_plain(Program *program, const Node *node) {
  Convolution conv = transposed_of(program->graph, node, node->layout);
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
  transposed_cost(call, &conv, conv.weights);
}

/* ---- both ---- */

/* Multiply-adds at the dims' optimum: the whole window for every input. */
static double transposed_macs(const Convolution *conv) {
  double inputs = (double)dim_optimum(conv->x->shape[0]) * (double)dim_optimum(conv->d.in) *
                  (double)dim_optimum(conv->h.in) * (double)dim_optimum(conv->w.in) *
                  (double)(conv->groups * conv->channels);
  return inputs * (double)(conv->kernels * conv->d.kernel * conv->h.kernel * conv->w.kernel);
}

/* Of the machine's peak, measured on two cores with AVX-512: the row-major kernel uses no vectors. */
static const double PLAIN_SHARE = 0.04;

static double seconds(Graph *graph, const Node *node, NodeLayout layout) {
  Convolution conv = transposed_of(graph, node, layout);
  if (layout.writes != LAYOUT_ROW_MAJOR) return transposed_seconds(graph, &conv);
  return 2 * transposed_macs(&conv) /
         (PLAIN_SHARE * 1e9 * graph->config->machine->gflops * graph->config->machine->cores);
}

static void lower_node(Program *program, Node *node) {
  if (is_blocked(node))
    transposed_lower(program, node);
  else
    lower_plain(program, node);
}

const KernelFamily family_conv_transposed = {
    .layouts = layouts,
    .takes_constant_data = true,
    .runs_any_plane = true,
    .seeks_blocked = true,
    .seconds = seconds,
    .schedule = schedule,
    .pack = pack,
    .takes_epilogue = elementwise_follows,
    .lower = lower_node,
};
