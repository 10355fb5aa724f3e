/* SPDX-License-Identifier: MIT */
#include "quantise/rewrite.h"

#include <math.h>
#include <string.h>

#include "ir/bodies.h"
#include "ir/cell.h"
#include "ir/narrow.h"
#include "ir/op.h"
#include "ir/tensor.h"
#include "passes/narrow_weights.h"
#include "quantise/weights.h"
#include "shapes/build.h"
#include "support/list.h"
#include "support/numbers.h"

typedef struct Rewriter {
  const Layers *layers;
  Graph *graph;
  RewriteOptions options;
  bool *in_use;     /* by activation: has it a form of eight bits? */
  Value **eight;    /* that form, once a node has been built for it; else NULL */
  Value *switches;  /* of rewrite_switched: the input */
  const Layer **of; /* by node id: the layer, or NULL */
} Rewriter;

static Rewriter rewriter_new(const Layers *layers, RewriteOptions options) {
  Graph *graph = layers->graph;
  Rewriter r = {.layers = layers, .graph = graph, .options = options};
  r.in_use = ARENA_ARRAY(graph->arena, bool, layers->n_activations + 1);
  r.eight = ARENA_ARRAY(graph->arena, Value *, layers->n_activations + 1);
  r.of = ARENA_ARRAY(graph->arena, const Layer *, graph->n_nodes + 1);
  for (int i = 0; i < layers->n; i++) {
    const Layer *layer = &layers->list[i];
    if (!layer->why_not && layer->graph == graph) r.of[layer->node->id] = layer;
  }
  return r;
}

static Builder builder_for(const Rewriter *r, const Node *node) { return (Builder){r->graph, node->name, node->where}; }

/* ---- integers and what they stand for ---- */

static Builder dequantized(const Rewriter *r, const Node *reader, const char *name) {
  return (Builder){r->graph, arena_format(r->graph->arena, "%s.dequantized", name), reader->where};
}

static Value *constant(const Rewriter *r, const char *name, DType dtype, int rank, const int64_t *shape,
                       const void *data, int64_t count) {
  const void *copy = arena_copy(r->graph->arena, data, (size_t)count * dtype_size(dtype));
  return graph_constant(r->graph, name, dtype, rank, shape, copy);
}

/* QuantizeLinear and DequantizeLinear of the activation. */
static Value *in_eight_bits(Rewriter *r, int place) {
  if (r->eight[place]) return r->eight[place];
  const LayerData *a = &r->layers->activations[place];
  Builder builder = {r->graph, arena_format(r->graph->arena, "%s.quantized", a->value->name), a->value->where};
  Value *scale =
      constant(r, arena_format(r->graph->arena, "%s.scale", a->value->name), RNNCC_F32, 0, NULL, &a->scale, 1);
  Value *zero = constant(r, arena_format(r->graph->arena, "%s.zero", a->value->name), RNNCC_U8, 0, NULL, &a->zero, 1);
  Value *const to[] = {a->value, scale, zero};
  Value *integers = build_op(&builder, OP_QuantizeLinear, 3, to, 1, 0, NULL)->outputs[0];
  builder.name = arena_format(r->graph->arena, "%s.dequantized", a->value->name);
  Value *const from[] = {integers, scale, zero};
  return r->eight[place] = build_op(&builder, OP_DequantizeLinear, 3, from, 1, 0, NULL)->outputs[0];
}

/* DequantizeLinear of integers: a scale for each index of the axis, or, of two directions, for each row. */
static Value *stand_for(const Rewriter *r, const Node *reader, const Value *weights, int axis, const Rounded *rounded) {
  int64_t shape[MAX_RANK];
  for (int i = 0; i < weights->rank; i++) shape[i] = dim_value(weights->shape[i]);
  bool by_row = rounded->n_scales != shape[axis];
  int64_t rows[] = {shape[0], shape[1], 1};
  const char *name = weights->name ? weights->name : reader->name;
  Builder builder = dequantized(r, reader, name);
  Value *integers = graph_constant(r->graph, name, RNNCC_I8, weights->rank, shape, rounded->data);
  Value *scales = graph_constant(r->graph, arena_format(r->graph->arena, "%s.scale", name), RNNCC_F32, by_row ? 3 : 1,
                                 by_row ? rows : &rounded->n_scales, rounded->scales);
  const Attribute attributes[] = {attribute_int(ATTR_axis, by_row ? 2 : axis),
                                  attribute_int(ATTR_block_size, by_row ? shape[2] : 0)};
  Value *const from[] = {integers, scales};
  return build_op(&builder, OP_DequantizeLinear, 2, from, 1, by_row ? 2 : 1, attributes)->outputs[0];
}

