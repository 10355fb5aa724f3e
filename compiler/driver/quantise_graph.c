/* SPDX-License-Identifier: MIT */
#include "driver/quantise_graph.h"

#include "driver/output.h"
#include "ir/bodies.h"
#include "ir/op.h"
#include "passes.h"

/* Called in a process of its own: the graph is that process's. */
static void build_graph(const void *context, Graph *graph, const char *module) {
  Options options = *(const Options *)context;
  options.verb = VERB_COMPILE;
  options.output = module;
  run_steps(compilation_of_graph(&options, graph, STEP_load + 1), STEP_build);
}

/* Constants are numbers and batch normalisations are part of convolutions; every node still has a form in a model. */
static void prepare(Graph *graph) {
  static void (*const passes[])(Graph *) = {infer_shapes, fold_constants, drop_identities, fold_affine, fold_constants};
  for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) graph_each(graph, passes[i]);
  stop_on_errors();
}

void quantise_model(Compilation *c) {
  const Options *options = c->options;
  run_steps(c, STEP_load);
  Graph *graph = c->branches->graph;
  prepare(graph);
  QuantiseOptions asked = options->quantise;
  asked.output = output_path(options, c->arena);
  asked.threads = options->threads;
  const QuantiseBuild build = {.context = options, .graph = build_graph};
  quantise(&asked, graph, &build);
}
