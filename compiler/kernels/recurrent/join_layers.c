/* SPDX-License-Identifier: MIT */
/*
 * Common work of recurrent layers. Layers of equal weights that read the same run once. Layers of equal weights that
 * read others, as an encoder of a question and of the texts that may answer it, run as one batch: the weights are then
 * read once for all. Sums of a single sample are added in another order than those of several, so its results may
 * differ by rounding; all others stay as they are, to the bit.
 */
#include "ir/equal_nodes.h"
#include "kernels/recurrent/choose.h"
#include "kernels/recurrent/int8.h"
#include "passes.h"
#include "shapes/build.h"
#include "shapes/shape.h"

enum { OUTPUT_Y };

static bool is_layer(const Node *node) { return node->op->family == &family_recurrent; }

/* ---- once ---- */

static bool leaves(const Graph *graph, const Value *value) {
  bool found = false;
  for (int i = 0; i < graph->n_outputs; i++) found |= graph->outputs[i] == value;
  for (int i = 0; i < graph->n_states; i++) found |= graph->states[i].output == value;
  return found;
}

/* All that read the value read `other`. What leaves the graph becomes a copy. */
static void read_instead(Graph *graph, Value *value, Value *other) {
  const Builder builder = {graph, value->name, value->where};
  graph_read_instead(graph, 0, value, other);
  value->producer = NULL;
  if (leaves(graph, value)) graph_set_output(build_op(&builder, OP_Identity, 1, &other, 1, 0, NULL), 0, value);
}

static void read_first(Graph *graph, Node *layer, Node *first) {
  for (int k = 0; k < layer->n_outputs; k++) {
    if (!layer->outputs[k]) continue;
    if (first->outputs[k])
      read_instead(graph, layer->outputs[k], first->outputs[k]);
    else
      graph_set_output(first, k, layer->outputs[k]);
    layer->outputs[k] = NULL;
  }
}

/* Of layers that an op table row gives as many outputs as the other. */
static bool run_once(Graph *graph) {
  Node **first = equal_nodes(graph);
  bool any = false;
  for (int n = 0, n_nodes = graph->n_nodes; n < n_nodes; n++) {
    Node *layer = graph->nodes[n];
    if (!is_layer(layer) || first[n] == layer || first[n]->n_outputs < layer->n_outputs) continue;
    read_first(graph, layer, first[n]);
    any = true;
  }
  return any;
}

/* ---- as one batch ---- */

static int batch_axis(const Node *layer, int rank) {
  if (node_int(layer, ATTR_layout)) return 0;
  return rank - 2; /* X [T,B,I], Y [T,D,B,H], states [D,B,H] */
}

/* Are the layers' weights, attributes and steps the same, and the rest there in both or in none? */
static bool are_alike(Node *const *first, const Node *a, const Node *b) {
  static const int weights[] = {INPUT_W, INPUT_R, INPUT_B, INPUT_P};
  static const int samples[] = {INPUT_LENGTHS, INPUT_H, INPUT_C};
  if (a->op != b->op || !same_attributes(a, b) || int8_asked(a)) return false;
  for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
    if (!equal_values(first, node_input(a, weights[i]), node_input(b, weights[i]))) return false;
  for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
    if (!node_input(a, samples[i]) != !node_input(b, samples[i])) return false;
  const Value *x = a->inputs[INPUT_X], *y = b->inputs[INPUT_X];
  int steps = batch_axis(a, 3) ? 0 : 1;
  return same_dim(x->shape[steps], y->shape[steps]);
}

/* Does `node`, or what it reads, read the layer? Nodes are in order. */
static bool reads_layer(const Graph *graph, const Node *layer, const Node *node) {
  bool *reached = ARENA_ARRAY(graph->arena, bool, graph->n_nodes);
  reached[layer->id] = true;
  for (int n = layer->id + 1; n <= node->id; n++)
    for (int i = 0; i < graph->nodes[n]->n_inputs; i++) {
      const Value *value = graph->nodes[n]->inputs[i];
      if (value && value->producer) reached[n] |= reached[value->producer->id];
    }
  return reached[node->id];
}

static double predicted(Graph *graph, const MmDag *dag, int index, const Dim *batch) {
  MmLayer layer = dag->layers[index];
  if (batch) layer.batch = batch;
  LayerCase numbers = layer_case(&layer, graph->config->target);
  LayerWindow *window = layer_window(graph->arena, dag, index, GRAIN_INPUT);
  Candidates all = recurrent_candidates(graph->arena, graph->config->machine, window, &numbers);
  return all.list[all.chosen].cost.total;
}