/* The same numbers as floats: a layer that multiplies integers takes constants, and finds the integers in them. */
static Value *as_floats(const Rewriter *r, const Value *weights, int axis, const Rounded *rounded) {
  int64_t shape[MAX_RANK], count = value_count(weights);
  for (int i = 0; i < weights->rank; i++) shape[i] = dim_value(weights->shape[i]);
  float *data = ARENA_ARRAY(r->graph->arena, float, count);
  for (int64_t i = 0; i < count; i++)
    data[i] = (float)rounded->data[i] * rounded->scales[scale_place(weights, axis, i)];
  return graph_constant(r->graph, weights->name, RNNCC_F32, weights->rank, shape, data);
}

/* DequantizeLinear of weights with scales for groups, in blocks of the axis that is summed over. Of a group of zeros
 * narrow's scale is 0; a DequantizeLinear's is above 0. */
static Value *stand_for_groups(const Rewriter *r, const Node *reader, const Value *weights) {
  const NarrowWeights *narrow = weights->narrow;
  int64_t shape[MAX_RANK], blocks[MAX_RANK], count = value_count(weights), depth = count / narrow->count;
  bool rows = narrow->inner != 1 || (depth == 1 && dim_value(weights->shape[weights->rank - 1]) == 1);
  int axis = rows ? weights->rank - 1 : 0;
  int8_t *integers = ARENA_ARRAY(r->graph->arena, int8_t, count);
  float *scales = ARENA_ARRAY(r->graph->arena, float, narrow->count * narrow->groups);
  for (int i = 0; i < weights->rank; i++) blocks[i] = shape[i] = dim_value(weights->shape[i]);
  blocks[axis] = narrow->groups;
  for (int64_t i = 0; i < count; i++) integers[i] = (int8_t)narrow_integer(weights, i);
  for (int64_t c = 0; c < narrow->count; c++)
    for (int64_t g = 0; g < narrow->groups; g++) {
      float scale = narrow->scales[c * narrow->groups + g];
      scales[rows ? c * narrow->groups + g : g * narrow->count + c] = scale > 0 ? scale : 1;
    }
  const char *name = weights->name ? weights->name : reader->name;
  Builder builder = dequantized(r, reader, name);
  Value *const from[] = {graph_constant(r->graph, name, RNNCC_I8, weights->rank, shape, integers),
                         graph_constant(r->graph, arena_format(r->graph->arena, "%s.scale", name), RNNCC_F32,
                                        weights->rank, blocks, scales)};
  const Attribute attributes[] = {attribute_int(ATTR_axis, axis),
                                  attribute_int(ATTR_block_size, narrow->group ? narrow->group : depth)};
  return build_op(&builder, OP_DequantizeLinear, 2, from, 1, 2, attributes)->outputs[0];
}

/* In i32, in steps of the product of the data's scale and the weights'. */
static Value *bias_of(const Rewriter *r, const Node *reader, const float *bias, float data_scale,
                      const Rounded *weights) {
  int64_t n = weights->n_scales;
  int32_t *integers = ARENA_ARRAY(r->graph->arena, int32_t, n);
  float *scales = ARENA_ARRAY(r->graph->arena, float, n);
  for (int64_t i = 0; i < n; i++) {
    scales[i] = data_scale * weights->scales[i];
    double steps = nearbyint((double)bias[i] / (double)scales[i]);
    integers[i] = (int32_t)max_double(INT32_MIN, min_double(steps, INT32_MAX));
  }
  const char *name = arena_format(r->graph->arena, "%s.bias", reader->name);
  Builder builder = dequantized(r, reader, name);
  Value *const from[] = {
      graph_constant(r->graph, name, RNNCC_I32, 1, &n, integers),
      graph_constant(r->graph, arena_format(r->graph->arena, "%s.scale", name), RNNCC_F32, 1, &n, scales)};
  const Attribute axis = attribute_int(ATTR_axis, 0);
  return build_op(&builder, OP_DequantizeLinear, 2, from, 1, 1, &axis)->outputs[0];
}

/* Scales that keep each bias within half of i32's range. */
static const double *least_scales(const Rewriter *r, const Layer *layer, float data_scale) {
  const Value *bias = bias_is_plain(layer) ? node_input(layer->node, layer->kind->bias) : NULL;
  if (!bias) return NULL;
  int64_t n = value_count(bias);
  double *least = ARENA_ARRAY(r->graph->arena, double, n);
  for (int64_t i = 0; i < n; i++)
    least[i] = fabs((double)((const float *)bias->data)[i]) / ((double)data_scale * 0x1p30);
  return least;
}

