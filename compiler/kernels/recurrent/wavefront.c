/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/wavefront.h"

#include "support/numbers.h"

static const double WORTH_IT = 0.9; /* of layer by layer: a wavefront must be clearly faster */

static const int chunks[] = {4, 5, 8, 10, 16, 20, 40};
_Static_assert(sizeof chunks / sizeof *chunks < MAX_CHUNKS, "one is layer by layer");

/* The working set of a worker between two chunks of a layer: that layer's weights, or all layers' if there are more
 * layers than workers. */
static double revisited_bytes(const Machine *m, const LayerCase *layers, int count, int index) {
  double bytes = 0;
  for (int i = 0; i < count; i++)
    if (i == index || count > m->cores) bytes += weight_bytes(&layers[i]);
  return bytes;
}

/* A chunk is a short sequence on one core; weights that other layers evicted are read once. */
static double chunk_ns(const Machine *m, const LayerCase *layers, int count, int index, int chunk) {
  static const RecurrentVariant alone = {.input = INPUT_AHEAD, .workers = 1, .batch_parts = 1};
  Machine core = *m;
  LayerCase piece = layers[index];
  core.cores = 1;
  piece.steps = chunk;
  piece.from_zero = false;
  double lost = 1 - kept_in_l2(m, revisited_bytes(m, layers, count, index));
  return recurrent_cost(&core, &piece, &alone).total + lost * weight_bytes(&piece) / m->l3_gbps;
}

/* At the begin and the end not all layers run. */
static double wavefront_ns(const Machine *m, const LayerCase *layers, int count, int chunk) {
  int crews = m->cores < count ? m->cores : count;
  int64_t pieces = ceil_div(layers->steps, chunk), idle = (int64_t)crews * (crews - 1);
  int64_t turns = (count * pieces + idle + crews - 1) / crews;
  double longest = 0;
  for (int i = 0; i < count; i++) {
    double time = chunk_ns(m, layers, count, i, chunk);
    if (time > longest) longest = time;
  }
  return (double)turns * (longest + meeting_ns(m, crews));
}

StackCandidates stack_candidates(const Machine *machine, const LayerCase *layers, int count, double layer_by_layer_ns) {
  StackCandidates all = {.count = 1, .list = {{0, layer_by_layer_ns}}};
  double least = WORTH_IT * layer_by_layer_ns;
  for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
    if (2 * chunks[i] > layers->steps || machine->cores < 2) continue;
    double time = wavefront_ns(machine, layers, count, chunks[i]);
    if (time < least) least = time, all.chosen = all.count;
    all.list[all.count++] = (StackCandidate){chunks[i], time};
  }
  return all;
}

const LayerCase *stack_cases(Graph *graph, const MmDag *dag, const Stack *stack, double *layer_by_layer_ns) {
  LayerCase *cases = ARENA_ARRAY(graph->arena, LayerCase, stack->n_layers);
  *layer_by_layer_ns = 0;
  for (int i = 0; i < stack->n_layers; i++) {
    int at = 0;
    while (dag->layers[at].node != stack->layers[i]) at++;
    cases[i] = layer_case(&dag->layers[at], graph->config->target);
    Candidates candidates = layer_candidates(graph, dag, &dag->layers[at]);
    *layer_by_layer_ns += candidates.list[candidates.chosen].cost.total;
  }
  return cases;
}
