/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/stack.h"

#include "ir/family.h"
#include "kernels/recurrent/bf16.h"
#include "kernels/recurrent/cell.h"
#include "kernels/recurrent/int8.h"
#include "passes.h"

enum { OUTPUT_Y = 0, NO_STACK = -1 };

/* ---- rows of layers ---- */

/* Layers of integers, and of matrices, compute no steps of each other. */
static bool recurrent(const Graph *graph, const Node *node) {
  if (node->op->family != &family_recurrent || int8_asked(node)) return false;
  return !bf16_in_matrices(graph->config->target, node);
}

/* The layer whose Y, through views, is the X of `node` at the same times; NULL: none. */
static Node *layer_before(const Graph *graph, const Node *node) {
  const Value *x = node->inputs[INPUT_X], *y = value_root(node->inputs[INPUT_X]);
  Node *before = y->producer;
  if (!before || !recurrent(graph, before) || y->producer_output != OUTPUT_Y) return NULL;
  const Value *x_before = before->inputs[INPUT_X];
  bool forward = node_word(node, ATTR_direction) == DIRECTION_forward;
  bool forward_before = node_word(before, ATTR_direction) == DIRECTION_forward;
  bool same_layout = node_int(node, ATTR_layout) == node_int(before, ATTR_layout);
  bool same_extents = x->shape[0] == x_before->shape[0] && x->shape[1] == x_before->shape[1];
  return forward && forward_before && same_layout && same_extents ? before : NULL;
}

typedef struct Rows {
  Graph *graph;
  int n_stacks;
  Stack *stacks;
  int *stack; /* by node id: index of the stack of a layer, or of a view between two layers; or NO_STACK */
} Rows;

/* By node id: the next layer of its row; of several readers the first one. */
static Node **find_followers(const Graph *graph) {
  Node **after = ARENA_ARRAY(graph->arena, Node *, graph->n_nodes);
  for (int i = 0; i < graph->n_nodes; i++) {
    Node *before = recurrent(graph, graph->nodes[i]) ? layer_before(graph, graph->nodes[i]) : NULL;
    if (before && !after[before->id]) after[before->id] = graph->nodes[i];
  }
  return after;
}

static void add_layer(Rows *rows, Stack *stack, Node *layer) {
  int index = (int)(stack - rows->stacks);
  rows->stack[layer->id] = index;
  const Value *view = stack->n_layers ? layer->inputs[INPUT_X] : NULL;
  for (; view && view->view_of; view = view->view_of) rows->stack[view->producer->id] = index;
  stack->layers[stack->n_layers++] = layer;
}

static Rows find_rows(Graph *graph) {
  Arena *arena = graph->arena;
  Rows rows = {.graph = graph, .stack = ARENA_ARRAY(arena, int, graph->n_nodes)};
  Node **after = find_followers(graph);
  for (int i = 0; i < graph->n_nodes; i++) {
    rows.stack[i] = NO_STACK;
    if (after[i]) rows.n_stacks++; /* an upper bound */
  }
  rows.stacks = ARENA_ARRAY(arena, Stack, rows.n_stacks);
  rows.n_stacks = 0;
  for (int i = 0; i < graph->n_nodes; i++) {
    if (!after[i] || rows.stack[i] != NO_STACK) continue;
    Stack *stack = &rows.stacks[rows.n_stacks++];
    int n_layers = 0;
    for (const Node *layer = graph->nodes[i]; layer; layer = after[layer->id]) n_layers++;
    stack->layers = ARENA_ARRAY(arena, Node *, n_layers);
    for (Node *layer = graph->nodes[i]; layer; layer = after[layer->id]) add_layer(&rows, stack, layer);
  }
  return rows;
}

/* ---- order: a stack's layers become consecutive, with only views between ---- */

typedef struct Order {
  const Rows *rows;
  int count;
  Node **nodes;
  bool *placed; /* by node id */
} Order;

