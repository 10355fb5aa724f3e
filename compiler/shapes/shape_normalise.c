/* SPDX-License-Identifier: MIT */
/* Normalisations by statistics of the input itself: the result has its shape. */
#include "shapes/shape.h"
#include "support/numbers.h"

enum { LRN_MOST_REACH = 65536 }; /* channels on each side: the knobs of templates/lrn.c */

/* One parameter, or one for each element of the axes from `axis` on. */
static bool check_parameters(Graph *graph, const Node *node, int input, int axis) {
  const Value *x = node->inputs[0], *value = node->inputs[input];
  int extra = value->rank - (x->rank - axis);
  bool scalar = true, each = extra >= 0;
  for (int k = 0; k < value->rank; k++) {
    scalar &= dim_upper(value->shape[k]) == 1;
    each &= k < extra ? dim_upper(value->shape[k]) == 1 : same_dim(value->shape[k], x->shape[axis + k - extra]);
  }
  if ((scalar || each) && value->rank <= x->rank) return true;
  return shape_unsupported(node, "input %d is %s; it must be one number, or one for each element of axes %d.. of %s",
                           input, shape_text(graph, value), axis, shape_text(graph, x));
}

static int row_axis(const Node *node) {
  return check_axis(node, "axis", node_int(node, ATTR_axis), node->inputs[0]->rank);
}

bool set_row_statistics(Graph *graph, Node *node, int axis) {
  enum { OF_F32 = 1, OF_BF16 = 16 }; /* TensorProto.DataType */
  const Value *x = node->inputs[0];
  const Dim *rows[MAX_RANK];
  int64_t stash = node_int(node, ATTR_stash_type);
  for (int k = 0; k < x->rank; k++) rows[k] = k < axis ? x->shape[k] : dim_const(graph->dims, 1);
  for (int i = 1; i < node->n_outputs; i++) {
    if (!node->outputs[i]) continue;
    if (stash != OF_F32 && stash != OF_BF16)
      return shape_error(node, "`stash_type` is %lld; it must be 1, f32, or 16, bf16", (long long)stash);
    node->outputs[i]->dtype = stash == OF_F32 ? RNNCC_F32 : RNNCC_BF16;
    set_shape(graph, node, i, x->rank, rows);
  }
  return true;
}

/* ONNX LayerNormalization: rows are the axes from `axis` on; each row's mean and inverse deviation may be wanted. */
bool shape_layer_norm(Graph *graph, Node *node) {
  int axis = row_axis(node);
  if (axis < 0 || !check_parameters(graph, node, 1, axis)) return false;
  if (node_input(node, 2) && !check_parameters(graph, node, 2, axis)) return false;
  return set_row_statistics(graph, node, axis) && shape_same(graph, node);
}

bool shape_rms_norm(Graph *graph, Node *node) {
  int axis = row_axis(node);
  return axis >= 0 && check_parameters(graph, node, 1, axis) && shape_same(graph, node);
}

bool shape_instance_norm(Graph *graph, Node *node) {
  if (!check_rank(graph, node, 0, 3, MAX_RANK)) return false;
  const Dim *C = node->inputs[0]->shape[1];
  for (int input = 1; input < 3; input++)
    if (!check_shape(graph, node, input, 1, &C, "[channels]")) return false;
  return shape_same(graph, node);
}

/* ONNX GroupNormalization has parameters for each channel since opset 21, for each group before. */
bool shape_group_norm(Graph *graph, Node *node) {
  if (!check_rank(graph, node, 0, 2, MAX_RANK)) return false;
  const Value *x = node->inputs[0];
  int64_t groups = node_int(node, ATTR_num_groups);
  const Dim *G = dim_const(graph->dims, groups);
  if (groups < 1) return shape_error(node, "`num_groups` is %lld; it must be at least 1", (long long)groups);
  if (!dim_is_const(x->shape[1]))
    return shape_unsupported(node, "channels must be constant, found %s", shape_text(graph, x));
  if (dim_value(x->shape[1]) % groups)
    return shape_error(node, "`num_groups` is %lld; it must divide the channels of %s", (long long)groups,
                       shape_text(graph, x));
  bool by_group = node->inputs[1]->rank == 1 && same_dim(node->inputs[1]->shape[0], G);
  for (int input = 1; input < 3; input++)
    if (!check_shape(graph, node, input, 1, by_group ? &G : &x->shape[1], by_group ? "[groups]" : "[channels]"))
      return false;
  return shape_same(graph, node);
}

bool shape_lrn(Graph *graph, Node *node) {
  if (!check_rank(graph, node, 0, 2, MAX_RANK)) return false;
  int64_t size = node_int(node, ATTR_size);
  if (size < 1) return shape_error(node, "`size` is %lld; it must be at least 1", (long long)size);
  int64_t channels = dim_upper(node->inputs[0]->shape[1]);
  if (min_int(size / 2, channels - 1) > LRN_MOST_REACH)
    return shape_unsupported(node, "`size` is %lld, of up to %lld channels; at most %d is supported", (long long)size,
                             (long long)channels, 2 * LRN_MOST_REACH);
  return shape_same(graph, node);
}

bool shape_lp_norm(Graph *graph, Node *node) {
  int64_t p = node_int(node, ATTR_p);
  if (p != 1 && p != 2) return shape_error(node, "`p` is %lld; it must be 1 or 2", (long long)p);
  return row_axis(node) >= 0 && shape_same(graph, node);
}
