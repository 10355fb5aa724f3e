/* SPDX-License-Identifier: MIT */
#include "kernels/conv/explain.h"

#include <string.h>

#include "kernels/conv/candidates.h"
#include "kernels/conv/recorded.h"
#include "layout/blocked.h"
#include "layout/layout.h"

enum { SHORT_LISTING = 10, NODES_NAMED = 4 };

typedef struct Explain {
  Text *out;
  Graph *graph;
  bool in_full;
} Explain;

static bool is_convolution(const Node *node) { return node->op->family == &family_conv; }

static RecordKey key_of(Graph *graph, const Node *node) { return convolution_key(graph, node, node->layout); }

/* Was the same work listed for an earlier node? */
static bool is_told(Graph *graph, int n, const char *workload) {
  for (int i = 0; i < n; i++)
    if (is_convolution(graph->nodes[i]) && !strcmp(key_of(graph, graph->nodes[i]).workload, workload)) return true;
  return false;
}

/* All nodes of the work, the first or all by name. */
static void add_nodes(const Explain *e, const char *workload) {
  Graph *graph = e->graph;
  int count = 0;
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->nodes[i];
    if (!is_convolution(node) || strcmp(key_of(graph, node).workload, workload) != 0) continue;
    if (count++ < NODES_NAMED || e->in_full)
      text_add(e->out, "%s %s", count > 1 ? "," : "", node->name ? node->name : "?");
  }
  if (count > NODES_NAMED && !e->in_full) text_add(e->out, " and %d more", count - NODES_NAMED);
  text_add(e->out, "\n");
}

static const char *reason(const Explain *e, const Node *node, const char *schedule) {
  const ScheduleRecord *record = convolution_record(e->graph, node, node->layout, e->graph->config->records);
  if (e->graph->config->conv_schedule) return "--conv says so";
  if (!record || strcmp(record->schedule, schedule) != 0) return "the least predicted time";
  return arena_format(e->graph->arena, "measured, %.1f us", record->median_us);
}

/* Why the node, which runs row-major, does not run on blocked tensors. */
static const char *why_row_major(const Explain *e, const Node *node) {
  Arena *arena = e->graph->arena;
  const char *input = blocked_obstacle(node->inputs[0]), *output = blocked_obstacle(node->outputs[0]);
  if (input) return arena_format(arena, "its input %s", input);
  if (output) return arena_format(arena, "its output %s", output);
  if (possible_layouts(e->graph, node) & LAYOUT_SET_BLOCKED)
    return "blocked tensors would take longer, with the transforms that they need: see --explain=layout";
  Convolution conv = convolution_of(e->graph, node, node->layout);
  const char *obstacle = convolution_direct.obstacle(e->graph, &conv);
  return obstacle ? obstacle : "--conv says so";
}

static void add_line(const Explain *e, char mark, double seconds, const char *schedule) {
  text_add(e->out, "%c %14.2f  %s\n", mark, 1e6 * seconds, schedule);
}

/* The best candidates, or all; and the chosen one, which with --conv or a record may not be among them. */
static void add_candidates(const Explain *e, const ConvCandidates *all, const char *chosen, double chosen_seconds) {
  bool seen = false;
  text_add(e->out, "  %14s  schedule\n", "predicted us");
  for (int i = 0; i < all->count; i++) {
    const char *schedule = convolution_text(e->graph->arena, &all->list[i]);
    bool is_chosen = !strcmp(schedule, chosen);
    if (is_chosen || e->in_full || i < SHORT_LISTING)
      add_line(e, is_chosen ? '*' : ' ', all->list[i].seconds, schedule);
    seen |= is_chosen;
  }
  if (!seen) add_line(e, '*', chosen_seconds, chosen);
  if (!e->in_full && all->count > SHORT_LISTING)
    text_add(e->out, "  %14s  %d in all: -v lists them\n", "...", all->count);
}

static void explain_node(const Explain *e, const Node *node, const RecordKey *key) {
  Convolution conv = convolution_of(e->graph, node, node->layout);
  ConvCandidates all = convolution_candidates(e->graph, node, node->layout);
  const ConvSchedule *schedule = convolution_choose(e->graph, node, node->layout);
  const char *chosen = schedule_print(e->graph->arena, schedule->base.kind, &schedule->base.knobs);
  text_add(e->out, "%s: %.2f MFLOP:", key->workload, 2e-6 * convolution_macs(&conv));
  add_nodes(e, key->workload);
  add_candidates(e, &all, chosen, schedule->seconds);
  text_add(e->out, "  chosen: %s: %s\n", chosen, reason(e, node, chosen));
  if (schedule->few) text_add(e->out, "  few pixels: %s\n", schedule->few);
  if (!is_blocked(node)) text_add(e->out, "  row-major: %s\n", why_row_major(e, node));
}

Text explain_convolutions(Graph *graph, bool in_full) {
  Text text = text_new(graph->arena);
  Explain explain = {.out = &text, .graph = graph, .in_full = in_full};
  for (int n = 0; n < graph->n_nodes; n++) {
    if (!is_convolution(graph->nodes[n])) continue;
    RecordKey key = key_of(graph, graph->nodes[n]);
    if (!is_told(graph, n, key.workload)) explain_node(&explain, graph->nodes[n], &key);
  }
  if (!text.length) text_add(&text, "the model has no convolution\n");
  return text;
}
