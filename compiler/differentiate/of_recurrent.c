/* SPDX-License-Identifier: MIT */
/* Gradients of recurrent layers: the layer becomes one that keeps what it computed, which one more operator reads. */
#include "differentiate/rule.h"
#include "ir/op.h"
#include "shapes/shape.h"

typedef struct LayerOps {
  OpKind training, gradient;
  int inputs, results; /* of the layer in inference */
  int saved;           /* further results: S or none */
} LayerOps;

static LayerOps ops_of(const Node *node) {
  switch (node->op->kind) {
  case OP_RNN:
    return (LayerOps){OP_RNNTraining, OP_RNNGradient, 6, 2, 0};
  case OP_GRU:
    return (LayerOps){OP_GRUTraining, OP_GRUGradient, 6, 2, 1};
  case OP_LSTM:
    return (LayerOps){OP_LSTMTraining, OP_LSTMGradient, 8, 3, 1};
  default:
    bug("%s is no recurrent layer", node->op->name);
  }
}

static void keep_attributes(Node *node) {
  int kept = 0;
  for (int i = 0; i < node->n_attributes; i++)
    if (op_has_attribute(node->op, node->attributes[i].id)) node->attributes[kept++] = node->attributes[i];
  node->n_attributes = kept;
}

/* The same node, with all results and what it saves. False after an error. */
static bool become_training(Graph *graph, Node *node, const LayerOps *ops) {
  Value **outputs = ARENA_ARRAY(graph->arena, Value *, ops->results + ops->saved);
  for (int i = 0; i < node->n_outputs; i++) outputs[i] = node->outputs[i];
  node->op = op_info(ops->training);
  node->attributes = arena_copy(graph->arena, node->attributes, (size_t)node->n_attributes * sizeof *node->attributes);
  keep_attributes(node);
  node->outputs = outputs;
  node->n_outputs = ops->results + ops->saved;
  for (int i = 0; i < node->n_outputs; i++)
    if (!outputs[i]) graph_set_output(node, i, graph_value(graph, node->name, node->where));
  return infer_node(graph, node);
}

/* The layer's inputs that have gradients, in the order of the operator's outputs. */
static const int given_by[] = {0, 1, 2, 3, 5, 6, 7};

const char *of_recurrent(const Gradient *g) {
  Graph *graph = g->f->graph;
  Node *node = g->node;
  LayerOps ops = ops_of(node);
  int n_wanted = node->n_inputs, n_results = node->n_outputs, n_given = ops.inputs - 1;
  if (node_word(node, ATTR_precision) != PRODUCTS_f32) return "a `precision` other than f32";
  if (!become_training(graph, node, &ops)) return NULL;
  int own = ops.inputs + 1 + ops.saved;
  Value **inputs = ARENA_ARRAY(graph->arena, Value *, own + ops.results);
  for (int i = 0; i < node->n_inputs; i++) inputs[i] = node->inputs[i];
  inputs[ops.inputs] = node->outputs[0];
  if (ops.saved) inputs[ops.inputs + 1] = node->outputs[ops.results];
  for (int i = 0; i < n_results; i++) inputs[own + i] = g->dy[i];
  Node *back = build_op(g->f, ops.gradient, own + ops.results, inputs, n_given, node->n_attributes, node->attributes);
  for (int k = 0; k < n_given; k++) {
    int input = given_by[k];
    if (input < n_wanted && g->wanted[input])
      g->dx[input] = back->outputs[k];
    else
      back->outputs[k] = NULL;
  }
  return NULL;
}
