/* SPDX-License-Identifier: MIT */
#include "quantise/equalise.h"

#include <math.h>
#include <string.h>

#include "ir/op.h"
#include "support/numbers.h"

enum { MOST_ROUNDS = 20 };

/* A scale beyond this would only amplify rounding. */
static const double MOST_SCALE = 1e3, SETTLED = 1e-3;

/* The weights of a Conv or Gemm as [outputs][inputs][points], in memory with these strides. */
typedef struct Matrix {
  Node *node;
  float *data;
  int64_t outputs, inputs, points, group_outputs; /* inputs: of a group, which has so many outputs */
  int64_t output_stride, input_stride;
} Matrix;

static bool own_bias(const Node *node, int64_t outputs) {
  const Value *bias = node_input(node, 2);
  return !bias || (bias->data && bias->dtype == RNNCC_F32 && bias->rank == 1 && value_count(bias) == outputs);
}

static bool matrix_of(Node *node, Matrix *m) {
  bool conv = is_op(node, OP_Conv), gemm = is_op(node, OP_Gemm);
  const Value *w = conv || gemm ? node->inputs[1] : NULL;
  if (!w || !w->data || w->dtype != RNNCC_F32 || !node->inputs[0] || node->inputs[0]->data) return false;
  if (gemm && (node_float(node, ATTR_alpha) != 1 || node_float(node, ATTR_beta) != 1 || node_int(node, ATTR_transA)))
    return false;
  int64_t a = dim_value(w->shape[0]), b = dim_value(w->shape[1]);
  bool outputs_first = conv || node_int(node, ATTR_transB);
  *m = (Matrix){.node = node, .outputs = outputs_first ? a : b, .inputs = outputs_first ? b : a};
  m->points = value_count(w) / (a * b);
  m->output_stride = outputs_first ? b * m->points : 1;
  m->input_stride = outputs_first ? m->points : b;
  m->group_outputs = m->outputs / (conv ? node_int(node, ATTR_group) : 1);
  m->data = (float *)(uintptr_t)w->data;
  return own_bias(node, m->outputs);
}

/* Copies of what will be changed: constants may have other readers. */
static void own_constants(Graph *graph, Matrix *m) {
  Node *node = m->node;
  node->inputs = arena_copy(graph->arena, (void *)node->inputs, (size_t)node->n_inputs * sizeof *node->inputs);
  for (int i = 1; i < node->n_inputs && i < 3; i++) {
    const Value *from = node->inputs[i];
    if (!from) continue;
    int64_t shape[MAX_RANK];
    for (int axis = 0; axis < from->rank; axis++) shape[axis] = dim_value(from->shape[axis]);
    const void *data = arena_copy(graph->arena, from->data, (size_t)value_count(from) * sizeof(float));
    node->inputs[i] = graph_constant(graph, from->name, RNNCC_F32, from->rank, shape, data);
  }
  m->data = (float *)(uintptr_t)node->inputs[1]->data;
}

/* The input channel of the whole tensor that a group's is. */
static int64_t whole_channel(const Matrix *m, int64_t output, int64_t input) {
  return output / m->group_outputs * m->inputs + input;
}

static void output_ranges(const Matrix *m, double *ranges) {
  for (int64_t o = 0; o < m->outputs; o++) {
    ranges[o] = 0;
    for (int64_t i = 0; i < m->inputs; i++)
      for (int64_t p = 0; p < m->points; p++)
        ranges[o] = max_double(ranges[o], fabs((double)m->data[o * m->output_stride + i * m->input_stride + p]));
  }
}

static void input_ranges(const Matrix *m, int64_t channels, double *ranges) {
  for (int64_t c = 0; c < channels; c++) ranges[c] = 0;
  for (int64_t o = 0; o < m->outputs; o++)
    for (int64_t i = 0; i < m->inputs; i++)
      for (int64_t p = 0; p < m->points; p++) {
        double *range = &ranges[whole_channel(m, o, i)];
        *range = max_double(*range, fabs((double)m->data[o * m->output_stride + i * m->input_stride + p]));
      }
}

