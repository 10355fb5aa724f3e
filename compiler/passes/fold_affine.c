/* SPDX-License-Identifier: MIT */
/*
 * A function y = s*x + t per channel moves into the convolution next to it, if nothing else reads the value between:
 *
 *   after the convolution:   s into the weights by output channel, s*b + t as the bias;
 *   before it:               s into the weights by input channel, and the window's sum of t into the bias, unless the
 *                            padding would have to be t instead of 0.
 *
 * A batch normalisation that cannot move stays, with parameters s, t, 0, 1 and no epsilon. Sums are in double. Where
 * weights can change, nodes compute the same of them in f32: fold_by_nodes.c.
 */
#include "passes.h"
#include "passes/channel_affine.h"
#include "passes/fold_by_nodes.h"
#include "shapes/build.h"
#include "shapes/shape.h"

/* ---- the weights of a convolution ---- */

/* [rows][columns][points]; groups of rows, each with its own columns. */
typedef struct Weights {
  const float *data;
  int64_t rows, columns, points, rows_of_group;
  bool rows_are_outputs;
} Weights;

static bool has_constants(const Node *conv) {
  const Value *bias = node_input(conv, 2);
  return conv->inputs[1]->data && (!bias || bias->data);
}

/* False if the node is not a convolution with constant weights. */
static bool weights_of(const Node *node, Weights *weights) {
  if (!is_op(node, OP_Conv) && !is_op(node, OP_ConvTranspose)) return false;
  if (node->exact || !has_constants(node)) return false;
  const Value *w = node->inputs[1];
  weights->data = w->data;
  weights->rows = dim_value(w->shape[0]);
  weights->columns = dim_value(w->shape[1]);
  weights->points = value_count(w) / (weights->rows * weights->columns);
  weights->rows_of_group = weights->rows / node_int(node, ATTR_group);
  weights->rows_are_outputs = is_op(node, OP_Conv);
  return true;
}

static int64_t output_channel(const Weights *w, int64_t row, int64_t column) {
  return w->rows_are_outputs ? row : row / w->rows_of_group * w->columns + column;
}

static int64_t input_channel(const Weights *w, int64_t row, int64_t column) {
  return w->rows_are_outputs ? row / w->rows_of_group * w->columns + column : row;
}

typedef int64_t ChannelOf(const Weights *weights, int64_t row, int64_t column);

static float *scaled(Graph *graph, const Weights *w, const double *s, ChannelOf *channel_of) {
  float *data = ARENA_ARRAY(graph->arena, float, w->rows * w->columns * w->points);
  int64_t i = 0;
  for (int64_t row = 0; row < w->rows; row++)
    for (int64_t column = 0; column < w->columns; column++)
      for (int64_t point = 0; point < w->points; point++, i++)
        data[i] = (float)((double)w->data[i] * s[channel_of(w, row, column)]);
  return data;
}

/* Adds the output for a constant input of t in each channel, without padding. */
static void add_sums(const Weights *w, const double *t, double *sums) {
  int64_t i = 0;
  for (int64_t row = 0; row < w->rows; row++)
    for (int64_t column = 0; column < w->columns; column++)
      for (int64_t point = 0; point < w->points; point++, i++)
        sums[output_channel(w, row, column)] += (double)w->data[i] * t[input_channel(w, row, column)];
}

/* ---- folding ---- */

static const float *bias_of(const Node *conv) { return node_input(conv, 2) ? conv->inputs[2]->data : NULL; }

static Value *vector(Graph *graph, const char *name, const double *values, int64_t n) {
  float *data = ARENA_ARRAY(graph->arena, float, n);
  for (int64_t i = 0; i < n; i++) data[i] = (float)values[i];
  return graph_constant(graph, name, RNNCC_F32, 1, &n, data);
}

static void set_weights(Graph *graph, Node *conv, Value *x, const float *data, Value *bias) {
  const Value *w = conv->inputs[1];
  int64_t shape[MAX_RANK];
  for (int axis = 0; axis < w->rank; axis++) shape[axis] = dim_value(w->shape[axis]);
  Value *inputs[] = {x, graph_constant(graph, w->name, RNNCC_F32, w->rank, shape, data), bias};
  conv->inputs = arena_copy(graph->arena, inputs, sizeof inputs);
  conv->n_inputs = bias ? 3 : 2;
}

