/* SPDX-License-Identifier: MIT */
#include "quantise/layers.h"

#include <math.h>

#include "ir/bodies.h"
#include "ir/cell.h"
#include "ir/op.h"
#include "shapes/shape.h"
#include "support/list.h"

static const LayerKind layer_kinds[] = {
    {.op = OP_Conv, .n_weights = 1, .weights = {1}, .bias = 2, .data_in_8_bits = true},
    {.op = OP_MatMul, .n_weights = 1, .weights = {1}, .bias = -1, .data_in_8_bits = true},
    {.op = OP_Gemm, .n_weights = 1, .weights = {1}, .bias = 2, .data_in_8_bits = true},
    {.op = OP_LSTM, .n_weights = 2, .weights = {1, 2}, .bias = -1},
    {.op = OP_GRU, .n_weights = 2, .weights = {1, 2}, .bias = -1},
    {.op = OP_RNN, .n_weights = 2, .weights = {1, 2}, .bias = -1},
    {.op = OP_Add, .bias = -1, .data_in_8_bits = true, .all_inputs = true},
    {.op = OP_Concat, .bias = -1, .data_in_8_bits = true, .all_inputs = true},
    {.op = OP_AveragePool, .bias = -1, .data_in_8_bits = true},
    {.op = OP_GlobalAveragePool, .bias = -1, .data_in_8_bits = true},
};

static const LayerKind *kind_of(const Node *node) {
  for (size_t i = 0; i < sizeof layer_kinds / sizeof *layer_kinds; i++)
    if (is_op(node, (OpKind)layer_kinds[i].op)) return &layer_kinds[i];
  return NULL;
}

/* By op. MaxPool: if its indices are not wanted. */
static const bool moves[N_OPS] = {
    [OP_MaxPool] = true,   [OP_GlobalMaxPool] = true, [OP_Reshape] = true,      [OP_Flatten] = true,
    [OP_Transpose] = true, [OP_Squeeze] = true,       [OP_Unsqueeze] = true,    [OP_Slice] = true,
    [OP_Split] = true,     [OP_DepthToSpace] = true,  [OP_SpaceToDepth] = true,
};

bool moves_elements(const Node *node) {
  return node && moves[node->op->kind] && !(is_op(node, OP_MaxPool) && node_output(node, 1));
}

/* By op: activation functions that bounds of eight bits can do, behind a product. */
static bool bounds_elements(const Node *node) {
  if (is_op(node, OP_Relu)) return true;
  if (!is_op(node, OP_Clip)) return false;
  for (int i = 1; i < node->n_inputs; i++)
    if (node->inputs[i] && !node->inputs[i]->data) return false;
  return true;
}

static bool is_data(const Value *value) {
  return value && !value->data && value->dtype == RNNCC_F32 && value->rank > 0;
}

/* ---- layers ---- */

static const char *why_not_weights(const Node *node, const LayerKind *kind) {
  for (int i = 0; i < kind->n_weights; i++) {
    const Value *w = node_input(node, kind->weights[i]);
    if (!w || !w->data) return "its weights are not constant";
    if (w->dtype != RNNCC_F32) return "its weights are not f32";
    if (w->rank < 2) return "its weights are a vector";
    for (int64_t i = 0, count = value_count(w); i < count; i++)
      if (!isfinite(((const float *)w->data)[i])) return "its weights are not finite";
  }
  return NULL;
}

static const char *why_not_bias(const Node *node, const LayerKind *kind) {
  const Value *bias = kind->bias >= 0 ? node_input(node, kind->bias) : NULL;
  if (!bias || !bias->data || bias->dtype != RNNCC_F32) return NULL;
  for (int64_t i = 0, count = value_count(bias); i < count; i++)
    if (!isfinite(((const float *)bias->data)[i])) return "its bias is not finite";
  return NULL;
}

static int channel_axis_of(const Node *node, const LayerKind *kind) {
  if (!kind->n_weights) return -1;
  const Value *w = node->inputs[kind->weights[0]];
  if (is_op(node, OP_Conv)) return 0;
  if (is_op(node, OP_Gemm)) return node_int(node, ATTR_transB) ? 0 : 1;
  return is_op(node, OP_MatMul) ? w->rank - 1 : 1;
}