/* Nanoseconds to copy X together, and the results apart: each byte is read and written. */
static double copies(const Graph *graph, const Node *a, const Node *b) {
  const Node *layers[] = {a, b};
  double bytes = 0;
  for (int l = 0; l < 2; l++) {
    bytes += (double)value_optimum_bytes(layers[l]->inputs[INPUT_X]);
    for (int k = 0; k < layers[l]->n_outputs; k++)
      if (layers[l]->outputs[k]) bytes += (double)value_optimum_bytes(layers[l]->outputs[k]);
  }
  return 2 * bytes / graph->config->machine->l2_gbps;
}

/* The prediction's error: a gain below it may be none. */
#define LEAST_GAIN 0.98

static bool pays(Graph *graph, const MmDag *dag, int a, int b) {
  const Dim *batch = dim_add(graph->dims, dag->layers[a].batch, dag->layers[b].batch);
  double apart = predicted(graph, dag, a, NULL) + predicted(graph, dag, b, NULL);
  return predicted(graph, dag, a, batch) + copies(graph, dag->layers[a].node, dag->layers[b].node) < LEAST_GAIN * apart;
}

static Value *joined_input(const Builder *builder, const Node *a, const Node *b, int input) {
  static const bool of_samples[] = {
      [INPUT_X] = true, [INPUT_LENGTHS] = true, [INPUT_H] = true, [INPUT_C] = true, [INPUT_P] = false};
  Value *value = node_input(a, input);
  if (!value || !of_samples[input]) return value;
  int axis = value->rank == 1 ? 0 : batch_axis(a, value->rank);
  return build_concat(builder, 2, (Value *const[]){value, b->inputs[input]}, axis);
}

/* `from` and `to`: its samples among those of the joined layer. */
static void give_part(const Builder *builder, Node *layer, const Node *joined, int64_t from, int64_t to) {
  for (int k = 0; k < layer->n_outputs; k++) {
    if (!layer->outputs[k]) continue;
    const Range range = {batch_axis(layer, layer->outputs[k]->rank), from, to};
    Value *part = build_slice(builder, joined->outputs[k], 1, &range);
    graph_set_output(part->producer, 0, layer->outputs[k]);
    layer->outputs[k] = NULL;
  }
}

/* `a` has a constant number of samples. */
static void join(Graph *graph, Node *a, Node *b) {
  const Builder builder = {graph, a->name, a->where};
  Value *inputs[INPUT_P + 1];
  int n = a->n_inputs > b->n_inputs ? a->n_inputs : b->n_inputs;
  int n_outputs = a->n_outputs > b->n_outputs ? a->n_outputs : b->n_outputs;
  int64_t samples = dim_value(a->inputs[INPUT_X]->shape[batch_axis(a, 3)]);
  for (int i = 0; i < n; i++) inputs[i] = joined_input(&builder, a, b, i);
  Node *joined = build_op(&builder, a->op->kind, n, inputs, n_outputs, a->n_attributes, a->attributes);
  give_part(&builder, a, joined, 0, samples);
  give_part(&builder, b, joined, samples, INT64_MAX);
}

static bool has_samples(const MmLayer *layer) { return dim_is_const(layer->batch); }

/* True if two layers became one. */
static bool join_two(Graph *graph) {
  Node **first = equal_nodes(graph);
  const MmDag *dag = mm_dag(graph);
  for (int b = 1; b < dag->n_layers; b++)
    for (int a = 0; a < b; a++) {
      Node *before = dag->layers[a].node, *after = dag->layers[b].node;
      if (!is_layer(before) || !is_layer(after) || !are_alike(first, before, after)) continue;
      if (!has_samples(&dag->layers[a]) && !has_samples(&dag->layers[b])) continue;
      if (reads_layer(graph, before, after) || !pays(graph, dag, a, b)) continue;
      if (has_samples(&dag->layers[a]))
        join(graph, before, after);
      else
        join(graph, after, before);
      return true;
    }
  return false;
}

static int count_layers(const Graph *graph) {
  int count = 0;
  for (int n = 0; n < graph->n_nodes; n++) count += is_layer(graph->nodes[n]);
  return count;
}

/* needs: infer_shapes; graph->config->target and graph->config->machine; no epilogues, no stacks. keeps: types, shapes,
 * and results but for the rounding of single samples. breaks: order of nodes, which is topological again. */
void join_layers(Graph *graph) {
  if (count_layers(graph) < 2) return;
  if (run_once(graph)) graph_tidy(graph);
  while (join_two(graph)) graph_tidy(graph);
}
