/* SPDX-License-Identifier: MIT */
/* Window functions and the mel filter bank, as constants: their operands are known. */
#include <math.h>

#include "expand/expansion.h"
#include "shapes/shape.h"
#include "support/diagnostics.h"

/* The input's one integer, which the shape rule has checked. */
static int64_t integer_operand(const Formula *f, const Node *node, int input) {
  const Dim **elements = known_elements(f->graph, node->inputs[input]);
  if (!elements) bug("%s: input %d was known", node->op->name, input);
  return dim_value(elements[0]);
}

/* a0 - a1 cos(t) + a2 cos(2t), t from 0 to 2 pi. A periodic window omits the last point, which equals the first. */
static Value *window_of_cosines(const Formula *f, const Node *node, double a0, double a1, double a2) {
  int64_t size = integer_operand(f, node, 0), steps = node_int(node, ATTR_periodic) ? size : size - 1;
  float *window = ARENA_ARRAY(f->graph->arena, float, size);
  for (int64_t i = 0; i < size; i++) {
    double t = steps ? 2 * M_PI * (double)i / (double)steps : 0;
    window[i] = (float)(a0 - a1 * cos(t) + a2 * cos(2 * t));
  }
  return floats(f, 1, &size, window);
}

void expand_hann(const Formula *f, const Node *node, Value **results) {
  results[0] = window_of_cosines(f, node, 0.5, 0.5, 0);
}
void expand_hamming(const Formula *f, const Node *node, Value **results) {
  results[0] = window_of_cosines(f, node, 25.0 / 46, 21.0 / 46, 0);
}
void expand_blackman(const Formula *f, const Node *node, Value **results) {
  results[0] = window_of_cosines(f, node, 0.42, 0.5, 0.08);
}

/* ---- mel ---- */

static double mel_of_hertz(double hertz) { return 2595 * log10(1 + hertz / 700); }
static double hertz_of_mel(double mel) { return 700 * (pow(10, mel / 2595) - 1); }

typedef struct Filters {
  int64_t n, bins;
  float *weights; /* [bins, n] */
} Filters;

static void set_weight(const Filters *filters, int64_t bin, int64_t filter, double weight) {
  if (bin >= 0 && bin < filters->bins) filters->weights[bin * filters->n + filter] = (float)weight;
}

/* A triangle over the bins [lower, higher), of height 1 at `centre`. */
static void set_triangle(const Filters *filters, int64_t filter, int64_t lower, int64_t centre, int64_t higher) {
  set_weight(filters, centre, filter, 1);
  for (int64_t bin = lower; bin < centre; bin++)
    set_weight(filters, bin, filter, (double)(bin - lower) / (double)(centre - lower));
  for (int64_t bin = centre; bin < higher; bin++)
    set_weight(filters, bin, filter, (double)(higher - bin) / (double)(higher - centre));
}

/* The spectrum's bin at edge `i` of the filters, which are evenly spaced in mel from `low` on; clamped near the
 * spectrum to bound the time. */
static int64_t edge_bin(double low, double step, int64_t i, int64_t length, int64_t rate) {
  double bin = floor((double)(length + 1) * hertz_of_mel(low + step * (double)i) / (double)rate);
  return (int64_t)fmin(fmax(bin, 0), 4.0 * (double)length);
}

void expand_mel_weights(const Formula *f, const Node *node, Value **results) {
  int64_t length = integer_operand(f, node, 1), rate = integer_operand(f, node, 2);
  Filters filters = {.n = integer_operand(f, node, 0), .bins = length / 2 + 1};
  filters.weights = ARENA_ARRAY(f->graph->arena, float, filters.bins *filters.n);
  double low = mel_of_hertz((double)*(const float *)node->inputs[3]->data);
  double step = (mel_of_hertz((double)*(const float *)node->inputs[4]->data) - low) / (double)(filters.n + 2);
  for (int64_t i = 0; i < filters.n; i++)
    set_triangle(&filters, i, edge_bin(low, step, i, length, rate), edge_bin(low, step, i + 1, length, rate),
                 edge_bin(low, step, i + 2, length, rate));
  results[0] = floats(f, 2, (const int64_t[]){filters.bins, filters.n}, filters.weights);
}
