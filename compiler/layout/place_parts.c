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
    if (aligned && whole_blocks && !x->view_of && x->producer && x->channel_block == y->channel_block && movable[x->id])
      make_part(x, y, channel / y->channel_block);
    channel += channels_of(x);
  }
}

static void place_split(const bool *movable, Node *node) {
  Value *x = node->inputs[0];
  int64_t channel = 0;
  for (int i = 0; i < node->n_outputs; i++) {
    Value *y = node->outputs[i];
    if (y && channel % x->channel_block == 0 && !y->view_of && movable[y->id])
      make_part(y, x, channel / x->channel_block);
    channel += y ? channels_of(y) : 0;
  }
}

static bool along_channels(const Node *node, OpKind op) {
  return is_blocked(node) && is_op(node, op) && normal_axis(node_int(node, ATTR_axis), node->inputs[0]->rank) == 1;
}

/* needs: insert_layout_transforms, dense ids. keeps: what nodes compute. Sets view_of and first_block. */
void place_parts(Graph *graph) {
  const bool *movable = find_movable(graph);
  for (int n = graph->n_nodes - 1; n >= 0; n--)
    if (along_channels(graph->nodes[n], OP_Concat)) place_concat(movable, graph->nodes[n]);
  for (int n = 0; n < graph->n_nodes; n++)
    if (along_channels(graph->nodes[n], OP_Split)) place_split(movable, graph->nodes[n]);
}
