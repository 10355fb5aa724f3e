/* SPDX-License-Identifier: MIT */
/* Convolution: runs one of the candidates of all algorithms (kernels/conv/candidates.h). */
#include "kernels/conv/candidates.h"
#include "kernels/conv/requantise.h"
#include "kernels/elementwise/elementwise.h"
#include "layout/blocked.h"
#include "shapes/shape.h"

/* The sum of the convolution and a tensor of its shape. Not a constant: constants are row-major in every layout of y.
 */
static bool is_residual(const Node *step) {
  return is_op(step, OP_Add) && !step->inputs[1]->data && shapes_agree(step->inputs[1], step->inputs[0]);
}

/* First the residual, if any, then element-wise steps. */
static bool takes_epilogue(const Node *host, const Node *step) {
  if (is_integer_conv(host) && !writes_floats(host)) return requantise_takes(host, step);
  return elementwise_is_epilogue(step) || (host->n_epilogue == 0 && is_residual(step));
}

/* With --conv=plain no convolution seeks blocked tensors, so none are blocked. */
static bool forced_plain(const Graph *graph) { return convolution_forced(graph) == &convolution_plain; }

static const NodeLayout row_major = {LAYOUT_ROW_MAJOR, LAYOUT_ROW_MAJOR}, blocked = {LAYOUT_BLOCKED, LAYOUT_BLOCKED};

static bool runs_blocked(Graph *graph, const Node *node) {
  if (is_integer_conv(node)) return true;
  if (forced_plain(graph)) return false;
  Convolution conv = convolution_of(graph, node, blocked);
  for (const ConvAlgorithm *const *a = convolution_algorithms; *a; a++) {
    bool runs = !(*a)->integer && (*a)->runs_blocked && (*a)->runs_blocked(graph, &conv);
    if (runs && convolution_suits(*a, graph, node, &conv)) return true;
  }
  return false;
}

static bool takes_prologue(Graph *graph, const Node *host, const Node *prologue) {
  if (is_integer_conv(host)) return false;
  bool alone = is_op(prologue, OP_BatchNormalization) || elementwise_is_epilogue(prologue);
  if (!alone || forced_plain(graph) || !can_be_blocked(host->inputs[0]) || !can_be_blocked(host->outputs[0]))
    return false;
  Convolution conv = convolution_of(graph, host, row_major);
  for (const ConvAlgorithm *const *a = convolution_algorithms; *a; a++)
    if ((*a)->takes_prologue && (*a)->runs_blocked(graph, &conv) && (*a)->takes_prologue(graph, &conv)) return true;
  return false;
}

/* Wide blocks only if the best algorithm takes them. */
static bool takes_wide(Graph *graph, const Node *node) {
  Layout reads = node->layout.reads == LAYOUT_NARROW ? LAYOUT_NARROW : LAYOUT_BLOCKED;
  return algorithm_of(convolution_choose(graph, node, (NodeLayout){reads, LAYOUT_BLOCKED})->base.kind)->takes_wide;
}

static LayoutSet layouts(Graph *graph, const Node *node) {
  if (!runs_blocked(graph, node)) return 0;
  LayoutSet set = LAYOUT_SET_BLOCKED | LAYOUT_BIT(LAYOUT_NARROW, LAYOUT_BLOCKED) | LAYOUT_SET_WIDE;
  if (node_int(node, ATTR_group) != 1) set &= ~LAYOUT_SET_NARROW;
  if (!takes_wide(graph, node)) set &= ~LAYOUT_SET_WIDE;
  return set;
}

static void schedule(Graph *graph, Node *node) {
  node->schedule = &convolution_choose(graph, node, node->layout)->base;
}

static double seconds(Graph *graph, const Node *node, NodeLayout layout) {
  return convolution_first(graph, node, layout).seconds;
}

static void scratch(Graph *graph, Node *node) {
  const ConvAlgorithm *algorithm = node_algorithm(node);
  if (algorithm->scratch) algorithm->scratch(graph, node);
}

static void pack(Graph *graph, Node *node) { node_algorithm(node)->pack(graph, node); }

static void lower_node(Program *program, Node *node) { node_algorithm(node)->lower(program, node); }

static bool pools(const Node *node) {
  const ConvAlgorithm *algorithm = node_algorithm(node);
  return algorithm->pools && algorithm->pools(node);
}

/* Only the residual. Input 0, even if it is the residual too, is also read at other pixels. */
static bool overwrites(const Node *node, int input) {
  const ConvSchedule *chosen = conv_schedule_of(node);
  return input > 0 && chosen->reads_residual_last && node->inputs[input] == chosen->conv.residual;
}

const KernelFamily family_conv = {
    .layouts = layouts,
    .takes_constant_data = true,
    .runs_bytes = true,
    .needs_blocks = is_integer_conv,
    .runs_any_plane = true,
    .seeks_blocked = true,
    .seconds = seconds,
    .recorded_seconds = convolution_recorded_seconds,
    .schedule = schedule,
    .scratch = scratch,
    .pack = pack,
    .takes_epilogue = takes_epilogue,
    .takes_prologue = takes_prologue,
    .pools = pools,
    .overwrites = overwrites,
    .lower = lower_node,
};