/* Of a layer by fixed ranges: X; and the states that it makes, and those that it begins with. */
static void set_range(const Rewriter *r, Node *node, AttributeName name, double least, double most) {
  static const double least_width = 1e-9; /* of data that are always 0 */
  const double range[] = {least, max_double(most, least + least_width)};
  set_attribute(r->graph, node, attribute_floats(r->graph->arena, name, 2, range));
}

/* A layer of a body has no ranges. */
static int products_of(const Rewriter *r, const Layer *layer) {
  bool fixed = r->options.recurrent == PRODUCTS_int8_static && layer->ranges[RANGE_INPUT] < 0;
  return fixed ? PRODUCTS_int8_dynamic : (int)r->options.recurrent;
}

static void set_ranges(const Rewriter *r, const Layer *layer, Node *node) {
  const LayerData *all = r->layers->activations, *x = &all[layer->ranges[RANGE_INPUT]];
  const Value *initial = node_input(layer->node, INPUT_H);
  double least = all[layer->ranges[RANGE_STATES]].least, most = all[layer->ranges[RANGE_STATES]].most;
  if (layer->ranges[RANGE_INITIAL] >= 0) {
    least = min_double(least, all[layer->ranges[RANGE_INITIAL]].least);
    most = max_double(most, all[layer->ranges[RANGE_INITIAL]].most);
  }
  for (int64_t i = 0; initial && initial->data && i < value_count(initial); i++) {
    least = min_double(least, value_element(initial, i));
    most = max_double(most, value_element(initial, i));
  }
  set_range(r, node, ATTR_input_range, x->least, x->most);
  set_range(r, node, ATTR_hidden_range, least, most);
}

static bool multiplies_integers(const Rewriter *r, const Layer *layer) {
  return r->options.recurrent != PRODUCTS_f32 && is_recurrent_layer(layer);
}

static int most_of(const Rewriter *r, const Layer *layer) {
  return r->options.seven_bits && multiplies_integers(r, layer) ? 63 : 127;
}

/* Weights of products in f32, or of products of integers in a recurrent layer: with scales for groups, and with
 * integers that make up for each other's errors. */
static Value *narrowed(const Rewriter *r, const Layer *layer, const Node *node, int k) {
  int place = layer->kind->weights[k];
  bool integers = multiplies_integers(r, layer);
  NarrowWeights form = {.dtype = RNNCC_I8, .group = integers ? 0 : r->options.group, .most = most_of(r, layer)};
  narrow_channels(layer->node, place, &form);
  Value *made = narrow_scaled(r->graph, layer->node->inputs[place], &form, layer->feedback[k]);
  if (!integers) return stand_for_groups(r, node, made);
  made->narrow = NULL;
  return made;
}

static bool is_narrowed(const Rewriter *r, const Layer *layer, int k) {
  bool grouped = r->options.group > 0 && !multiplies_integers(r, layer);
  bool matrix = layer->kind->op != OP_Conv && (is_recurrent_layer(layer) || layer->node->inputs[1]->rank == 2);
  return !layer->n_data && matrix && (grouped || layer->feedback[k]);
}

/* The node's weights, and its bias, become integers. `node`: the layer's, or one like it. */
static void round_constants(const Rewriter *r, const Layer *layer, Node *node) {
  const LayerData *input = layer->n_data ? &r->layers->activations[layer->data[0]] : NULL;
  bool integers = multiplies_integers(r, layer);
  for (int k = 0; k < layer->kind->n_weights; k++) {
    int place = layer->kind->weights[k];
    if (is_narrowed(r, layer, k)) {
      node->inputs[place] = narrowed(r, layer, node, k);
      continue;
    }
    const Value *weights = layer->node->inputs[place];
    const double *least = input ? least_scales(r, layer, input->scale) : NULL;
    Rounded rounded = weights_round(r->graph->arena, weights, layer->channel_axis, least, most_of(r, layer));
    const float *bias = input ? bias_corrected(r->layers, layer, &rounded, r->options.correct_bias) : NULL;
    bool wanted = bias && (r->options.correct_bias || node_input(layer->node, layer->kind->bias));
    Value *bias_value = wanted ? bias_of(r, node, bias, input->scale, &rounded) : NULL;
    node->inputs[place] = integers ? as_floats(r, weights, layer->channel_axis, &rounded)
                                   : stand_for(r, node, weights, layer->channel_axis, &rounded);
    if (bias_value) node->inputs[layer->kind->bias] = bias_value;
  }
  if (integers) set_attribute(r->graph, node, attribute_one_of(ATTR_precision, products_of(r, layer)));
  if (layer->ranges[RANGE_INPUT] >= 0) set_ranges(r, layer, node);
}

