/* SPDX-License-Identifier: MIT */
#include "quantise/quantise.h"

#include <stdio.h>

#include "load/load.h"
#include "quantise/equalise.h"
#include "quantise/report.h"
#include "quantise/sensitivity.h"
#include "quantise/watch.h"
#include "support/files.h"

static void tell(const char *what) { fprintf(stderr, "rnncc: %s\n", what); }

/* An activation with infinities or NaNs, such as a mask, has no range. */
static void drop_unusable(Layers *layers) {
  for (int i = 0; i < layers->n; i++) {
    Layer *layer = &layers->list[i];
    for (int k = 0; k < layer->n_data + N_RANGES; k++) {
      int place = k < layer->n_data ? layer->data[k] : layer->ranges[k - layer->n_data];
      if (place >= 0 && !layers->activations[place].usable) layer->why_not = "its data are not finite on the samples";
    }
    if (layer->why_not) layer->int8 = false;
  }
}

static int count_possible(const Layers *layers) {
  int count = 0;
  for (int i = 0; i < layers->n; i++) count += !layers->list[i].why_not;
  return count;
}

static double choose_by_samples(Layers *layers, const Samples *samples, const QuantiseOptions *options,
                                const QuantiseBuild *build) {
  const char *folder = temporary_directory(layers->graph->arena);
  tell("the network runs on the samples, for the ranges");
  watch_activations(layers, samples, options, build, folder);
  choose_ranges(layers, options->ranges, options->percentile);
  drop_unusable(layers);
  tell("each layer runs in int8, alone, and then all of them");
  double error = choose_layers(layers, samples, options, build, folder);
  temporary_remove(folder);
  return error;
}

void quantise(const QuantiseOptions *options, Graph *graph, const QuantiseBuild *build) {
  Samples samples = {0};
  bool with_data = options->n_data > 0;
  double error = 0;
  if (with_data) samples = samples_read(graph, options->n_data, options->data);
  if (options->equalise) equalise(graph);
  Layers layers = layers_find(graph, with_data, options->rewrite.recurrent == PRODUCTS_int8_static);
  if (!count_possible(&layers))
    fatal_at(LOCATION_FILE(graph->file), EXIT_UNSUPPORTED,
             "no layer can be in int8: expected a Conv, MatMul, Gemm, LSTM, GRU or RNN of f32 with constant weights");
  if (with_data) error = choose_by_samples(&layers, &samples, options, build);
  Text table = layer_table(&layers, options->rewrite.recurrent, with_data ? &samples : NULL, error);
  Text picture = options->plot ? layer_picture(&layers) : table;
  rewrite_chosen(&layers, options->rewrite);
  save_model(graph->arena, graph, options->output);
  if (options->plot) file_write(graph->arena, options->plot, picture.data, picture.length);
  fwrite(table.data, 1, table.length, stdout);
  if (options->max_error >= 0 && error > options->max_error)
    fatal_at(LOCATION_FILE(graph->file), EXIT_LIMIT,
             "the error %.3g of the outputs is above --max-error=%g without any layer in int8", error,
             options->max_error);
}
