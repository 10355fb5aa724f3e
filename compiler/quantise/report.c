/* SPDX-License-Identifier: MIT */
#include "quantise/report.h"

#include <math.h>
#include <string.h>

#include "ir/op.h"
#include "support/numbers.h"

enum { BAR = 20, LONGEST_NAME = 32 };

static const char *name_of(const Layers *layers, const Layer *layer) {
  const char *name = printable(layers->graph->arena, layer->node->name);
  int length = (int)strlen(name);
  return length <= LONGEST_NAME ? name : arena_format(layers->graph->arena, "..%s", name + length - (LONGEST_NAME - 2));
}

static double largest_error(const Layers *layers) {
  double largest = 0;
  for (int i = 0; i < layers->n; i++)
    if (isfinite(layers->list[i].alone)) largest = max_double(largest, layers->list[i].alone);
  return largest;
}

static const char *precision_of(const Layer *layer, RecurrentProducts recurrent) {
  if (!layer->int8) return "f32";
  bool products = layer->n_data || (is_recurrent_layer(layer) && recurrent != PRODUCTS_f32);
  return products ? "int8" : "int8 weights";
}

/* The data's range and scale. */
static void add_range(Text *text, const Layers *layers, const Layer *layer) {
  const LayerData *a = layer_input(layers, layer);
  if (!a || !a->usable)
    text_add(text, "  %10s %10s  %9s", "-", "-", "-");
  else
    text_add(text, "  %10.4g %10.4g  %9.3g", a->least, a->most, (double)a->scale);
}

static void add_row(Text *text, const Layers *layers, const Layer *layer, RecurrentProducts recurrent, int width,
                    double largest) {
  text_add(text, "%-*s  %-17s", width, name_of(layers, layer), layer->node->op->name);
  add_range(text, layers, layer);
  if (layer->alone < 0)
    text_add(text, "  %9s", "-");
  else
    text_add(text, "  %9.3g", layer->alone);
  text_add(text, "  %-12s", precision_of(layer, recurrent));
  int bar = layer->alone > 0 && largest > 0 ? (int)ceil(min_double(layer->alone / largest, 1) * BAR) : 0;
  for (int i = 0; i < bar; i++) text_add(text, "#");
  if (layer->why_not) text_add(text, "%s", layer->why_not);
  while (text->length && text->data[text->length - 1] == ' ') text->data[--text->length] = 0;
  text_add(text, "\n");
}

static void add_totals(Text *text, const Layers *layers, const Samples *samples, double error) {
  int chosen = 0;
  for (int i = 0; i < layers->n; i++) chosen += layers->list[i].int8;
  text_add(text, "%d of %d layers in int8", chosen, layers->n);
  if (samples) {
    int compared = samples->n_held_out ? samples->n_held_out : samples->n_runs;
    text_add(text, "; error of the outputs %.3g, %.1f dB, on %d sample%s that %s", error,
             error > 0 ? -20 * log10(error) : INFINITY, compared, compared == 1 ? "" : "s",
             !samples->n_held_out ? "gave the ranges, too"
             : compared == 1      ? "was held out (the fourth of each four)"
                                  : "were held out (the fourth of each four)");
  }
  text_add(text, "\n");
}

Text layer_table(const Layers *layers, RecurrentProducts recurrent, const Samples *samples, double error) {
  Text text = text_new(layers->graph->arena);
  int width = 5;
  for (int i = 0; i < layers->n; i++) width = (int)max_int(width, (int64_t)strlen(name_of(layers, &layers->list[i])));
  text_add(&text, "%-*s  %-17s  %10s %10s  %9s  %9s  precision\n", width, "layer", "op", "least", "most", "scale",
           "alone");
  double largest = largest_error(layers);
  for (int i = 0; i < layers->n; i++) add_row(&text, layers, &layers->list[i], recurrent, width, largest);
  add_totals(&text, layers, samples, error);
  return text;
}
