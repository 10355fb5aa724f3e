/* SPDX-License-Identifier: MIT */
/*
 * Concat and Split of whole channel blocks without copying: inputs of a Concat are written to their place in the
 * result, and outputs of a Split are read in place. The last Concat takes its inputs first: in DenseNet each Concat
 * begins with the one before, which becomes a part itself.
 */
#include "layout/layout.h"
#include "passes.h"

/* By value id: can all readers read the value as a part, with a larger stride between images? Its place must be
 * constant. */
static bool *find_movable(Graph *graph) {
  bool *movable = ARENA_ARRAY(graph->arena, bool, graph->n_values);
  for (int i = 0; i < graph->n_values; i++)
    movable[i] = graph->values[i]->channel_block != 0 && has_constant_plane(graph->values[i]);
  for (int n = 0; n < graph->n_nodes; n++) {
    const Node *node = graph->nodes[n];
    bool reads_parts = is_blocked(node) || node->op == &op_layout_transform;
    for (int i = 0; i < node->n_inputs; i++)
      if (node->inputs[i] && !reads_parts && !reads_any_blocks(node, i)) movable[node->inputs[i]->id] = false;
  }
  for (int i = 0; i < graph->n_outputs; i++) movable[graph->outputs[i]->id] = false;
  for (int i = 0; i < graph->n_states; i++) movable[graph->states[i].output->id] = false;
  return movable;
}

static void make_part(Value *part, Value *whole, int64_t first_block) {
  part->view_of = whole;
  part->first_block = first_block;
}

static int64_t channels_of(const Value *value) { return dim_value(value->shape[1]); }

/* Do all inputs already lie one after the other in one whole? Then the result is that part of it. */
static bool inputs_are_neighbours(const Node *concat) {
  const Value *first = concat->inputs[0];
  int64_t at = first->first_block;
  for (int i = 0; i < concat->n_inputs; i++) {
    const Value *input = concat->inputs[i];
    if (!value_is_part(input) || input->view_of != first->view_of || input->first_block != at) return false;
    at += channels_of(input) / input->channel_block;
  }
  return true;
}

/* Then it is copied to its other places, from its own: a kernel does not read what it writes. */
static bool is_read_again(const Node *node, int input) {
  for (int i = 0; i < node->n_inputs; i++)
    if (i != input && node->inputs[i] == node->inputs[input]) return true;
  return false;
}

static void place_concat(const bool *movable, Node *node) {
  Value *y = node->outputs[0];
  if (!y->view_of && movable[y->id] && inputs_are_neighbours(node)) {
    make_part(y, node->inputs[0]->view_of, node->inputs[0]->first_block);
    return;
  }
  int64_t channel = 0;
  for (int i = 0; i < node->n_inputs; i++) {
    Value *x = node->inputs[i];
    bool aligned = channel % y->channel_block == 0, last = i == node->n_inputs - 1;
    bool whole_blocks = last || channels_of(x) % y->channel_block == 0;
    bool fits = aligned && whole_blocks && x->channel_block == y->channel_block && !is_read_again(node, i);
    if (fits && !x->view_of && x->producer && movable[x->id]) make_part(x, y, channel / y->channel_block);
    channel += channels_of(x);
  }
}

static bool along_channels(const Node *node, OpKind op) {
  return is_blocked(node) && is_op(node, op) && normal_axis(node_int(node, ATTR_axis), node->inputs[0]->rank) == 1;
}

/* Is the value copied into that whole by a Concat? As a part of it, the copy would read what it writes. */
static bool is_copied_into(const Graph *graph, const Value *value, const Value *whole) {
  for (int n = 0; n < graph->n_nodes; n++) {
    const Node *node = graph->nodes[n];
    bool into = along_channels(node, OP_Concat) && value_root(node->outputs[0]) == whole;
    for (int i = 0; into && i < node->n_inputs; i++)
      if (node->inputs[i] == value) return true;
  }
  return false;
}

static void place_split(const Graph *graph, const bool *movable, Node *node) {
  Value *x = node->inputs[0];
  int64_t channel = 0;
  for (int i = 0; i < node->n_outputs; i++) {
    Value *y = node->outputs[i];
    bool fits = y && channel % x->channel_block == 0 && !is_copied_into(graph, y, value_root(x));
    if (fits && !y->view_of && movable[y->id]) make_part(y, x, channel / x->channel_block);
    channel += y ? channels_of(y) : 0;
  }
}

/* needs: insert_layout_transforms, dense ids. keeps: what nodes compute. Sets view_of and first_block. */
void place_parts(Graph *graph) {
  const bool *movable = find_movable(graph);
  for (int n = graph->n_nodes - 1; n >= 0; n--)
    if (along_channels(graph->nodes[n], OP_Concat)) place_concat(movable, graph->nodes[n]);
  for (int n = 0; n < graph->n_nodes; n++)
    if (along_channels(graph->nodes[n], OP_Split)) place_split(graph, movable, graph->nodes[n]);
}
