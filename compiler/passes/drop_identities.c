/* SPDX-License-Identifier: MIT */
/* Removes nodes whose output equals an earlier value, byte for byte: their readers read that value. */
#include "passes.h"
#include "shapes/shape.h"

static bool same_type(const Value *a, const Value *b) { return a->dtype == b->dtype && shapes_agree(a, b); }

/* Unsqueeze and Squeeze back: the nearest value up a chain of views that has this one's shape. */
static Value *same_up_the_views(Graph *graph, const Node *node) {
  (void)graph;
  enum { MAX_CHAIN = 8 };
  Value *value = node->inputs[0];
  for (int i = 0; i < MAX_CHAIN; i++) {
    if (same_type(value, node->outputs[0])) return value;
    if (!value->producer || !op_is_view(value->producer->op)) return NULL;
    value = value->producer->inputs[0];
  }
  return NULL;
}

/* Cast to the same type, Expand to the same shape, a list of one. */
static Value *same_if_shape_is(Graph *graph, const Node *node) {
  (void)graph;
  if (node->n_outputs != 1 || !same_type(node->inputs[0], node->outputs[0])) return NULL;
  return node->inputs[0];
}

static Value *same_if_single(Graph *graph, const Node *node) {
  return node->n_inputs == 1 ? same_if_shape_is(graph, node) : NULL;
}

static Value *same_if_sorted(Graph *graph, const Node *node) {
  (void)graph;
  const Attribute *perm = node_attribute(node, ATTR_perm);
  int rank = node->inputs[0]->rank;
  for (int axis = 0; axis < rank; axis++)
    if ((perm ? normal_axis(perm->ints[axis], rank) : rank - 1 - axis) != axis) return NULL;
  return node->inputs[0];
}

static Value *same_if_unpadded(Graph *graph, const Node *node) {
  const Dim *before[MAX_RANK], *after[MAX_RANK];
  if (!read_pads(graph, node, before, after)) bug("the pads were good before");
  for (int axis = 0; axis < node->inputs[0]->rank; axis++)
    if (!dim_equals(before[axis], 0) || !dim_equals(after[axis], 0)) return NULL;
  return node->inputs[0];
}

static Value *same_if_whole(Graph *graph, const Node *node) {
  SliceAxis axes[MAX_RANK];
  if (!same_type(node->inputs[0], node->outputs[0])) return NULL;
  if (!read_slice(graph, node, axes)) bug("the slice was good before");
  for (int axis = 0; axis < node->inputs[0]->rank; axis++)
    if (axes[axis].step != 1) return NULL;
  return node->inputs[0];
}

/* By op: the value that the output equals, or NULL. */
static Value *(*const same_of[N_OPS])(Graph *, const Node *) = {
    [OP_Cast] = same_if_shape_is,     [OP_Concat] = same_if_single,      [OP_Expand] = same_if_shape_is,
    [OP_Flatten] = same_up_the_views, [OP_Identity] = same_up_the_views, [OP_Max] = same_if_single,
    [OP_Min] = same_if_single,        [OP_Pad] = same_if_unpadded,       [OP_Reshape] = same_up_the_views,
    [OP_Slice] = same_if_whole,       [OP_Split] = same_if_shape_is,     [OP_Squeeze] = same_up_the_views,
    [OP_Sum] = same_if_single,        [OP_Transpose] = same_if_sorted,   [OP_Unsqueeze] = same_up_the_views,
};

static Value *same_value(Graph *graph, const Node *node) {
  return same_of[node->op->kind] ? same_of[node->op->kind](graph, node) : NULL;
}

typedef struct Forwarding {
  Graph *graph;
  Value **to;      /* by value id: what to read instead, or NULL */
  bool *is_output; /* by value id: of the graph or of a state */
} Forwarding;

static Value *forwarded(const Forwarding *forwarding, Value *value) {
  while (value && forwarding->to[value->id]) value = forwarding->to[value->id];
  return value;
}

/* A graph output keeps its name: the producer of `same` writes it directly, and readers of `same` read it. Not if
 * `same` is an output too, or a graph input: then a copy is needed. */
static bool forward_output(Forwarding *forwarding, Value *same, Value *output) {
  if (!same->producer || forwarding->is_output[same->id]) return false;
  graph_set_output(same->producer, same->producer_output, output);
  output->elements = same->elements;
  forwarding->to[same->id] = output;
  return true;
}

/* True if the node was removed. */
static bool drop(Forwarding *forwarding, Node *node) {
  Value *same = forwarded(forwarding, same_value(forwarding->graph, node));
  if (!same) return false;
  Value *output = node->outputs[0];
  if (forwarding->is_output[output->id]) return forward_output(forwarding, same, output);
  forwarding->to[output->id] = same;
  return true;
}

static Forwarding forwarding_new(Graph *graph) {
  graph_renumber(graph);
  return (Forwarding){graph, ARENA_ARRAY(graph->arena, Value *, graph->n_values), graph_mark_outputs(graph)};
}

static void forward_inputs(const Forwarding *forwarding, Node *node) {
  for (int i = 0; i < node->n_inputs; i++) node->inputs[i] = forwarded(forwarding, node->inputs[i]);
}

/* needs: infer_shapes. keeps: types, shapes, and the names of outputs. */
void drop_identities(Graph *graph) {
  Forwarding forwarding = forwarding_new(graph);
  int kept = 0;
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n];
    forward_inputs(&forwarding, node);
    if (!drop(&forwarding, node)) graph->nodes[kept++] = node;
  }
  graph->n_nodes = kept;
  for (int n = 0; n < kept; n++) forward_inputs(&forwarding, graph->nodes[n]); /* readers before a renamed output */
  graph_renumber(graph);
}
