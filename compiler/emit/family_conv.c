/* SPDX-License-Identifier: MIT */
/* Convolution: each algorithm proposes a schedule, and the one that should take the least time is run. */
#include <string.h>

#include "convolution/convolution.h"
#include "convolution/form.h"
#include "emit/elementwise.h"
#include "graph/shape.h"
#include "layout/blocked.h"
#include "support/diagnostics.h"

static const ConvAlgorithm *const algorithms[] = {
#define ALGORITHM(name) &convolution_##name,
#include "convolution/algorithms.def"
#undef ALGORITHM
};
enum { N_ALGORITHMS = sizeof algorithms / sizeof *algorithms };

/* The sum of the convolution and a tensor of its own shape, which is made at run time: constants are row-major,
 * whatever the layout of y. */
static bool is_residual(const Node *step) {
  if (strcmp(step->op->name, "Add") || step->inputs[1]->data) return false;
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
static bool forced_plain(const Graph *graph) { return form_is_of(graph->conv_form, "plain"); }

static bool runs_blocked(Graph *graph, const Node *node) {
  if (forced_plain(graph)) return false;
  Convolution conv = convolution_of(graph, node);
  for (int i = 0; i < N_ALGORITHMS; i++)
    if (algorithms[i]->runs_blocked && algorithms[i]->runs_blocked(graph, &conv)) return true;
  return false;
}

static bool takes_prologue(Graph *graph, const Node *host, const Node *prologue) {
  (void)prologue;
  if (forced_plain(graph) || !can_be_blocked(host->inputs[0]) || !can_be_blocked(host->outputs[0])) return false;
  Convolution conv = convolution_of(graph, host);
  for (int i = 0; i < N_ALGORITHMS; i++)
    if (algorithms[i]->takes_prologue && algorithms[i]->runs_blocked(graph, &conv) &&
        algorithms[i]->takes_prologue(graph, &conv))
      return true;
  return false;
}

static bool reads_narrow(Graph *graph, const Node *node) {
  (void)graph;
  return node_int(node, "group") == 1;
}

static bool runs(const ConvAlgorithm *algorithm, const Graph *graph, const Node *node, const Convolution *conv) {
  if (!node->blocked) return !algorithm->runs_blocked;
  if (node->n_prologue && !(algorithm->takes_prologue && algorithm->takes_prologue(graph, conv))) return false;
  return algorithm->runs_blocked && algorithm->runs_blocked(graph, conv);
}

static void schedule(Graph *graph, Node *node) {
  Convolution conv = convolution_of(graph, node);
  ConvSchedule *best = NULL;
  for (int i = 0; i < N_ALGORITHMS; i++) {
    ConvSchedule *schedule = runs(algorithms[i], graph, node, &conv) ? algorithms[i]->choose(graph, node, &conv) : NULL;
    if (!schedule) continue;
    schedule->algorithm = algorithms[i];
    if (form_is_of(graph->conv_form, algorithms[i]->name)) schedule->seconds = 0;
    if (!best || schedule->seconds < best->seconds) best = schedule;
  }
  if (!best) bug("n%d: no algorithm runs this convolution", node->id);
  node->schedule = &best->base;
}

static void scratch(Graph *graph, Node *node) {
  const ConvAlgorithm *algorithm = conv_schedule_of(node)->algorithm;
  if (algorithm->scratch) algorithm->scratch(graph, node);
}

static void pack(Graph *graph, Node *node) { conv_schedule_of(node)->algorithm->pack(graph, node); }

static void emit(Emitter *emitter, Node *node) { conv_schedule_of(node)->algorithm->emit(emitter, node); }

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
    .schedule = schedule,
    .scratch = scratch,
    .pack = pack,
    .takes_epilogue = takes_epilogue,
    .takes_prologue = takes_prologue,
    .overwrites = overwrites,
    .emit = emit,
};