static void scale_outputs(const Matrix *m, const double *scales) {
  const Value *bias = node_input(m->node, 2);
  for (int64_t o = 0; o < m->outputs; o++) {
    if (bias) ((float *)(uintptr_t)bias->data)[o] /= (float)scales[o];
    for (int64_t i = 0; i < m->inputs; i++)
      for (int64_t p = 0; p < m->points; p++)
        m->data[o * m->output_stride + i * m->input_stride + p] /= (float)scales[o];
  }
}

static void scale_inputs(const Matrix *m, const double *scales) {
  for (int64_t o = 0; o < m->outputs; o++)
    for (int64_t i = 0; i < m->inputs; i++)
      for (int64_t p = 0; p < m->points; p++)
        m->data[o * m->output_stride + i * m->input_stride + p] *= (float)scales[whole_channel(m, o, i)];
}

/* ---- pairs ---- */

typedef struct Pair {
  Matrix first, second;
} Pair;

/* The layer whose output the node reads, if nothing else does, through Relu, pooling and views of single pixels. */
static Node *layer_before(const UseList *uses, const Node *node) {
  const Value *value = node->inputs[0];
  Node *reader = (Node *)(uintptr_t)node;
  while (value->producer && uses->single[value->id] == reader) {
    reader = value->producer;
    bool passes = is_op(reader, OP_Relu) || is_op(reader, OP_MaxPool) || is_op(reader, OP_GlobalAveragePool) ||
                  is_op(reader, OP_AveragePool);
    if (!passes) return reader;
    value = reader->inputs[0];
  }
  return NULL;
}

static bool find_pair(const UseList *uses, Node *node, Pair *pair) {
  Node *before = matrix_of(node, &pair->second) ? layer_before(uses, node) : NULL;
  return before && matrix_of(before, &pair->first) && is_op(before, OP_Conv) == is_op(node, OP_Conv);
}

/* The largest change of a scale. */
static double equalise_pair(Arena *arena, const Pair *pair) {
  int64_t channels = pair->first.outputs;
  double *out = ARENA_ARRAY(arena, double, channels), *in = ARENA_ARRAY(arena, double, channels), change = 0;
  output_ranges(&pair->first, out);
  input_ranges(&pair->second, channels, in);
  for (int64_t c = 0; c < channels; c++) {
    double scale = out[c] > 0 && in[c] > 0 ? sqrt(out[c] / in[c]) : 1;
    out[c] = max_double(1 / MOST_SCALE, min_double(scale, MOST_SCALE));
    change = max_double(change, fabs(log(out[c])));
  }
  scale_outputs(&pair->first, out);
  scale_inputs(&pair->second, out);
  return change;
}

/* The constants' copies, before anything is scaled: a layer may be of two pairs. */
static int find_pairs(Graph *graph, Pair *pairs) {
  UseList uses = graph_uses(graph);
  int n = 0;
  for (int i = 0; i < graph->n_nodes; i++) n += find_pair(&uses, graph->nodes[i], &pairs[n]);
  for (int i = 0; i < n; i++) own_constants(graph, &pairs[i].first), own_constants(graph, &pairs[i].second);
  for (int i = 0; i < n; i++)
    matrix_of(pairs[i].first.node, &pairs[i].first), matrix_of(pairs[i].second.node, &pairs[i].second);
  return n;
}

void equalise(Graph *graph) {
  graph_renumber(graph);
  Pair *pairs = ARENA_ARRAY(graph->arena, Pair, graph->n_nodes + 1);
  int n = find_pairs(graph, pairs);
  double change = INFINITY;
  for (int round = 0; round < MOST_ROUNDS && change > SETTLED; round++) {
    change = 0;
    for (int i = 0; i < n; i++) change = max_double(change, equalise_pair(graph->arena, &pairs[i]));
  }
  graph_renumber(graph);
}
