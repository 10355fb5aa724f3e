/* SPDX-License-Identifier: MIT */
#include "driver/pipeline.h"

#include <stdio.h>
#include <string.h>

#include "passes.h"
#include "support/clock.h"
#include "support/interrupt.h"

const char *const pass_names[] = {
#define GRAPH_PASS(name) #name,
#include "passes.def"
#undef GRAPH_PASS
    "plan_recurrent", "choose_schedules", "fuse_pools", "pack_weights", "lower", "plan_memory", "place_weights", NULL};

static const Options *options;
static double started;
static int n_told; /* of the graph's remarks */

void pipeline_start(const Options *given) {
  options = given;
  interrupt_catch();
}

void pipeline_before(const char *step) {
  interrupt_check();
  if (options->verbose) fprintf(stderr, "rnncc: %s\n", step);
  started = seconds_now();
}

static void dump(Graph *graph) {
  Text text = text_new(graph->arena);
  graph_dump(&text, graph);
  fwrite(text.data, 1, text.length, stderr);
}

static void tell_remarks(const Graph *graph) {
  for (; n_told < graph->n_remarks; n_told++) fprintf(stderr, "rnncc:   %s\n", graph->remarks[n_told]);
}

void pipeline_after(const char *step, Graph *graph) {
  if (options->time_passes) fprintf(stderr, "%9.3f ms  %s\n", 1e3 * (seconds_now() - started), step);
  if (!graph) return;
  if (options->verbose) tell_remarks(graph);
  if (options->verify_each) graph_each(graph, verify);
  if (options->dump_after && !strcmp(options->dump_after, step)) dump(graph);
}