/* The layer that computes the value, -1: none. */
static int origin(const Layers *layers, const Value *value) {
  const Node *node = value->producer;
  if (!node) return -1;
  if (bounds_elements(node) || moves_elements(node))
    return node->inputs[0] && !node->inputs[0]->data ? layers->layer_of[node->inputs[0]->id] : -1;
  for (int i = 0; i < layers->n; i++)
    if (layers->list[i].node == node && !layers->list[i].why_not && layers->list[i].kind->data_in_8_bits) return i;
  return -1;
}

/* A node that joins is worth eight bits where all that it reads comes from layers in eight bits. */
static const char *why_not_joined(const Layers *layers, const Node *node, const LayerKind *kind) {
  for (int i = 0; i < (kind->all_inputs ? node->n_inputs : 1); i++) {
    const Value *input = node->inputs[i];
    if (!is_data(input)) return "an operand is constant, or not f32";
    if (layers->layer_of[input->id] < 0) return "an operand does not come from a layer in int8";
  }
  return NULL;
}

static const char *why_not_layer(const Layers *layers, const Node *node, const LayerKind *kind, bool with_data) {
  if (kind->n_weights) {
    const char *why_not = why_not_weights(node, kind);
    if (!why_not && with_data) why_not = why_not_bias(node, kind);
    return why_not || !is_data(node->inputs[0]) ? why_not ? why_not : "its input is not f32" : NULL;
  }
  return with_data ? why_not_joined(layers, node, kind) : "it has no weights";
}

static void add_layer(Layers *layers, Graph *graph, Node *node, bool with_data) {
  const LayerKind *kind = kind_of(node);
  if (!kind) return;
  const char *why_not = why_not_layer(layers, node, kind, with_data);
  if (why_not && !kind->n_weights) return; /* a sum like any other */
  Layer layer = {.node = node, .graph = graph, .kind = kind, .alone = -1, .why_not = why_not, .ranges = {-1, -1, -1}};
  if (!why_not) layer.channel_axis = channel_axis_of(node, kind);
  layer.int8 = !why_not;
  *LIST_ADD(layers->graph->arena, layers->list, layers->n, layers->capacity) = layer;
}

/* Those of bodies, which have weights. */
static void add_inner_layers(Layers *layers, const Node *node) {
  Attribute *bodies[MAX_BODIES];
  for (int b = 0, count = node_bodies(node, bodies); b < count; b++) {
    Graph *body = bodies[b]->graph;
    for (int n = 0; n < body->n_nodes; n++) {
      const LayerKind *kind = kind_of(body->nodes[n]);
      if (kind && kind->n_weights) add_layer(layers, body, body->nodes[n], false);
      add_inner_layers(layers, body->nodes[n]);
    }
  }
}

/* ---- activations ---- */

static int activation_for(Layers *layers, Value *value) {
  int *place = &layers->activation_of[value->id];
  if (*place >= 0) return *place;
  *place = layers->n_activations;
  LayerData activation = {.value = value, .root = *place, .usable = true, .channel_axis = -1};
  *LIST_ADD(layers->graph->arena, layers->activations, layers->n_activations, layers->activation_capacity) = activation;
  return *place;
}

/* A moved tensor has the scale of the one that it is moved from. */
static void add_sources(Layers *layers) {
  for (int i = 0; i < layers->n_activations; i++) {
    const Node *producer = layers->activations[i].value->producer;
    if (moves_elements(producer) && is_data(producer->inputs[0])) {
      int source = activation_for(layers, producer->inputs[0]);
      layers->activations[i].root = source;
    }
  }
  for (int i = 0; i < layers->n_activations; i++)
    while (layers->activations[i].root != layers->activations[layers->activations[i].root].root)
      layers->activations[i].root = layers->activations[layers->activations[i].root].root;
}

