/* SPDX-License-Identifier: MIT */
/*
 * Batch normalisation by constants is y = s*x + t per channel, with s = scale / sqrt(variance + epsilon) and
 * t = bias - s*mean. A convolution before it, read by nobody else, takes s into its weights and s*b + t as its bias.
 * Otherwise the node stays, with s, t, 0, 1 as its parameters and no epsilon. Sums are in double.
 */
#include <math.h>
#include <string.h>

#include "graph/simplify.h"
#include "ir/op.h"

typedef struct Affine {
  int64_t C;
  double *s, *t;
} Affine;

static const float *floats(const Node *node, int input) { return node->inputs[input]->data; }

static Affine affine_of(Graph *graph, const Node *node) {
  Affine affine = {.C = value_count(node->inputs[1])};
  affine.s = ARENA_ARRAY(graph->arena, double, affine.C);
  affine.t = ARENA_ARRAY(graph->arena, double, affine.C);
  double epsilon = node_float(node, "epsilon");
  for (int64_t c = 0; c < affine.C; c++) {
    affine.s[c] = (double)floats(node, 1)[c] / sqrt((double)floats(node, 4)[c] + epsilon);
    affine.t[c] = (double)floats(node, 2)[c] - affine.s[c] * (double)floats(node, 3)[c];
  }
  return affine;
}

static Value *constant_floats(Graph *graph, const Value *like, const float *data) {
  int64_t shape[MAX_RANK];
  for (int axis = 0; axis < like->rank; axis++) shape[axis] = dim_value(like->shape[axis]);
  return graph_constant(graph, like->name, RNNCC_F32, like->rank, shape, data);
}

static float *rounded(Graph *graph, const double *values, int64_t n) {
  float *data = ARENA_ARRAY(graph->arena, float, n);
  for (int64_t i = 0; i < n; i++) data[i] = (float)values[i];
  return data;
}

static float *filled(Graph *graph, int64_t n, float value) {
  float *data = ARENA_ARRAY(graph->arena, float, n);
  for (int64_t i = 0; i < n; i++) data[i] = value;
  return data;
}

static bool parameters_constant(const Node *node) {
  for (int i = 1; i < 5; i++)
    if (!node->inputs[i]->data) return false;
  return true;
}

static Value *bias_of(const Node *conv) { return conv->n_inputs > 2 ? conv->inputs[2] : NULL; }

/* The convolution that can take the node in, or NULL. */
static Node *host_of(const UseList *uses, const Node *node) {
  Node *conv = node->inputs[0]->producer;
  if (!conv || strcmp(conv->op->name, "Conv") || uses->single[node->inputs[0]->id] != node) return NULL;
  if (!conv->inputs[1]->data || (bias_of(conv) && !bias_of(conv)->data)) return NULL;
  return conv;
}

static float *scaled_weights(Graph *graph, const Value *weights, const Affine *affine) {
  int64_t count = value_count(weights), each = count / affine->C;
  float *data = ARENA_ARRAY(graph->arena, float, count);
  for (int64_t i = 0; i < count; i++)
    data[i] = (float)((double)((const float *)weights->data)[i] * affine->s[i / each]);
  return data;
}

static void fold_into(Graph *graph, Node *conv, Node *node, const Affine *affine) {
  const float *bias = bias_of(conv) ? bias_of(conv)->data : NULL;
  float *shifted = ARENA_ARRAY(graph->arena, float, affine->C);
  for (int64_t c = 0; c < affine->C; c++)
    shifted[c] = (float)(affine->t[c] + (bias ? affine->s[c] * (double)bias[c] : 0));
  Value *inputs[] = {conv->inputs[0],
                     constant_floats(graph, conv->inputs[1], scaled_weights(graph, conv->inputs[1], affine)),
                     constant_floats(graph, node->inputs[2], shifted)};
  conv->inputs = arena_copy(graph->arena, inputs, sizeof inputs);
  conv->n_inputs = 3;
  graph_set_output(conv, 0, node->outputs[0]);
}

static void set_epsilon_zero(Graph *graph, Node *node) {
  Attribute *zero = ARENA_NEW(graph->arena, Attribute);
  *zero = (Attribute){.name = "epsilon", .kind = ATTRIBUTE_FLOAT, .where = node->where};
  node->attributes = zero;
  node->n_attributes = 1;
}

static void simplify_parameters(Graph *graph, Node *node, const Affine *affine) {
  const float *data[] = {rounded(graph, affine->s, affine->C), rounded(graph, affine->t, affine->C),
                         filled(graph, affine->C, 0), filled(graph, affine->C, 1)};
  for (int i = 0; i < 4; i++) node->inputs[1 + i] = constant_floats(graph, node->inputs[1 + i], data[i]);
  set_epsilon_zero(graph, node);
}

/* needs: infer_shapes; no epilogues yet. keeps: types and shapes. */
void fold_batch_norm(Graph *graph) {
  UseList uses = graph_uses(graph);
  int kept = 0;
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n];
    graph->nodes[kept++] = node;
    if (strcmp(node->op->name, "BatchNormalization") || !parameters_constant(node)) continue;
    Affine affine = affine_of(graph, node);
    Node *conv = host_of(&uses, node);
    if (conv) {
      fold_into(graph, conv, node, &affine);
      kept--;
    } else {
      simplify_parameters(graph, node, &affine);
    }
  }
  graph->n_nodes = kept;
  graph_renumber(graph);
}
