/* SPDX-License-Identifier: MIT */
/* A bar for each layer, on a logarithmic axis: the error of the outputs with that layer alone in int8. */
#include <math.h>

#include "ir/op.h"
#include "quantise/report.h"
#include "support/numbers.h"

enum { LEFT = 300, WIDTH = 900, ROW = 18, TOP = 40, DECADES = 6 };

static const char style[] = "<style>text { font: 12px sans-serif; fill: #222; } .end { text-anchor: end; } "
                            ".int8 { fill: #4477aa; } .f32 { fill: #cc6677; } line { stroke: #ddd; }</style>\n";

static void add_escaped(Text *text, const char *string) {
  for (const char *c = string; *c; c++) {
    if (*c == '<' || *c == '&' || *c == '>')
      text_add(text, "&#%d;", *c);
    else
      text_bytes(text, c, 1);
  }
}

/* The decade that the axis ends at. */
static int highest_decade(const Layers *layers) {
  double largest = 1e-6;
  for (int i = 0; i < layers->n; i++)
    if (isfinite(layers->list[i].alone)) largest = max_double(largest, layers->list[i].alone);
  return (int)ceil(log10(largest));
}

static double place_of(double error, int highest) {
  double decades = min_double(DECADES, max_double(0, log10(max_double(error, 1e-300)) - highest + DECADES));
  return LEFT + decades / DECADES * (WIDTH - LEFT - 20);
}

static void add_axis(Text *text, int n, int highest) {
  for (int i = 0; i <= DECADES; i++) {
    double x = place_of(pow(10, highest - DECADES + i), highest);
    text_add(text, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/><text x=\"%.1f\" y=\"%d\">1e%d</text>\n", x, x,
             TOP - 4, TOP + n * ROW, x, TOP - 8, highest - DECADES + i);
  }
}

static void add_bar(Text *text, const Layers *layers, int i, int highest) {
  const Layer *layer = &layers->list[i];
  int y = TOP + i * ROW;
  text_add(text, "<text class=\"end\" x=\"%d\" y=\"%d\">", LEFT - 8, y + ROW - 5);
  add_escaped(text, printable(layers->graph->arena, layer->node->name));
  text_add(text, " (%s)</text>\n", layer->node->op->name);
  if (layer->alone > 0)
    text_add(text, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>\n",
             layer->int8 ? "int8" : "f32", LEFT, y + 3, max_double(1, place_of(layer->alone, highest) - LEFT), ROW - 6);
}

Text layer_picture(const Layers *layers) {
  Text text = text_new(layers->graph->arena);
  int highest = highest_decade(layers);
  text_add(&text, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\">\n%s", WIDTH,
           TOP + layers->n * ROW + 10, style);
  text_add(&text,
           "<text x=\"8\" y=\"16\">Error of the outputs with a layer alone in int8; blue: in int8 in the end, red: f32"
           "</text>\n");
  add_axis(&text, layers->n, highest);
  for (int i = 0; i < layers->n; i++) add_bar(&text, layers, i, highest);
  text_add(&text, "</svg>\n");
  return text;
}
