/* SPDX-License-Identifier: MIT */
#include "kernels/conv/candidates.h"

#include <stdlib.h>

#include "kernels/conv/recorded.h"
#include "layout/blocked.h"
#include "support/diagnostics.h"
#include "support/list.h"

/* Cost-model error outside its calibrated range. */
static const double MARGIN = 1.1;

static double rank(const ConvCandidate *candidate) { return candidate->seconds * (candidate->usual ? 1 : MARGIN); }

void candidates_add(ConvCandidates *all, const Knobs *knobs, double seconds, bool usual) {
  ConvCandidate candidate = {
      .algorithm = all->algorithm, .knobs = *knobs, .seconds = seconds, .usual = usual, .order = all->count};
  if (all->only_best && all->count) {
    if (rank(&candidate) < rank(all->list)) *all->list = candidate;
    return;
  }
  *LIST_ADD(all->arena, all->list, all->count, all->capacity) = candidate;
}

static int by_rank(const void *a, const void *b) {
  const ConvCandidate *x = a, *y = b;
  if (rank(x) != rank(y)) return rank(x) < rank(y) ? -1 : 1;
  return x->order - y->order;
}

/* The residual has y's block. */
static bool is_laid_out_wide(const Graph *graph, const Convolution *conv) {
  return conv->x_block == wide_block(graph) || conv->y_block == wide_block(graph);
}

bool convolution_suits(const ConvAlgorithm *algorithm, const Graph *graph, const Node *node, const Convolution *conv) {
  return !algorithm->suits || algorithm->suits(graph, node, conv);
}

static bool runs(const ConvAlgorithm *algorithm, const Graph *graph, const Node *node, const Convolution *conv) {
  if (algorithm->integer != conv->integer || (conv->to_floats && !algorithm->to_floats)) return false;
  if (!conv->y_block) return !algorithm->runs_blocked;
  if (node->n_prologue && !(algorithm->takes_prologue && algorithm->takes_prologue(graph, conv))) return false;
  if (!algorithm->runs_blocked || !algorithm->runs_blocked(graph, conv)) return false;
  if (!algorithm->takes_wide && is_laid_out_wide(graph, conv)) return false;
  return convolution_suits(algorithm, graph, node, conv);
}

/* Candidates of one algorithm; NULL: of all. */
static ConvCandidates list(Graph *graph, const Node *node, const Convolution *conv, const ConvAlgorithm *only,
                           bool only_best) {
  ConvCandidates all = {.arena = graph->arena, .only_best = only_best};
  for (const ConvAlgorithm *const *algorithm = convolution_algorithms; *algorithm; algorithm++) {
    if ((only && *algorithm != only) || !runs(*algorithm, graph, node, conv)) continue;
    all.algorithm = *algorithm;
    (*algorithm)->list(graph, node, conv, &all);
  }
  return all;
}

ConvCandidates convolution_candidates(Graph *graph, const Node *node, NodeLayout layout) {
  Convolution conv = convolution_of(graph, node, layout);
  ConvCandidates all = list(graph, node, &conv, NULL, false);
  qsort(all.list, (size_t)all.count, sizeof *all.list, by_rank);
  return all;
}

ConvCandidate convolution_first(Graph *graph, const Node *node, NodeLayout layout) {
  Convolution conv = convolution_of(graph, node, layout);
  ConvCandidates best = list(graph, node, &conv, NULL, true);
  if (!best.count) bug("n%d: no algorithm runs this convolution", node->id);
  return *best.list;
}

/* ---- schedules ---- */

ConvSchedule *convolution_schedule(Graph *graph, const Node *node, NodeLayout layout, const ConvCandidate *candidate) {
  const ConvAlgorithm *algorithm = candidate->algorithm;
  Convolution conv = convolution_of(graph, node, layout);
  ConvSchedule *schedule = algorithm->make(graph, node, &conv, &candidate->knobs);
  schedule->conv = conv;
  schedule->base.kind = &algorithm->kind;
  schedule->base.knobs = candidate->knobs;
  return schedule;
}

/* "expected oc=4, found oc=9", for the first knob that does not fit; NULL: all fit. */
static const char *misfit(Arena *arena, const ConvAlgorithm *algorithm, const Knobs *given, const Knobs *fit) {
  for (int i = 0; algorithm->kind.knobs[i].name; i++)
    if (given->value[i] != fit->value[i])
      return arena_format(arena, "expected %s=%d, found %s=%d", algorithm->kind.knobs[i].name, fit->value[i],
                          algorithm->kind.knobs[i].name, given->value[i]);
  return NULL;
}

ConvSchedule *convolution_of_text(Graph *graph, const Node *node, NodeLayout layout, const char *text,
                                  const char **why) {
  Convolution conv = convolution_of(graph, node, layout);
  ParsedSchedule parsed;
  const char *wrong = schedule_parse(convolution_kinds, text, &parsed);
  if (wrong) {
    *why = arena_format(graph->arena, "expected an algorithm and its KEY=N, found `%s`", wrong);
    return NULL;
  }
  if (!schedule_is_whole(&parsed)) {
    *why = "it does not name every knob";
    return NULL;
  }
  ConvCandidate candidate = {.algorithm = algorithm_of(parsed.kind), .knobs = parsed.knobs};
  if (!runs(candidate.algorithm, graph, node, &conv)) {
    *why = arena_format(graph->arena, "%s does not run this convolution", candidate.algorithm->kind.name);
    return NULL;
  }
  Knobs fit = candidate.knobs;
  candidate.algorithm->fit(graph, node, &conv, &fit);
  *why = misfit(graph->arena, candidate.algorithm, &candidate.knobs, &fit);
  return *why ? NULL : convolution_schedule(graph, node, layout, &candidate);
}

/* What --conv says; false: it is not given. */
static bool parse_forced(const Graph *graph, ParsedSchedule *parsed) {
  const char *text = graph->config->conv_schedule;
  if (text && schedule_parse(convolution_kinds, text, parsed)) bug("--conv was not checked");
  return text;
}

const ConvAlgorithm *convolution_forced(const Graph *graph) {
  ParsedSchedule parsed;
  return parse_forced(graph, &parsed) ? algorithm_of(parsed.kind) : NULL;
}

/* The algorithm of --conv, if it is given and runs the node: with the knobs that it names, moved to fit, and others of
 * its best candidate. */
static ConvSchedule *forced(Graph *graph, const Node *node, NodeLayout layout) {
  ParsedSchedule parsed;
  if (!parse_forced(graph, &parsed)) return NULL;
  Convolution conv = convolution_of(graph, node, layout);
  ConvCandidates best = list(graph, node, &conv, algorithm_of(parsed.kind), true);
  if (!best.count) return NULL;
  schedule_set_named(&parsed, &best.list->knobs);
  best.list->algorithm->fit(graph, node, &conv, &best.list->knobs);
  return convolution_schedule(graph, node, layout, best.list);
}

double convolution_recorded_seconds(Graph *graph, const Node *node, NodeLayout layout) {
  ConvSchedule *unused;
  const ScheduleRecord *record = convolution_record_to_use(graph, node, layout, &unused);
  return record ? 1e-6 * record->median_us : 0;
}

ConvSchedule *convolution_choose(Graph *graph, const Node *node, NodeLayout layout) {
  ConvSchedule *schedule;
  if (graph->config->conv_schedule)
    schedule = forced(graph, node, layout);
  else
    convolution_record_to_use(graph, node, layout, &schedule);
  if (schedule) return schedule;
  ConvCandidate first = convolution_first(graph, node, layout);
  return convolution_schedule(graph, node, layout, &first);
}