/* The node's inputs become a list of its own, with room for a bias. */
static void lengthen_inputs(const Rewriter *r, const Layer *layer, Node *node) {
  int n = (int)max_int(node->n_inputs, layer->kind->bias + 1);
  Value **inputs = ARENA_ARRAY(r->graph->arena, Value *, n);
  memset(inputs, 0, (size_t)n * sizeof *inputs);
  memcpy(inputs, node->inputs, (size_t)node->n_inputs * sizeof *inputs);
  node->inputs = inputs;
  node->n_inputs = n;
}

/* A bias that stays absent leaves no place. */
static void drop_absent_inputs(Node *node) {
  while (node->n_inputs && !node->inputs[node->n_inputs - 1]) node->n_inputs--;
}

/* ---- the activations as outputs ---- */

static void add_output(Graph *graph, Value *value) {
  *LIST_APPEND(graph->arena, graph->outputs, graph->n_outputs) = value;
}

void rewrite_watched(const Layers *layers) {
  Graph *graph = layers->graph;
  for (int i = 0; i < layers->n_activations; i++) {
    Value *value = layers->activations[i].value;
    Builder builder = {graph, arena_format(graph->arena, "watched_%d", i), value->where};
    add_output(graph, build_op(&builder, OP_Identity, 1, &value, 1, 0, NULL)->outputs[0]);
  }
  graph_renumber(graph);
}

/* ---- both forms ---- */

static Value *add_switches(Graph *graph, int n) {
  Value *input = graph_value(graph, "layers in int8", LOCATION_FILE(graph->file));
  input->dtype = RNNCC_BOOL;
  input->rank = 1;
  input->shape = ARENA_ARRAY(graph->arena, const Dim *, 1);
  input->shape[0] = dim_const(graph->dims, n);
  input->is_input = true;
  *LIST_APPEND(graph->arena, graph->inputs, graph->n_inputs) = input;
  return input;
}

static Value *switch_of(const Rewriter *r, const Layer *layer) {
  Builder builder = builder_for(r, layer->node);
  const int64_t place = layer - r->layers->list;
  Value *const inputs[] = {r->switches, constant(r, layer->node->name, RNNCC_I64, 0, NULL, &place, 1)};
  return build_op(&builder, OP_Gather, 2, inputs, 1, 0, NULL)->outputs[0];
}

static Value *chosen_by(const Builder *builder, Value *by, Value *yes, Value *no) {
  Value *const inputs[] = {by, yes, no};
  return build_op(builder, OP_Where, 3, inputs, 1, 0, NULL)->outputs[0];
}

/* The node's outputs become the chosen ones of its own and of the other node's. */
static void choose_outputs(const Rewriter *r, const Builder *builder, Value *by, Node *node, Node *other) {
  for (int i = 0; i < node->n_outputs; i++) {
    Value *output = node->outputs[i];
    if (!output) continue;
    Value *own = graph_value_like(r->graph, output->name, output->where, output);
    graph_set_output(node, i, own);
    Value *its = graph_value_like(r->graph, output->name, output->where, output);
    graph_set_output(other, i, its);
    Value *chosen = chosen_by(builder, by, its, own);
    graph_set_output(chosen->producer, 0, output);
  }
}

static void switch_layer(Rewriter *r, const Layer *layer) {
  Node *node = layer->node;
  Builder builder = builder_for(r, node);
  Value *by = switch_of(r, layer);
  node->inputs = arena_copy(r->graph->arena, (void *)node->inputs, (size_t)node->n_inputs * sizeof *node->inputs);
  for (int i = 0; i < layer->n_data; i++)
    node->inputs[i] = chosen_by(&builder, by, in_eight_bits(r, layer->data[i]), node->inputs[i]);
  Node *other = arena_copy(r->graph->arena, node, sizeof *node);
  other->outputs = ARENA_ARRAY(r->graph->arena, Value *, node->n_outputs);
  memset(other->outputs, 0, (size_t)node->n_outputs * sizeof *other->outputs);
  lengthen_inputs(r, layer, other);
  round_constants(r, layer, other);
  drop_absent_inputs(other);
  graph_append(r->graph, node);
  if (!layer->kind->n_weights) return;
  graph_append(r->graph, other);
  choose_outputs(r, &builder, by, node, other);
}

