/* SPDX-License-Identifier: MIT */
#include "quantise/moments.h"

#include "ir/bodies.h"
#include "ir/cell.h"
#include "ir/equal_nodes.h"
#include "ir/feedback.h"
#include "ir/narrow.h"
#include "ir/op.h"
#include "passes.h"
#include "passes/narrow_weights.h"
#include "quantise/apart.h"
#include "quantise/module.h"
#include "shapes/control.h"
#include "support/list.h"
#include "support/numbers.h"

/* Rows that all runs give, by depth; bytes of what a loop collects. */
enum { ROWS_OF_DEPTH = 32, MOST_COLLECTED = 64 << 20 };

/* A graph, and the node whose body it is. */
typedef struct Inside {
  const struct Inside *outer; /* NULL: it is the network */
  Graph *graph;
  Node *owner; /* in the outer graph */
} Inside;

/* Are products of these weights with rows the layer's? */
static bool multiplies_rows(const Layer *layer) {
  const Node *node = layer->node;
  if (layer->why_not || layer->n_data || !layer->kind->n_weights || !has_weights(node)) return false;
  return !is_op(node, OP_Gemm) || !node_int(node, ATTR_transA);
}

/* Does the node multiply the layer's k-th weights, in the same way? */
static bool multiplies_same(const Layer *layer, const Node *node, int k) {
  const Node *own = layer->node;
  int place = layer->kind->weights[k];
  if (own->op != node->op || !equal_values(NULL, own->inputs[place], node_input(node, place))) return false;
  return !is_op(node, OP_Gemm) ||
         (!node_int(node, ATTR_transA) && node_int(own, ATTR_transB) == node_int(node, ATTR_transB));
}

/* The first layer that multiplies these weights. Its moments are those of all that do, so that equal weights stay
 * equal: layers of one W may differ in R, and a loop that was a search has copies of the layers' nodes. NULL: none. */
static Layer *first_of(const Layers *layers, const Node *node, int k) {
  for (int i = 0; i < layers->n; i++) {
    Layer *layer = &layers->list[i];
    if (multiplies_rows(layer) && k < layer->kind->n_weights && multiplies_same(layer, node, k)) return layer;
  }
  return NULL;
}

static int64_t depth_of(const Layer *layer, int k) {
  return narrow_channels(layer->node, layer->kind->weights[k], &(NarrowWeights){0});
}

static const char *weights_name(const Layer *layer, int k) {
  const Value *weights = layer->node->inputs[layer->kind->weights[k]];
  return weights->name ? weights->name : layer->node->name;
}

/* Weights whose products sum too many numbers. */
typedef struct Deep {
  Text names; /* of the first ones, with their K */
  int n;
} Deep;

static void add_deep(Deep *deep, const Layer *layer, int k, int64_t depth) {
  enum { MOST_TOLD = 8 };
  if (deep->n++ < MOST_TOLD)
    text_add(&deep->names, "%s`%.80s` (K = %lld)", deep->n > 1 ? ", " : "", weights_name(layer, k), (long long)depth);
  else if (deep->n == MOST_TOLD + 1)
    text_add(&deep->names, " and others");
}

void moments_prepare(Layers *layers) {
  Deep deep = {.names = text_new(layers->graph->arena)};
  for (int i = 0; i < layers->n; i++) {
    Layer *layer = &layers->list[i];
    for (int k = 0; multiplies_rows(layer) && k < layer->kind->n_weights; k++) {
      int64_t depth = depth_of(layer, k);
      if (first_of(layers, layer->node, k) != layer) continue;
      if (feedback_fits(depth))
        layer->moments[k] = shared_memory((size_t)(depth * depth) * sizeof(double));
      else
        add_deep(&deep, layer, k, depth);
    }
  }
  if (deep.n)
    warn_at(LOCATION_FILE(layers->graph->file),
            "--feedback: where products sum more than %d numbers, the integers are the nearest ones: %s",
            FEEDBACK_MOST_DEPTH, deep.names.data);
}

/* ---- outputs ---- */

/* Can the body's values be collected, a row an iteration? */
static bool collects(const Node *owner) {
  const Control *control = owner->control;
  if (!control || !control->is_loop) return false;
  return is_op(owner, OP_Loop) ||
         (!node_has(owner, ATTR_scan_output_axes) && !node_has(owner, ATTR_scan_output_directions));
}

/* Has the value of a body the same shape in all iterations, also once inner loops have collected it? No extent may
 * depend on the outermost loop's counter, or on symbols of bodies, which come after it. */
static bool keeps_shape(const Inside *in, const Value *value) {
  const Inside *outermost = in;
  while (outermost->outer->outer) outermost = outermost->outer;
  int first = outermost->owner->control->counter->index;
  for (int axis = 0; axis < value->rank; axis++)
    if (is_inner(in->graph, value->shape[axis], first)) return false;
  for (; in != outermost; in = in->outer)
    if (is_inner(in->graph, loop_count(in->graph, in->owner->control), first)) return false;
  return true;
}

