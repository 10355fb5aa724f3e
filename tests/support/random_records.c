/* SPDX-License-Identifier: MIT */
/*
 * Schedule records of a model's convolutions, each with a random schedule, as if it had been measured to be the best:
 *
 *     random_records MODEL RECORDS TARGET THREADS SEED [exact]
 *
 * exact: as rnncc --no-winograd would run them.
 * Half of the schedules are candidates, half have knobs that no search would try. For each, a line `WORKLOAD FORM` goes
 * to stdout.
 */
#include <stdio.h>
#include <stdlib.h>

#include "driver/load_model.h"
#include "driver/steps.h"
#include "kernels/conv/candidates.h"
#include "kernels/conv/recorded.h"
#include "load/settings.h"
#include "machine/targets.h"
#include "support/files.h"

/* As rnncc --layout-search=greedy --target=TARGET --threads=THREADS would. */
static Graph *laid_out(Arena *arena, const char *model, const char *target, int threads, bool exact) {
  ModelSettings settings = settings_new(arena, 0);
  Graph *graph = load_model(arena, model, &settings);
  Config *config = ARENA_NEW(arena, Config);
  config->target = target_find(target);
  Machine machine = machine_of(config->target, false, threads);
  config->machine = arena_copy(arena, &machine, sizeof machine);
  config->layout_search =
      LAYOUT_SEARCH_GREEDY; /* a search by times might choose other layouts than the recorded ones */
  config->no_winograd = exact;
  graph->config = config;
  Options options = {.verb = VERB_COMPILE};
  run_steps(compilation_of_graph(&options, graph, STEP_verify), LAST_LAYOUT_STEP);
  return graph;
}

enum {
#define ALGORITHM(name, knobs) INDEX_##name,
#include "kernels/conv/algorithms.def"
  ALGORITHMS
};

static int below(int n) { return (int)(random() % n); }

/* Each algorithm that can run is equally likely, however many candidates it has. */
static ConvCandidate random_candidate(Graph *graph, const Node *node) {
  ConvCandidates all = convolution_candidates(graph, node, node->layout), list = {0};
  list.list = ARENA_ARRAY(graph->arena, ConvCandidate, all.count);
  while (list.count == 0) {
    const ConvAlgorithm *algorithm = convolution_algorithms[below(ALGORITHMS)];
    for (int i = 0; i < all.count; i++)
      if (all.list[i].algorithm == algorithm) list.list[list.count++] = all.list[i];
  }
  return list.list[below(list.count)];
}

/* Sets random knobs of all magnitudes that are valid. */
static void randomise(Graph *graph, const Node *node, ConvCandidate *candidate) {
  Convolution conv = convolution_of(graph, node, node->layout);
  for (int i = 0; candidate->algorithm->kind.knobs[i].name; i++) candidate->knobs.value[i] = below(1 << below(8));
  candidate->algorithm->fit(graph, node, &conv, &candidate->knobs);
}

static void record_any(Graph *graph, const Node *node, const char *path) {
  ConvCandidate candidate = random_candidate(graph, node);
  if (below(2)) randomise(graph, node, &candidate);
  ConvSchedule *schedule = convolution_schedule(graph, node, node->layout, &candidate);
  ScheduleRecord record = {.key = convolution_key(graph, node, node->layout),
                           .kernels = convolution_kernels(graph, node, schedule),
                           .schedule = convolution_text(graph->arena, &candidate),
                           .median_us = 1e6 * candidate.seconds};
  records_append(graph->arena, path, &record);
  printf("%s %s\n", record.key.workload, record.schedule);
}

int main(int argc, char **argv) {
  Arena *arena = arena_new();
  if (argc != 6 && argc != 7) return EXIT_INVALID;
  srandom((unsigned)strtol(argv[5], NULL, 10));
  Graph *graph = laid_out(arena, argv[1], argv[3], (int)strtol(argv[4], NULL, 10), argc == 7);
  for (int i = 0; i < graph->n_nodes; i++)
    if (graph->nodes[i]->op->family == &family_conv) record_any(graph, graph->nodes[i], argv[2]);
  arena_free(arena);
  return EXIT_OK;
}
