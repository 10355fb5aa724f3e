/* SPDX-License-Identifier: MIT */
/*
 * Families that have KernelFamily.seconds estimate their own time; all others are bound by the bytes that they move.
 * The shares of bandwidth come from profiles of the benchmark networks, blocked and row-major, on a two-core AVX-512
 * machine.
 */
#include "layout/layout_costs.h"

#include <math.h>

#include "ir/family.h"
#include "layout/blocked.h"
#include "layout/layout.h"
#include "machine/machine.h"
#include "support/numbers.h"

/* Shares of the cache's bandwidth that kernels reach whose data another core may have written. */
static const double moved = 0.5, copied = 0.25;
static const double usable = 0.7; /* share of a cache's bytes */
/* A core's cycles a byte, read or written, to transform tiles from one layout to another: slower than a cache. */
static const double turning_cycles = 0.42;
/* Start of a kernel on all cores, and the barrier after it. */
static const double launch_seconds = 0.5e-6;

static double bandwidth_seconds(const Graph *graph, double bytes) {
  const Machine *m = graph->config->machine;
  double gbps = bytes <= usable * (double)m->l2_bytes * m->cores ? m->l2_gbps
                : bytes <= usable * (double)m->l3_bytes          ? m->l3_gbps
                                                                 : m->dram_gbps;
  return bytes / (gbps * 1e9 * m->cores);
}

double moving_seconds(const Graph *graph, double bytes) { return bandwidth_seconds(graph, bytes) / moved; }
double copying_seconds(const Graph *graph, double bytes) { return bandwidth_seconds(graph, bytes) / copied; }

/* Rounds channels up to whole blocks. */
static double bytes_in_blocks(const Value *value, int block) {
  double elements = (double)dtype_size(value->dtype);
  for (int axis = 0; axis < value->rank; axis++) elements *= (double)dim_optimum(value->shape[axis]);
  if (!block) return elements;
  int64_t channels = dim_value(value->shape[1]);
  int64_t whole = round_up(channels, block);
  return elements * (double)whole / (double)channels;
}

/* Constants are packed by the family. */
static double input_bytes(const Graph *graph, const Node *node, NodeLayout layout, int input) {
  const Value *value = node->inputs[input];
  bool laid_out = !value->data && can_be_blocked(value);
  return bytes_in_blocks(value, laid_out ? input_block(graph, node, layout, input) : 0);
}

static double moved_bytes(const Graph *graph, const Node *node, NodeLayout layout) {
  double bytes = 0;
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i]) bytes += input_bytes(graph, node, layout, i);
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i]) bytes += bytes_in_blocks(node->outputs[i], output_block(graph, node, layout, i));
  return bytes;
}

NodeSeconds layout_node_seconds(Graph *graph, const Node *node, NodeLayout layout) {
  const KernelFamily *family = node->op->family;
  double estimated =
      family->seconds ? family->seconds(graph, node, layout) : moving_seconds(graph, moved_bytes(graph, node, layout));
  double recorded = family->recorded_seconds ? family->recorded_seconds(graph, node, layout) : 0;
  return (NodeSeconds){estimated + launch_seconds, recorded > 0 ? recorded + launch_seconds : 0};
}

static double turning_seconds(const Graph *graph, double bytes) {
  double turning = bytes * turning_cycles / (1e9 * graph->config->machine->ghz * graph->config->machine->cores);
  return fmax(turning, copying_seconds(graph, bytes));
}

double layout_transform_seconds(const Graph *graph, const Value *value, int from, int to) {
  if (from == to || same_bytes(value, from ? from : to)) return 0;
  return turning_seconds(graph, bytes_in_blocks(value, from) + bytes_in_blocks(value, to)) + launch_seconds;
}

double transposing_seconds(const Graph *graph, const Node *node, NodeLayout layout) {
  double bytes = moved_bytes(graph, node, layout);
  return layout.writes == LAYOUT_ROW_MAJOR ? turning_seconds(graph, bytes) : copying_seconds(graph, bytes);
}
