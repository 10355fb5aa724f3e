/* SPDX-License-Identifier: MIT */
/* Convolution: of the candidates of all algorithms (kernels/conv/candidates.h) one is run. */
#include "kernels/conv/candidates.h"
#include "kernels/conv/form.h"
#include "kernels/elementwise/elementwise.h"
#include "layout/blocked.h"
#include "shapes/shape.h"

/* The sum of the convolution and a tensor of its own shape, which is made at run time: constants are row-major,
 * whatever the layout of y. */
static bool is_residual(const Node *step) {
  if (!is_op(step, OP_Add) || step->inputs[1]->data) return false;
  const Value *sum = step->inputs[0], *residual = step->inputs[1];
  bool same = residual->rank == sum->rank;
  for (int axis = 0; same && axis < sum->rank; axis++) same = same_dim(residual->shape[axis], sum->shape[axis]);
  return same;
}

/* The residual comes first, if there is one; what follows is a chain on the element alone. */
static bool takes_epilogue(const Node *host, const Node *step) {
  return elementwise_is_epilogue(step) || (host->n_epilogue == 0 && is_residual(step));
}

/* --conv=plain: no tensor is blocked on behalf of a convolution, which is what seeks that. */
static bool forced_plain(const Graph *graph) {
  return graph->config->conv_schedule && form_algorithm(graph->config->conv_schedule) == &convolution_plain;
}

static bool runs_blocked(Graph *graph, const Node *node) {
  if (forced_plain(graph)) return false;
  Convolution conv = convolution_of(graph, node);
  for (const ConvAlgorithm *const *a = convolution_algorithms; *a; a++)
    if ((*a)->runs_blocked && (*a)->runs_blocked(graph, &conv)) return true;
  return false;
}

static bool takes_prologue(Graph *graph, const Node *host, const Node *prologue) {
  bool alone = is_op(prologue, OP_BatchNormalization) || elementwise_is_epilogue(prologue);
  if (!alone || forced_plain(graph) || !can_be_blocked(host->inputs[0]) || !can_be_blocked(host->outputs[0]))
    return false;
  Convolution conv = convolution_of(graph, host);
  for (const ConvAlgorithm *const *a = convolution_algorithms; *a; a++)
    if ((*a)->takes_prologue && (*a)->runs_blocked(graph, &conv) && (*a)->takes_prologue(graph, &conv)) return true;
  return false;
}

static bool reads_narrow(Graph *graph, const Node *node) {
  (void)graph;
  return node_int(node, ATTR_group) == 1;
}

/* What another algorithm is best for stays in blocks of a vector. */
static unsigned wide(Graph *graph, const Node *node) {
  const ConvSchedule *usual = convolution_choose(graph, convolution_in_blocks(graph, node, false, false));
  return usual->candidate.algorithm->takes_wide ? WIDE_READS | WIDE_WRITES | WIDE_BOTH : 0;
}

static void schedule(Graph *graph, Node *node) { node->schedule = &convolution_choose(graph, node)->base; }

static double seconds(Graph *graph, Node *node) { return convolution_first(graph, node).seconds; }

static double recorded_seconds(Graph *graph, Node *node) { return convolution_recorded_seconds(graph, node); }

static void scratch(Graph *graph, Node *node) {
  const ConvAlgorithm *algorithm = conv_schedule_of(node)->candidate.algorithm;
  if (algorithm->scratch) algorithm->scratch(graph, node);
}

static void pack(Graph *graph, Node *node) { conv_schedule_of(node)->candidate.algorithm->pack(graph, node); }

static void emit(Program *program, Node *node) { conv_schedule_of(node)->candidate.algorithm->emit(program, node); }

static bool pools(const Node *node) {
  const ConvAlgorithm *algorithm = conv_schedule_of(node)->candidate.algorithm;
  return algorithm->pools && algorithm->pools(node);
}

/* Input 0 may be the residual too, but is read around what is written. */
static bool overwrites(const Node *node, int input) {
  const ConvSchedule *chosen = conv_schedule_of(node);
  return input > 0 && chosen->reads_residual_last && node->inputs[input] == chosen->conv.residual;
}

const KernelFamily family_conv = {
    .name = "conv",
    .runs_blocked = runs_blocked,
    .seeks_blocked = true,
    .reads_narrow = reads_narrow,
    .wide = wide,
    .seconds = seconds,
    .recorded_seconds = recorded_seconds,
    .schedule = schedule,
    .scratch = scratch,
    .pack = pack,
    .takes_epilogue = takes_epilogue,
    .takes_prologue = takes_prologue,
    .pools = pools,
    .overwrites = overwrites,
    .emit = emit,
};