int channels_in_data(const Node *node) {
  if (is_op(node, OP_Gemm) && node_int(node, ATTR_transA)) return -1;
  return is_op(node, OP_MatMul) ? node->inputs[0]->rank - 1 : 1;
}

/* Of data that several layers read, means are taken along the axis of one of them: of one with a bias, if there is any.
 */
static void set_channels(Layers *layers, const Layer *layer) {
  if (!layer->kind->n_weights || layer->data[0] < 0) return;
  LayerData *of = &layers->activations[layer->data[0]];
  int axis = channels_in_data(layer->node);
  if (axis < 0 || axis >= of->value->rank || !dim_is_const(of->value->shape[axis])) return;
  if (of->channel_axis >= 0 && layer->kind->bias < 0) return;
  of->channel_axis = axis;
  of->n_channels = dim_value(of->value->shape[axis]);
}

static void add_activations(Layers *layers, Layer *layer) {
  if (layer->why_not || !layer->kind->data_in_8_bits || layer->graph != layers->graph) return;
  layer->n_data = layer->kind->all_inputs ? layer->node->n_inputs : 1;
  layer->data = ARENA_ARRAY(layers->graph->arena, int, layer->n_data);
  layer->sources = ARENA_ARRAY(layers->graph->arena, int, layer->n_data);
  for (int i = 0; i < layer->n_data; i++) {
    layer->data[i] = activation_for(layers, layer->node->inputs[i]);
    layer->sources[i] = layers->layer_of[layer->node->inputs[i]->id];
  }
  set_channels(layers, layer);
}

/* ---- ranges of recurrent layers ---- */

bool is_recurrent_layer(const Layer *layer) { return layer->kind->n_weights == MAX_WEIGHTS; }

void layer_make_y(Graph *graph, Layer *layer) {
  Node *node = layer->node;
  if (!node->n_outputs) *LIST_APPEND(graph->arena, node->outputs, node->n_outputs) = NULL;
  if (node->outputs[0]) return;
  graph_set_output(node, 0, graph_value(graph, node->name, node->where));
  layer->made_y = infer_node(graph, node);
}

static void add_ranges(Layers *layers, Layer *layer) {
  const Node *node = layer->node;
  layer_make_y(layers->graph, layer);
  Value *const values[] = {[RANGE_INPUT] = node->inputs[INPUT_X],
                           [RANGE_STATES] = node->outputs[0],
                           [RANGE_INITIAL] = node_input(node, INPUT_H)};
  for (int i = 0; i < N_RANGES; i++)
    if (values[i] && !values[i]->data) layer->ranges[i] = activation_for(layers, values[i]);
}

const LayerData *layer_input(const Layers *layers, const Layer *layer) {
  int place = layer->n_data ? layer->data[0] : layer->ranges[RANGE_INPUT];
  return place < 0 ? NULL : &layers->activations[place];
}

static void set_origins(Layers *layers, const Node *node) {
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i]) layers->layer_of[node->outputs[i]->id] = origin(layers, node->outputs[i]);
}

Layers layers_find(Graph *graph, bool with_data, bool fixed_ranges) {
  Layers layers = {.graph = graph};
  const int n_values = graph->n_values + graph->n_nodes; /* with the Ys that are made */
  layers.activation_of = ARENA_ARRAY(graph->arena, int, n_values + 1);
  layers.layer_of = ARENA_ARRAY(graph->arena, int, n_values + 1);
  for (int i = 0; i < n_values; i++) layers.activation_of[i] = layers.layer_of[i] = -1;
  for (int n = 0; n < graph->n_nodes; n++) {
    add_layer(&layers, graph, graph->nodes[n], with_data);
    set_origins(&layers, graph->nodes[n]);
    add_inner_layers(&layers, graph->nodes[n]);
  }
  for (int i = 0; with_data && i < layers.n; i++) {
    Layer *layer = &layers.list[i];
    add_activations(&layers, layer);
    bool can = !layer->why_not && is_recurrent_layer(layer) && layer->graph == graph;
    if (fixed_ranges && can) add_ranges(&layers, layer);
  }
  add_sources(&layers);
  return layers;
}
