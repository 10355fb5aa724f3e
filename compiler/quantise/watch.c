/* SPDX-License-Identifier: MIT */
#include "quantise/watch.h"

#include "quantise/apart.h"
#include "quantise/module.h"
#include "quantise/moments.h"
#include "quantise/rewrite.h"

typedef struct Watch {
  Layers *layers;
  const Samples *samples;
  const QuantiseOptions *options;
  const QuantiseBuild *build;
  const char *folder;
  Seen *seen;   /* by activation, shared */
  AllRows rows; /* outputs behind these */
} Watch;

static bool gives_ranges(const Watch *watch, const Run *run) { return !run->held_out || !watch->samples->n_held_out; }

static void look(const Watch *watch, const Module *module, bool count) {
  const Layers *layers = watch->layers;
  const rnncc_tensor *rows = module->outputs + module->info->n_outputs - watch->rows.n;
  const rnncc_tensor *watched = rows - layers->n_activations;
  for (int i = 0; i < layers->n_activations; i++) {
    if (count)
      seen_counts(&watch->seen[i], watched[i].data, tensor_elements(&watched[i]));
    else
      seen_extremes(&watch->seen[i], &layers->activations[i], watched[i].data, watched[i].shape);
  }
  for (int i = 0; !count && i < watch->rows.n; i++) moments_add(&watch->rows.list[i], &rows[i], watch->samples->n_runs);
}

/* States pass through the runs that are held out. */
static void watch_body(void *argument) {
  Watch *watch = argument;
  Arena *arena = watch->layers->graph->arena;
  const char *path = arena_format(arena, "%s/watched.so", watch->folder);
  rewrite_watched(watch->layers);
  if (watch->options->feedback) watch->rows = moments_watch(watch->layers);
  watch->build->graph(watch->build->context, watch->layers->graph, path);
  Module module = module_open(arena, path, watch->options->threads);
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < watch->samples->n_runs; i++) {
      const Run *run = &watch->samples->runs[i];
      if (!gives_ranges(watch, run) && !module.info->n_states) continue;
      module_run(&module, run, NULL);
      if (gives_ranges(watch, run)) look(watch, &module, round);
    }
}

/* Sums become means. */
static void finish(LayerData *a, const Seen *seen) {
  a->seen = *seen;
  for (int64_t i = 0; seen->means && seen->count && i < a->n_channels; i++)
    a->seen.means[i] /= (double)seen->count / (double)a->n_channels;
}

void watch_activations(Layers *layers, const Samples *samples, const QuantiseOptions *options,
                       const QuantiseBuild *build, const char *folder) {
  Watch watch = {.layers = layers, .samples = samples, .options = options, .build = build, .folder = folder};
  watch.seen = shared_memory((size_t)layers->n_activations * sizeof *watch.seen);
  for (int i = 0; i < layers->n_activations; i++) {
    const LayerData *a = &layers->activations[i];
    watch.seen[i].bins = shared_memory(HISTOGRAM_BINS * sizeof *watch.seen[i].bins);
    if (a->channel_axis >= 0) watch.seen[i].means = shared_memory((size_t)a->n_channels * sizeof(double));
  }
  if (options->feedback) moments_prepare(layers);
  run_apart(layers->graph->arena, layers->graph->file, folder, watch_body, &watch);
  if (options->feedback) moments_finish(layers);
  for (int i = 0; i < layers->n_activations; i++) finish(&layers->activations[i], &watch.seen[i]);
}