/* Outside loops it is an output like any other. */
static bool can_be_watched(const Inside *in, const Value *value) {
  int64_t bytes = value_max_bytes(value), rank = value->rank;
  if (!in->outer) return true;
  for (const Inside *each = in; each->outer; each = each->outer)
    if (!collects(each->owner)) return false;
  if (!keeps_shape(in, value)) return false;
  for (; in->outer; in = in->outer, rank++) bytes = saturating_mul(bytes, in->owner->control->most);
  return rank <= MAX_RANK && bytes <= MOST_COLLECTED;
}

static Value *copied(Graph *graph, const char *name, Value *value) {
  Node *copy = graph_node(graph, op_info(OP_Identity), name, 1, 1);
  copy->inputs[0] = value;
  copy->where = value->where;
  graph_set_output(copy, 0, graph_value(graph, name, value->where));
  return copy->outputs[0];
}

/* The owner's output for one of its body. */
static Value *collected(const Inside *in, Value *value) {
  Graph *outer = in->outer->graph, *body = in->graph;
  Node *owner = in->owner;
  const char *name = value->name ? value->name : owner->name;
  *LIST_APPEND(body->arena, body->outputs, body->n_outputs) = copied(body, name, value);
  int place = body->n_outputs - 1 - (is_op(owner, OP_Loop) ? 1 : 0); /* without the condition */
  while (owner->n_outputs < place) *LIST_APPEND(outer->arena, owner->outputs, owner->n_outputs) = NULL;
  *LIST_APPEND(outer->arena, owner->outputs, owner->n_outputs) = NULL;
  Value *rows = graph_value(outer, name, owner->where);
  graph_set_output(owner, place, rows);
  return rows;
}

static void watch_value(const Inside *in, AllRows *all, Value *value, const Layer *layer, int k) {
  if (!layer->moments[k] || !value || value->data || !can_be_watched(in, value)) return;
  for (; in->outer; in = in->outer) value = collected(in, value);
  Graph *graph = in->graph;
  const char *name = arena_format(graph->arena, "rows_%d", all->n);
  *LIST_ADD(graph->arena, all->list, all->n, all->capacity) = (Rows){layer->moments[k], depth_of(layer, k)};
  *LIST_APPEND(graph->arena, graph->outputs, graph->n_outputs) = copied(graph, name, value);
}

static void watch_node(const Layers *layers, const Inside *in, AllRows *all, Node *node) {
  const Layer *of_first = first_of(layers, node, 0), *of_second = first_of(layers, node, 1);
  if (of_first) watch_value(in, all, node->inputs[0], of_first, 0);
  if (!of_second) return;
  layer_make_y(in->graph, &(Layer){.node = node});
  watch_value(in, all, node->outputs[0], of_second, 1);
  watch_value(in, all, node_input(node, INPUT_H), of_second, 1);
}

static void watch_graph(const Layers *layers, const Inside *in, AllRows *all) {
  for (int n = 0; n < in->graph->n_nodes; n++) {
    Attribute *bodies[MAX_BODIES];
    Node *node = in->graph->nodes[n];
    watch_node(layers, in, all, node);
    for (int b = 0, count = node_bodies(node, bodies); b < count; b++) {
      watch_graph(layers, &(Inside){in, bodies[b]->graph, node}, all);
      bodies[b]->source = NULL; /* shapes are inferred again, from the body as it is now */
    }
  }
  graph_renumber(in->graph);
}

AllRows moments_watch(Layers *layers) {
  AllRows all = {0};
  graph_each(layers->graph, expand_searches);
  watch_graph(layers, &(Inside){.graph = layers->graph}, &all);
  return all;
}

/* ---- sums ---- */

void moments_add(const Rows *rows, const rnncc_tensor *seen, int n_runs) {
  int64_t n = tensor_elements(seen) / rows->depth, most = ceil_div(ROWS_OF_DEPTH * rows->depth, n_runs);
  int64_t taken = min_int(n, most);
  for (int64_t i = 0; i < taken; i++)
    feedback_add(rows->moments, 1, rows->depth, (const float *)seen->data + n * i / taken * rows->depth);
}

/* Of the layer's k-th weights; those that share its moments take it from there. */
static void finish(Layer *layer, int k, Arena *arena) {
  if (!layer->moments[k]) return;
  layer->feedback[k] = feedback_of(arena, layer->moments[k], depth_of(layer, k));
  if (layer->feedback[k]) return;
  warn_at(layer->node->where,
          "--feedback: `%s` has the nearest integers; expected samples that show what it multiplies, found nothing but "
          "zeros, numbers that are not finite, or what no loop can collect",
          weights_name(layer, k));
}

void moments_finish(Layers *layers) {
  for (int i = 0; i < layers->n; i++) {
    Layer *layer = &layers->list[i];
    for (int k = 0; multiplies_rows(layer) && k < layer->kind->n_weights; k++) {
      finish(layer, k, layers->graph->arena);
      layer->feedback[k] = first_of(layers, layer->node, k)->feedback[k];
    }
  }
}
