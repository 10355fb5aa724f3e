/* SPDX-License-Identifier: MIT */
/* Inserts a transform where a node reads another layout than its input has; readers of one layout share a transform. */
#include "ir/family.h"
#include "layout/layout.h"
#include "machine/targets.h"
#include "passes.h"
#include "support/list.h"

const OpInfo op_layout_transform = {
    .kind = OP_LayoutTransform,
    .name = "LayoutTransform",
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .attributes = (const AttributeSpec[]){{0}},
    .layout = LAYOUT_TOLERANT,
    .family = &family_layout,
};

typedef struct Transform {
  Value *from, *to;
} Transform;

typedef struct Transforms {
  int count, capacity;
  Transform *list;
} Transforms;

/* `to` becomes the value in its own layout. */
static void add_transform(Graph *graph, Value *from, Value *to) {
  Node *node = graph_node(graph, &op_layout_transform, from->name, 1, 1);
  node->where = from->where;
  node->inputs[0] = from;
  graph_set_output(node, 0, to);
}

Value *layout_transform(Graph *graph, Value *value, int block) {
  Value *to = graph_value_like(graph, value->name, value->where, value);
  to->channel_block = block;
  add_transform(graph, value, to);
  return to;
}

/* The value in blocks of `block`; appends a transform unless there is one. Without layout planning none are shared. */
static Value *in_layout(Graph *graph, Transforms *made, Value *value, int block) {
  bool shared = graph->config->layout_search != LAYOUT_SEARCH_NONE;
  for (int i = 0; shared && i < made->count; i++)
    if (made->list[i].from == value && made->list[i].to->channel_block == block) return made->list[i].to;
  Value *to = layout_transform(graph, value, block);
  *LIST_ADD(graph->arena, made->list, made->count, made->capacity) = (Transform){value, to};
  return to;
}

/* Where the bytes are the same, a row-major value counts as blocked, but never as narrow: narrow images lie closer
 * together. */
bool is_as_wanted(const Graph *graph, const Value *value, int block) {
  if (value->channel_block == block) return true;
  if (block && block < graph->config->target->lanes) return false;
  return can_be_blocked(value) && same_bytes(value, block ? block : value->channel_block);
}

/* Also in the node's prologue and in the members of a chain. */
static void read_instead(Node *node, int input, Value *value) {
  const Value *before = node->inputs[input];
  node->inputs[input] = value;
  if (input == 0 && node->n_prologue) node->prologue[0]->inputs[0] = value;
  for (int m = 0; m < node->n_members; m++)
    for (int i = 0; i < node->members[m]->n_inputs; i++)
      if (node->members[m]->inputs[i] == before) node->members[m]->inputs[i] = value;
}

/* Without layout planning (NeoCPU, Table 3, second row) a blocked output is transformed at once, so that all readers
 * get it row-major. */
static void give_row_major(Graph *graph, Node *node) {
  for (int i = 0; i < node->n_outputs; i++) {
    Value *value = node->outputs[i];
    if (!value || !value->channel_block || same_bytes(value, value->channel_block)) continue;
    Value *blocked = graph_value_like(graph, value->name, value->where, value);
    blocked->channel_block = value->channel_block;
    value->channel_block = 0;
    graph_set_output(node, i, blocked);
    add_transform(graph, blocked, value);
  }
}

/* Families pack constants, but for what a node is about: a convolution's image may be one, by weights of the run. */
static bool is_packed(const Node *node, int input) {
  return node->inputs[input]->data && !(input == 0 && node->op->family && node->op->family->takes_constant_data);
}

static void settle_inputs(Graph *graph, Transforms *made, Node *node) {
  for (int i = 0; i < node->n_inputs; i++) {
    Value *value = node->inputs[i];
    if (!value || is_packed(node, i) || (!is_blocked(node) && !value->channel_block)) continue;
    int block = input_block(graph, node, node->layout, i);
    if (!is_as_wanted(graph, value, block)) read_instead(node, i, in_layout(graph, made, value, block));
  }
}

/* needs: choose_layouts. keeps: what nodes compute. Afterwards every input has the layout that its node reads, and the
 * graph's inputs, outputs and states are row-major. */
void insert_layout_transforms(Graph *graph) {
  Transforms made = {0};
  Node **nodes;
  int n_nodes = graph_take_nodes(graph, &nodes);
  for (int n = 0; n < n_nodes; n++) {
    settle_inputs(graph, &made, nodes[n]);
    graph_append(graph, nodes[n]);
    if (graph->config->layout_search == LAYOUT_SEARCH_NONE && is_blocked(nodes[n])) give_row_major(graph, nodes[n]);
  }
  for (int i = 0; i < graph->n_outputs; i++)
    if (!is_as_wanted(graph, graph->outputs[i], 0)) graph->outputs[i] = in_layout(graph, &made, graph->outputs[i], 0);
  for (int i = 0; i < graph->n_states; i++)
    if (!is_as_wanted(graph, graph->states[i].output, 0))
      graph->states[i].output = in_layout(graph, &made, graph->states[i].output, 0);
  graph_renumber(graph);
}
