/* SPDX-License-Identifier: MIT */
#include "kernels/conv/prologue.h"

#include "kernels/elementwise/elementwise.h"
#include "layout/blocked.h"
#include "machine/targets.h"
#include "passes/channel_affine.h"
#include "program/build.h"
#include "support/diagnostics.h"
#include "template/specialise.h"

/* node->packed, of which the weights and the bias are the first. */
enum { SCALE = 2, SHIFT };

bool prologue_fits(const Graph *graph, const Convolution *conv) {
  return dim_is_const(conv->h.out) && dim_is_const(conv->w.out) && conv->groups == 1 &&
         conv->channels >= graph->config->target->lanes && axis_is_pointwise(&conv->h) && axis_is_pointwise(&conv->w);
}

void pack_prologue(Graph *graph, Node *node, int64_t block) {
  if (!node->n_prologue) return;
  const Node *norm = node->prologue[0];
  ChannelAffine affine;
  if (!channel_affine_of(graph, norm, &affine)) bug("n%d: a prologue without scale and shift", node->id);
  graph_pack(graph, node, channel_constant_rounded(graph, norm->inputs[1]->name, affine.s, affine.C, block));
  graph_pack(graph, node, channel_constant_rounded(graph, norm->inputs[2]->name, affine.t, affine.C, block));
}

/* The steps after scale and shift; NULL: none. */
static const char *prologue_body(Arena *arena, const Node *node) {
  if (node->n_prologue < 2) return NULL;
  Node chain = {.epilogue = node->prologue + 1, .n_epilogue = node->n_prologue - 1};
  return elementwise_epilogue_body(arena, &chain);
}

void knobs_prologue(KernelSpec *spec, const Graph *graph, const Node *node) {
  kernel_knob(spec, "PROLOGUE", node->n_prologue > 0);
  kernel_hook(spec, "prologue", prologue_body(graph->arena, node));
}

void operands_prologue(Call *call, const Node *node) {
  operand_value(call, "scale", node->n_prologue ? node->packed[SCALE] : NULL, READ);
  operand_value(call, "shift", node->n_prologue ? node->packed[SHIFT] : NULL, READ);
}