static bool all_zero(const ChannelAffine *affine) {
  for (int64_t c = 0; c < affine->C; c++)
    if (affine->t[c] < 0 || affine->t[c] > 0) return false;
  return true;
}

/* True if the node moved into the convolution that writes x. */
static bool fold_backward(Graph *graph, const UseList *uses, Node *node, const ChannelAffine *affine) {
  Weights weights;
  Node *conv = affine->x->producer;
  if (!conv || uses->single[affine->x->id] != node || !weights_of(conv, &weights)) return false;
  double *bias = ARENA_ARRAY(graph->arena, double, affine->C);
  for (int64_t c = 0; c < affine->C; c++)
    bias[c] = affine->t[c] + (bias_of(conv) ? affine->s[c] * (double)bias_of(conv)[c] : 0);
  bool biased = bias_of(conv) || !all_zero(affine);
  set_weights(graph, conv, conv->inputs[0], scaled(graph, &weights, affine->s, output_channel),
              biased ? vector(graph, node->outputs[0]->name, bias, affine->C) : NULL);
  graph_set_output(conv, 0, node->outputs[0]);
  return true;
}

static bool is_unpadded_convolution(Graph *graph, const Node *node) {
  Window window;
  return is_op(node, OP_Conv) && read_window(graph, node, &window) && is_unpadded(&window);
}

/* True if the node before the convolution moved into it. */
static bool fold_forward(Graph *graph, const UseList *uses, Node *conv) {
  Weights weights;
  ChannelAffine affine;
  const Node *node = conv->n_inputs && conv->inputs[0] ? conv->inputs[0]->producer : NULL;
  if (!node || uses->single[conv->inputs[0]->id] != conv || !weights_of(conv, &weights)) return false;
  if (!channel_affine_of(graph, node, &affine) || !(all_zero(&affine) || is_unpadded_convolution(graph, conv)))
    return false;
  int64_t outputs = dim_value(conv->outputs[0]->shape[1]);
  double *sums = ARENA_ARRAY(graph->arena, double, outputs);
  for (int64_t c = 0; c < outputs; c++) sums[c] = bias_of(conv) ? (double)bias_of(conv)[c] : 0;
  add_sums(&weights, affine.t, sums);
  bool biased = bias_of(conv) || !all_zero(&affine);
  set_weights(graph, conv, affine.x, scaled(graph, &weights, affine.s, input_channel),
              biased ? vector(graph, conv->outputs[0]->name, sums, outputs) : NULL);
  if (uses->single[affine.x->id] == node) uses->single[affine.x->id] = conv;
  return true;
}

/* ---- batch normalisation that stays ---- */

static void set_epsilon_zero(Graph *graph, Node *node) {
  node->n_attributes = 0;
  set_attribute(graph, node, attribute_float(ATTR_epsilon, 0));
}

static double *filled(Graph *graph, int64_t n, double value) {
  double *data = ARENA_ARRAY(graph->arena, double, n);
  for (int64_t i = 0; i < n; i++) data[i] = value;
  return data;
}

static void simplify_parameters(Graph *graph, Node *node, const ChannelAffine *affine) {
  const double *data[] = {affine->s, affine->t, filled(graph, affine->C, 0), filled(graph, affine->C, 1)};
  for (int i = 0; i < 4; i++) node->inputs[1 + i] = vector(graph, node->inputs[1 + i]->name, data[i], affine->C);
  set_epsilon_zero(graph, node);
}

/* needs: infer_shapes; no epilogues yet. keeps: types and shapes; results but for rounding. */
void fold_affine(Graph *graph) {
  UseList uses = graph_uses(graph);
  int kept = 0, n_nodes = graph->n_nodes;
  for (int n = 0; n < n_nodes; n++) {
    ChannelAffine affine;
    Node *node = graph->nodes[n];
    if (fold_by_nodes(graph, &uses, node)) continue;
    bool is_affine = channel_affine_of(graph, node, &affine);
    if (is_affine && fold_backward(graph, &uses, node, &affine)) continue;
    graph->nodes[kept++] = node;
    while (fold_forward(graph, &uses, node)) {
    }
    if (is_affine && is_op(node, OP_BatchNormalization)) simplify_parameters(graph, node, &affine);
  }
  for (int n = n_nodes; n < graph->n_nodes; n++) graph->nodes[kept++] = graph->nodes[n];
  graph->n_nodes = kept;
  sort_nodes(graph);
  graph_remove_dead(graph);
}
