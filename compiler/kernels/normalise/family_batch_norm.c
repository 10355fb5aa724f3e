/* SPDX-License-Identifier: MIT */
/* BatchNormalization that fold_affine left: with statistics that are not constant, or without a convolution. */
#include "ir/family.h"
#include "kernels/elementwise/blocked_elementwise.h"
#include "kernels/elementwise/elementwise.h"
#include "layout/blocked.h"
#include "passes/channel_affine.h"
#include "program/build.h"
#include "support/diagnostics.h"

/* ---- blocked tensors: y = scale x + shift, by constants ---- */

static LayoutSet layouts(Graph *graph, const Node *node) {
  ChannelAffine affine;
  return channel_affine_of(graph, node, &affine) ? LAYOUT_SET_BLOCKED : 0;
}

static void pack(Graph *graph, Node *node) {
  ChannelAffine affine;
  if (!is_blocked(node)) return;
  if (!channel_affine_of(graph, node, &affine)) bug("n%d: no scale and shift", node->id);
  int64_t block = blocked_of(graph, node->outputs[0]).block;
  graph_pack(graph, node, channel_constant_rounded(graph, "scale", affine.s, affine.C, block));
  graph_pack(graph, node, channel_constant_rounded(graph, "shift", affine.t, affine.C, block));
}

static void lower_blocked(Program *program, const Node *node) {
  const Value *operands[] = {node->inputs[0], node->packed[0], node->packed[1]};
  Text op = text_new(program->arena);
  text_add(&op, "vec x = vfma(c, a, b);\n  %s", elementwise_epilogue_body(program->arena, node));
  lower_blocked_elementwise(program, node, op.data, node->outputs[0], 3, operands);
}

/* ---- row-major tensors ---- */

static void lower_plain(Program *program, const Node *node) {
  static const char *const STATISTIC[] = {"x", "scale", "bias", "mean", "variance"};
  Graph *graph = program->graph;
  const Value *x = node->inputs[0];
  int last = x->rank > 1 ? 2 : x->rank;
  const Dim *plane = value_count_dim(graph, x, last, x->rank);
  KernelSpec *spec = kernel_spec(program, "batch_norm");
  kernel_knob(spec, "FLAT", dim_upper(plane) == 1);
  kernel_hook(spec, "epilogue", elementwise_epilogue(program->arena, node));
  Call *call = kernel_call(program, node, spec);
  for (int k = 0; k < 5; k++) operand_value(call, STATISTIC[k], node->inputs[k], READ);
  operand_value(call, "y", node->outputs[0], WRITE);
  operand_float(call, "epsilon", node_float(node, ATTR_epsilon));
  operand_dim(call, "n", value_count_dim(graph, x, 0, 1));
  operand_dim(call, "channels", value_count_dim(graph, x, 1, last));
  operand_dim(call, "plane", plane);
  call_flops_of(call, 2, x);
  call_bytes_of(call, 8, x);
}

static void lower_batch_norm(Program *program, Node *node) {
  if (is_blocked(node))
    lower_blocked(program, node);
  else
    lower_plain(program, node);
}

static bool overwrites(const Node *node, int input) {
  return input == 0 && node->inputs[0]->channel_block == node->outputs[0]->channel_block;
}

const KernelFamily family_batch_norm = {
    .layouts = layouts,
    .takes_constant_data = true,
    .runs_any_plane = true,
    .pack = pack,
    .takes_epilogue = elementwise_follows,
    .overwrites = overwrites,
    .lower = lower_batch_norm,
};
