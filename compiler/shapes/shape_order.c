/* SPDX-License-Identifier: MIT */
/* Ops that reorder or select elements: TopK, ReverseSequence, Trilu, Tile, DepthToSpace,
 * SpaceToDepth. */
#include "shapes/shape.h"

/* One integer that must be known at compile time; false after an error. */
static bool operand_number(Graph *graph, const Node *node, int input, const Dim **number) {
  DimList list;
  if (!operand_dims(graph, node, ATTR_NONE, input, &list)) return false;
  if (list.given && list.n != 1) return shape_error(node, "input %d must be one number", input);
  if (list.given) *number = list.items[0];
  return true;
}

bool shape_top_k(Graph *graph, Node *node) {
  const Value *input = node->inputs[0];
  int axis = check_axis(node, "axis", node_int(node, ATTR_axis), input->rank);
  const Dim *k, *shape[MAX_RANK];
  if (axis < 0 || !operand_number(graph, node, 1, &k)) return false;
  const Dim *extent = input->shape[axis];
  if (!dim_at_most(graph->dims, k, extent))
    return shape_error(node, "k is %s, but axis %d of %s may have fewer elements", dim_text(graph, k), axis,
                       shape_text(graph, input));
  for (int i = 0; i < input->rank; i++) shape[i] = i == axis ? k : input->shape[i];
  set_shape(graph, node, 0, input->rank, shape);
  return set_shape(graph, node, 1, input->rank, shape);
}

/* One of the first two axes is time, the other one the batch. */
bool shape_reverse_sequence(Graph *graph, Node *node) {
  const Value *input = node->inputs[0];
  int64_t batch = node_int(node, ATTR_batch_axis), time = node_int(node, ATTR_time_axis);
  if (!check_rank(graph, node, 0, 2, MAX_RANK)) return false;
  if (!(batch == 0 && time == 1) && !(batch == 1 && time == 0))
    return shape_error(node, "`batch_axis` is %lld and `time_axis` %lld; one must be 0 and the other one 1",
                       (long long)batch, (long long)time);
  const Dim *lengths[] = {input->shape[batch]};
  if (!check_shape(graph, node, 1, 1, lengths, "the sequence lengths, [batch]")) return false;
  return shape_same(graph, node);
}

bool shape_trilu(Graph *graph, Node *node) {
  const Dim *k;
  if (!check_rank(graph, node, 0, 2, MAX_RANK) || !operand_number(graph, node, 1, &k)) return false;
  return shape_same(graph, node);
}

bool shape_tile(Graph *graph, Node *node) {
  const Value *input = node->inputs[0];
  DimList repeats;
  if (!operand_dims(graph, node, ATTR_NONE, 1, &repeats)) return false;
  if (repeats.n != input->rank)
    return shape_error(node, "there are %d repeats, but the input is %s", repeats.n, shape_text(graph, input));
  const Dim *one = dim_const(graph->dims, 1), *shape[MAX_RANK];
  int axes = 0;
  for (int axis = 0; axis < input->rank; axis++) {
    shape[axis] = dim_mul(graph->dims, input->shape[axis], repeats.items[axis]);
    axes += (input->shape[axis] != one) + (repeats.items[axis] != one);
  }
  if (axes > MAX_RANK)
    return shape_unsupported(node,
                             "%d axes, of which too many are repeated: one that is counts twice; at most %d are "
                             "supported",
                             input->rank, MAX_RANK);
  return set_shape(graph, node, 0, input->rank, shape);
}

static bool read_block(Graph *graph, const Node *node, int64_t *block) {
  *block = node_int(node, ATTR_blocksize);
  if (*block < 1 || *block > INT32_MAX)
    return shape_error(node, "`blocksize` is %lld; it must be at least 1", (long long)*block);
  return check_rank(graph, node, 0, 4, 4);
}

/* extent / by, which must be exact. */
static bool divided(Graph *graph, const Node *node, const Dim *extent, int64_t by, const char *what, const Dim **part) {
  const Dim *divisor = dim_const(graph->dims, by);
  *part = dim_div(graph->dims, extent, divisor);
  return same_dim(dim_mul(graph->dims, *part, divisor), extent) ||
         shape_error(node, "the %s is %s, no multiple of %lld", what, dim_text(graph, extent), (long long)by);
}

bool shape_depth_to_space(Graph *graph, Node *node) {
  int64_t block;
  const Dim *shape[4];
  if (!read_block(graph, node, &block)) return false;
  const Dim **in = node->inputs[0]->shape, *side = dim_const(graph->dims, block);
  shape[0] = in[0];
  if (!divided(graph, node, in[1], block * block, "number of channels", &shape[1])) return false;
  for (int axis = 2; axis < 4; axis++) shape[axis] = dim_mul(graph->dims, in[axis], side);
  return set_shape(graph, node, 0, 4, shape);
}

bool shape_space_to_depth(Graph *graph, Node *node) {
  int64_t block;
  const Dim *shape[4];
  if (!read_block(graph, node, &block)) return false;
  const Dim **in = node->inputs[0]->shape;
  shape[0] = in[0];
  shape[1] = dim_mul(graph->dims, in[1], dim_const(graph->dims, block * block));
  if (!divided(graph, node, in[2], block, "height", &shape[2])) return false;
  if (!divided(graph, node, in[3], block, "width", &shape[3])) return false;
  return set_shape(graph, node, 0, 4, shape);
}