/* Are all inputs of the node placed, except the X of a layer inside a stack and its views? */
static bool ready(const Order *order, const Node *node) {
  const int *stack = order->rows->stack;
  for (int i = 0; i < node->n_inputs; i++) {
    const Node *producer = node->inputs[i] ? node->inputs[i]->producer : NULL;
    if (!producer || order->placed[producer->id]) continue;
    if (i != INPUT_X || stack[node->id] == NO_STACK || stack[producer->id] != stack[node->id]) return false;
  }
  return true;
}

static void place(Order *order, Node *node) {
  order->placed[node->id] = true;
  order->nodes[order->count++] = node;
}

/* Are all outside inputs of the stack's nodes placed? */
static bool stack_ready(const Order *order, const Stack *stack) {
  const Rows *rows = order->rows;
  const Node *first = stack->layers[0], *last = stack->layers[stack->n_layers - 1];
  for (int i = first->id; i <= last->id; i++)
    if (rows->stack[i] == rows->stack[first->id] && !ready(order, rows->graph->nodes[i])) return false;
  return true;
}

static void place_stack(Order *order, const Stack *stack) {
  const Rows *rows = order->rows;
  const Node *first = stack->layers[0], *last = stack->layers[stack->n_layers - 1];
  for (int i = first->id; i <= last->id; i++)
    if (rows->stack[i] == rows->stack[first->id]) place(order, rows->graph->nodes[i]);
}

static bool last_of(const Stack *stack, const Node *node) { return stack->layers[stack->n_layers - 1] == node; }

/* One walk over nodes that are not placed. A stack is placed at its last layer. */
static void place_what_is_ready(Order *order) {
  const Rows *rows = order->rows;
  for (int i = 0; i < rows->graph->n_nodes; i++) {
    Node *node = rows->graph->nodes[i];
    if (order->placed[i]) continue;
    const Stack *stack = rows->stack[i] == NO_STACK ? NULL : &rows->stacks[rows->stack[i]];
    if (!stack && ready(order, node)) place(order, node);
    if (stack && last_of(stack, node) && stack_ready(order, stack)) place_stack(order, stack);
  }
}

/* Dissolves a stack that no order allows, because a layer also depends on an earlier layer through other nodes. */
static void dissolve_unplaced_stack(const Order *order, Rows *rows) {
  int n_nodes = rows->graph->n_nodes, first = 0;
  while (order->placed[first] || rows->stack[first] == NO_STACK) first++;
  int stack = rows->stack[first];
  rows->stacks[stack].n_layers = 0;
  for (int i = first; i < n_nodes; i++)
    if (rows->stack[i] == stack) rows->stack[i] = NO_STACK;
}

/* Each walk but the last places or dissolves a stack. */
static void bring_together(Graph *graph, Rows *rows) {
  Order order = {.rows = rows,
                 .nodes = ARENA_ARRAY(graph->arena, Node *, graph->n_nodes),
                 .placed = ARENA_ARRAY(graph->arena, bool, graph->n_nodes)};
  while (order.count < graph->n_nodes) {
    int before = order.count;
    place_what_is_ready(&order);
    if (order.count == before) dissolve_unplaced_stack(&order, rows);
  }
  graph->nodes = order.nodes;
  graph->node_capacity = graph->n_nodes;
}

/* ---- the pass ---- */

static void keep_stacks(Graph *graph, const Rows *rows) {
  graph->stacks = rows->stacks;
  graph->n_stacks = 0;
  for (int i = 0; i < rows->n_stacks; i++)
    if (rows->stacks[i].n_layers) graph->stacks[graph->n_stacks++] = rows->stacks[i];
}

/* needs: alias_views. keeps: everything except the order of nodes. Sets graph->stacks; afterwards only views are
 * between a stack's layers. */
void find_stacks(Graph *graph) {
  Rows rows = find_rows(graph);
  if (!rows.n_stacks) return;
  bring_together(graph, &rows);
  keep_stacks(graph, &rows);
  graph_renumber(graph);
}

const Stack *stack_of(const Graph *graph, const Node *node, int *layer) {
  for (int i = 0; i < graph->n_stacks; i++)
    for (int l = 0; l < graph->stacks[i].n_layers; l++)
      if (graph->stacks[i].layers[l] == node) return *layer = l, &graph->stacks[i];
  return NULL;
}