void rewrite_switched(const Layers *layers, RewriteOptions options) {
  Rewriter r = rewriter_new(layers, options);
  Node **nodes;
  int n = graph_take_nodes(r.graph, &nodes);
  r.switches = add_switches(r.graph, layers->n);
  for (int i = 0; i < n; i++) {
    const Layer *layer = r.of[nodes[i]->id];
    if (layer)
      switch_layer(&r, layer);
    else
      graph_append(r.graph, nodes[i]);
  }
  graph_renumber(r.graph);
}

/* ---- the result ---- */

/* Is the value computed by a layer in int8? */
static bool comes_in_int8(const Rewriter *r, const Value *value) {
  int layer = r->layers->layer_of[value->id];
  return layer >= 0 && r->layers->list[layer].int8;
}

/* Activations that chosen layers read; and what is moved to them, if it comes in int8. */
static void mark_used(Rewriter *r) {
  const Layers *layers = r->layers;
  for (int i = 0; i < layers->n; i++)
    for (int k = 0; layers->list[i].int8 && k < layers->list[i].n_data; k++) r->in_use[layers->list[i].data[k]] = true;
  for (int i = 0; i < layers->n_activations; i++) /* a source stands behind what is moved from it */
    for (const Node *mover = layers->activations[i].value->producer;
         r->in_use[i] && moves_elements(mover) && comes_in_int8(r, mover->outputs[0]);
         mover = mover->inputs[0]->producer) {
      int source = layers->activation_of[mover->inputs[0]->id];
      if (source < 0) break;
      r->in_use[source] = true;
    }
}

/* Y that was made to be watched. */
static void drop_made(const Layers *layers) {
  for (int i = 0; i < layers->n; i++)
    if (layers->list[i].made_y) layers->list[i].node->outputs[0] = NULL;
}

/* A value that a kernel writes in eight bits is read so by all. */
static void read_in_eight_bits(Rewriter *r, Node *node, const Layer *layer) {
  Value **inputs = arena_copy(r->graph->arena, (void *)node->inputs, (size_t)node->n_inputs * sizeof *inputs);
  for (int i = 0; i < node->n_inputs - node->n_captures; i++) {
    int place = inputs[i] ? r->layers->activation_of[inputs[i]->id] : -1;
    if (place < 0 || !r->in_use[place]) continue;
    if ((layer && i < layer->n_data) || comes_in_int8(r, inputs[i])) inputs[i] = in_eight_bits(r, place);
  }
  node->inputs = inputs;
}

static const Layer *chosen_layer(const Layers *layers, const Node *node) {
  for (int i = 0; i < layers->n; i++)
    if (layers->list[i].node == node && layers->list[i].int8) return &layers->list[i];
  return NULL;
}

static void rewrite_inner(Rewriter *r, const Node *node);

/* Shapes are inferred again from what the body is now. */
static void rewrite_body(Rewriter *r, Attribute *attribute) {
  Graph *outer = r->graph, *body = r->graph = attribute->graph;
  Node **nodes;
  int n = graph_take_nodes(body, &nodes);
  for (int i = 0; i < n; i++) {
    const Layer *layer = chosen_layer(r->layers, nodes[i]);
    rewrite_inner(r, nodes[i]);
    if (layer) round_constants(r, layer, nodes[i]);
    graph_append(body, nodes[i]);
  }
  graph_renumber(body);
  attribute->source = NULL;
  r->graph = outer;
}

/* The bodies of the node that have chosen layers, or inner bodies that do. */
static void rewrite_inner(Rewriter *r, const Node *node) {
  Attribute *bodies[MAX_BODIES];
  for (int b = 0, count = node_bodies(node, bodies); b < count; b++)
    for (int i = 0; i < r->layers->n; i++) {
      const Graph *graph = r->layers->list[i].int8 ? r->layers->list[i].graph : NULL;
      while (graph && graph != bodies[b]->graph) graph = graph->outer;
      if (!graph) continue;
      rewrite_body(r, bodies[b]);
      break;
    }
}

void rewrite_chosen(const Layers *layers, RewriteOptions options) {
  Rewriter r = rewriter_new(layers, options);
  Node **nodes;
  mark_used(&r);
  drop_made(layers);
  int n = graph_take_nodes(r.graph, &nodes);
  for (int i = 0; i < n; i++) {
    const Layer *layer = r.of[nodes[i]->id];
    if (layer && !layer->int8) layer = NULL;
    rewrite_inner(&r, nodes[i]);
    read_in_eight_bits(&r, nodes[i], layer);
    if (layer) {
      lengthen_inputs(&r, layer, nodes[i]);
      round_constants(&r, layer, nodes[i]);
      drop_absent_inputs(nodes[i]);
    }
    graph_append(r.graph, nodes[i]);
  }
  graph_renumber(r.graph);
}
