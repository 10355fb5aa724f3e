/* SPDX-License-Identifier: MIT */
/* ONNX Runtime's own operators of quantised numbers. Each tensor is followed by its scale and its zero point. */
#include "shapes/quantised.h"
#include "shapes/shape.h"

/* Scales and zero points of whole tensors, at these inputs. */
static bool check_whole(Graph *graph, const Node *node, int n, const int *inputs) {
  for (int i = 0; i < n; i++)
    if (!check_one_scale(graph, node, inputs[i])) return false;
  return true;
}

/* A, scale, zero point, B, scale, zero point, scale and zero point of the result. */
bool shape_qlinear_binary(Graph *graph, Node *node) {
  static const int whole[] = {1, 2, 4, 5, 6, 7};
  return check_whole(graph, node, 6, whole) &&
         shape_as(graph, node, OP_Add, 2, (Value *[]){node->inputs[0], node->inputs[3]});
}

/* The condition, A, scale, zero point, B, scale, zero point, scale and zero point of the result. */
bool shape_qlinear_where(Graph *graph, Node *node) {
  static const int whole[] = {2, 3, 5, 6, 7, 8};
  Value *const *in = node->inputs;
  return check_whole(graph, node, 6, whole) && shape_as(graph, node, OP_Where, 3, (Value *[]){in[0], in[1], in[4]});
}

static const int around_one[] = {1, 2, 3, 4};

bool shape_qlinear_unary(Graph *graph, Node *node) {
  return check_whole(graph, node, 4, around_one) && shape_same(graph, node);
}

bool shape_qlinear_softmax(Graph *graph, Node *node) {
  return check_axis(node, "axis", node_int(node, ATTR_axis), node->inputs[0]->rank) >= 0 &&
         shape_qlinear_unary(graph, node);
}

bool shape_qlinear_pool(Graph *graph, Node *node) {
  if (node_int(node, ATTR_channels_last) != 0)
    return shape_unsupported(node, "channels on the last axis (`channels_last`) are not supported");
  return check_whole(graph, node, 4, around_one) && shape_as(graph, node, OP_AveragePool, 1, node->inputs);
}

/* [N, C, ...] or, with the channels last, [N, ..., C]. */
bool shape_qlinear_global_pool(Graph *graph, Node *node) {
  const Value *x = node->inputs[0];
  const Dim *shape[MAX_RANK];
  if (!check_rank(graph, node, 0, 3, MAX_RANK) || !check_whole(graph, node, 4, around_one)) return false;
  int channels = node_int(node, ATTR_channels_last) != 0 ? x->rank - 1 : 1;
  for (int axis = 0; axis < x->rank; axis++)
    shape[axis] = axis == 0 || axis == channels ? x->shape[axis] : dim_const(graph->dims, 1);
  return set_shape(graph, node, 0, x->rank, shape);
}

/* ---- QLinearConcat ---- */

/* Tensor, scale and zero point from `first` on. */
static bool check_triple(Graph *graph, const Node *node, int first) {
  Value *const *in = node->inputs + first;
  if (!dtype_is_byte(in[0]->dtype) || in[1]->dtype != RNNCC_F32 || in[2]->dtype != in[0]->dtype)
    return shape_error(node,
                       "expected a tensor of u8 or i8, an f32 scale and a zero point of the tensor's type from input "
                       "%d on, found %s, %s "
                       "and %s",
                       first, dtype_name(in[0]->dtype), dtype_name(in[1]->dtype), dtype_name(in[2]->dtype));
  return check_one_scale(graph, node, first + 1) && check_one_scale(graph, node, first + 2);
}

/* Scale and zero point of the result, then three inputs for each part. */
bool shape_qlinear_concat(Graph *graph, Node *node) {
  static const int result[] = {0, 1};
  int n = (node->n_inputs - 2) / 3;
  Value **parts = ARENA_ARRAY(graph->arena, Value *, n);
  if (n < 1 || node->n_inputs != 2 + 3 * n)
    return shape_error(node, "expected 2 inputs and 3 for each part, found %d", node->n_inputs);
  if (!check_whole(graph, node, 2, result)) return false;
  for (int i = 0; i < n; i++) {
    if (!check_triple(graph, node, 2 + 3 * i)) return false;
    parts[i] = node->inputs[2 + 3 * i];
  }
  return shape_as(graph, node, OP_Concat, n, parts);
}

/* ---- products ---- */

/* A, scale, zero point, B, scale, zero point, C, scale and zero point of the result, or neither: then it is f32. */
bool shape_qgemm(Graph *graph, Node *node) {
  static const int whole[] = {1, 2, 7, 8};
  Value *const *in = node->inputs;
  Value *operands[] = {in[0], in[3], node_input(node, 6)};
  if (!check_whole(graph, node, 4, whole) || !shape_as(graph, node, OP_Gemm, operands[2] ? 3 : 2, operands))
    return false;
  if (!node_input(node, 7) && node_input(node, 8))
    return shape_error(node, "y_zero_point (input 8) has no y_scale (input 7)");
  node->outputs[0]->dtype = node_input(node, 8) ? in[8]->dtype : node_input(node, 7) ? RNNCC_U8 : RNNCC_F32;
  int64_t columns = node_int(node, ATTR_transB) != 0 ? 0 : 1;
  return check_scales(graph, node, 4, in[3], columns) && check_scales(graph, node, 5, in[3], columns);
}

static bool check_bias(Graph *graph, const Node *node, int input, const Value *b) {
  return check_shape(graph, node, input, 1, &b->shape[b->rank - 1], "the bias, one for each column");
}

/* A, B, their scales, their zero points, bias. */
bool shape_integer_to_float(Graph *graph, Node *node) {
  const Value *a = node->inputs[0], *b = node->inputs[1];
  if (!shape_as(graph, node, OP_MatMul, 2, node->inputs) || !check_rank(graph, node, 1, 2, MAX_RANK)) return false;
  return check_scales_of_matrix(graph, node, 2, a, -2) && check_scales_of_matrix(graph, node, 4, a, -2) &&
         check_scales_of_matrix(graph, node, 3, b, -1) && check_scales_of_matrix(graph, node, 5, b, -1) &&
         check_bias(graph, node, 6, b);
}

/* A of floats, B, its scale, its zero point, bias. */
bool shape_dynamic_matmul(Graph *graph, Node *node) {
  const Value *b = node->inputs[1];
  return shape_as(graph, node, OP_MatMul, 2, node->inputs) && check_rank(graph, node, 1, 2, MAX_RANK) &&
         check_scales_of_matrix(graph, node, 2, b, -1) && check_scales_of_matrix(graph, node, 3, b, -1) &&
         check_bias(graph, node, 4, b);
}
