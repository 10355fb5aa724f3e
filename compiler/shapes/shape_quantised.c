/* SPDX-License-Identifier: MIT */
/* Quantised tensors, with scales and zero points for the whole tensor or for an axis. */
#include "shapes/quantised.h"

#include <float.h>
#include <math.h>

#include "ir/tensor.h"
#include "shapes/shape.h"

/* Kernels count denormal numbers as zero. A bias in i32 is a sum of products, whose scale may be as small. */
static bool is_scale(const Node *node, double scale) {
  bool of_sums = is_op(node, OP_DequantizeLinear) && node->inputs[0]->dtype == RNNCC_I32;
  return isfinite(scale) && (of_sums ? scale >= 0 : scale >= (double)FLT_MIN);
}

bool check_scale_numbers(const Node *node, int input) {
  const Value *value = node_input(node, input);
  if (!value || !value->data || !dtype_is_float(value->dtype)) return true;
  for (int64_t i = 0; i < value_count(value); i++)
    if (!is_scale(node, value_element(value, i)))
      return shape_error(node,
                         "input %d has the scale %g at position %lld; expected a number above 0 that f32 holds "
                         "without losing digits, from %g on",
                         input, value_element(value, i), (long long)i, (double)FLT_MIN);
  return true;
}

/* One number, or one for each element of the axis of `x`. */
bool check_scales(Graph *graph, const Node *node, int input, const Value *x, int64_t axis) {
  const Value *value = node_input(node, input);
  if (!check_scale_numbers(node, input)) return false;
  if (!value || value->rank == 0 || (value->rank == 1 && value_max_count(value) == 1)) return true;
  int along = check_axis(node, "axis", axis, x->rank);
  if (along < 0) return false;
  if (value->rank == 1 && same_dim(value->shape[0], x->shape[along])) return true;
  return shape_error(node, "input %d must be one number or one for each of axis %lld of %s, found %s", input,
                     (long long)axis, shape_text(graph, x), shape_text(graph, value));
}

/* Of x's rank, with its extents or 1, and 1 along the axis `across`? */
static bool fits_matrices(const Value *value, const Value *x, int across) {
  if (value->rank != x->rank) return false;
  for (int axis = 0; axis < x->rank; axis++) {
    const Dim *own = value->shape[axis];
    if (!dim_equals(own, 1) && (axis == across || !same_dim(own, x->shape[axis]))) return false;
  }
  return true;
}

bool check_scales_of_matrix(Graph *graph, const Node *node, int input, const Value *x, int axis) {
  const Value *value = node_input(node, input);
  if (!value || x->rank > 1) {
    bool whole = value && value->rank > 1 && fits_matrices(value, x, x->rank - (axis == -1 ? 2 : 1));
    return whole ? check_scale_numbers(node, input) : check_scales(graph, node, input, x, axis);
  }
  if (!check_scale_numbers(node, input)) return false;
  return (value->rank < 2 && value_max_count(value) == 1) ||
         shape_error(node, "input %d must be one number, as %s is a vector; found %s", input, shape_text(graph, x),
                     shape_text(graph, value));
}

/* ceil(extent / block) numbers along the axis, and as many as x has along the others. */
static bool check_blocks(Graph *graph, const Node *node, int input, int axis, int64_t block) {
  if (!check_scale_numbers(node, input)) return false;
  const Value *x = node->inputs[0], *value = node_input(node, input);
  bool good = !value || value->rank == x->rank;
  for (int i = 0; value && good && i < x->rank; i++) {
    const Dim *due = i == axis ? dim_const(graph->dims, (dim_value(x->shape[i]) + block - 1) / block) : x->shape[i];
    good = same_dim(value->shape[i], due);
  }
  return good || shape_error(node, "input %d must have a number for each block of %lld along axis %d of %s, found %s",
                             input, (long long)block, axis, shape_text(graph, x), shape_text(graph, value));
}

static bool check_blocked(Graph *graph, const Node *node) {
  const Value *x = node->inputs[0];
  int64_t block = node_int(node, ATTR_block_size);
  int axis = check_axis(node, "axis", node_int(node, ATTR_axis), x->rank);
  if (block < 0) return shape_error(node, "`block_size` is %lld; expected 0 or more", (long long)block);
  if (axis < 0) return false;
  if (!dim_is_const(x->shape[axis]))
    return shape_unsupported(node, "blocks (`block_size`) along axis %d of %s, which is known at run time only", axis,
                             shape_text(graph, x));
  return check_blocks(graph, node, 1, axis, block) && check_blocks(graph, node, 2, axis, block);
}

static bool check_linear(Graph *graph, const Node *node) {
  if (node_int(node, ATTR_block_size) != 0) return check_blocked(graph, node);
  return check_scales(graph, node, 1, node->inputs[0], node_int(node, ATTR_axis)) &&
         check_scales(graph, node, 2, node->inputs[0], node_int(node, ATTR_axis));
}

static bool is_quantised(DType dtype) {
  return (dtype_is_integer(dtype) && dtype_info(dtype)->bits <= 16) ||
         (dtype_is_coded(dtype) && dtype_is_moved(dtype) && dtype != RNNCC_F8E8M0);
}

static bool is_precision(DType dtype) { return dtype == RNNCC_F32 || dtype_is_stored(dtype); }

/* The type is the zero point's, else the attribute's, else u8. */
bool shape_quantize(Graph *graph, Node *node) {
  const Value *zero = node_input(node, 2);
  const Attribute *given = node_attribute(node, ATTR_output_dtype), *precision = node_attribute(node, ATTR_precision);
  DType wanted = node_dtype(node, ATTR_output_dtype), dtype = zero ? zero->dtype : given ? wanted : RNNCC_U8;
  if (zero && given && wanted != zero->dtype)
    return shape_error(node, "`output_dtype` is \"%.80s\", and the zero point is %s; expected one type", given->s,
                       dtype_name(zero->dtype));
  if (!is_quantised(dtype))
    return shape_unsupported(node,
                             "`output_dtype` is \"%.80s\"; it may be an integer of 2 to 16 bits, or a float of 4 "
                             "or 8 with a sign",
                             given->s);
  if (precision && !is_precision(node_dtype(node, ATTR_precision)))
    return shape_unsupported(node, "`precision` is \"%.80s\"; it may be f32, f16 or bf16", precision->s);
  if (!check_linear(graph, node)) return false;
  node->outputs[0]->dtype = dtype;
  return shape_same(graph, node);
}

/* The type is the attribute's, else the scale's. */
bool shape_dequantize(Graph *graph, Node *node) {
  const Attribute *given = node_attribute(node, ATTR_output_dtype);
  DType dtype = given ? node_dtype(node, ATTR_output_dtype) : node->inputs[1]->dtype;
  if (!given && !is_precision(dtype))
    return shape_error(node, "a scale of type %s needs the attribute `output_dtype`", dtype_name(dtype));
  if (!is_precision(dtype))
    return shape_unsupported(node, "`output_dtype` is \"%.80s\"; it may be f32, f16 or bf16", given->s);
  if (!check_linear(graph, node)) return false;
  node->outputs[0]->dtype = dtype;
  return shape_same(graph, node);
}

bool shape_dynamic_quantize(Graph *graph, Node *node) {
  for (int output = 1; output < 3; output++) set_shape(graph, node, output, 0, NULL);
  return shape_same(graph, node);
}

/* Sets the output's shape to that of the op on inputs `a` and `b`. */
static bool shape_of(Graph *graph, const Node *node, OpKind op, int a, int b) {
  return shape_as(graph, node, op, 2, (Value *[]){node->inputs[a], node->inputs[b]});
}

/* Zero points of the rows of the first operand, and of the columns of the second. */
static bool check_product(Graph *graph, const Node *node, int a, int a_first, int a_last, int b, int b_first,
                          int b_last) {
  bool good = true;
  for (int input = a_first; input <= a_last; input++)
    good &= check_scales_of_matrix(graph, node, input, node->inputs[a], -2);
  for (int input = b_first; input <= b_last; input++)
    good &= check_scales_of_matrix(graph, node, input, node->inputs[b], -1);
  return good;
}

bool shape_matmul_integer(Graph *graph, Node *node) {
  return shape_of(graph, node, OP_MatMul, 0, 1) && check_product(graph, node, 0, 2, 2, 1, 3, 3);
}

/* Those of the result may be of its rows, too, if they say so by their rank. */
static bool check_result(Graph *graph, const Node *node, int input) {
  const Value *value = node_input(node, input), *y = node->outputs[0];
  bool of_rows = value && value->rank > 1 && fits_matrices(value, y, y->rank - 1);
  return of_rows ? check_scale_numbers(node, input) : check_scales_of_matrix(graph, node, input, y, -1);
}

bool shape_qlinear_matmul(Graph *graph, Node *node) {
  return shape_of(graph, node, OP_MatMul, 0, 3) && check_product(graph, node, 0, 1, 2, 3, 4, 5) &&
         check_result(graph, node, 6) && check_result(graph, node, 7);
}

bool check_one_scale(Graph *graph, const Node *node, int input) {
  const Value *value = node_input(node, input);
  if (!check_scale_numbers(node, input)) return false;
  return !value || value_max_count(value) == 1 ||
         shape_unsupported(node, "input %d must be a single number, found %s", input, shape_text(graph, value));
}

/* 2^24 by 255^2: what f32 adds exactly, see expand/integer_products.c. */
enum { MAX_TAPS = 258 };

bool has_few_taps(const Value *w) {
  int64_t taps = 1;
  for (int axis = 2; axis < w->rank; axis++) taps *= dim_upper(w->shape[axis]);
  return taps <= MAX_TAPS;
}

static bool check_taps(Graph *graph, const Node *node, const Value *w) {
  return has_few_taps(w) ||
         shape_unsupported(node, "the window of %s has more than %d elements, beyond which sums may be rounded",
                           shape_text(graph, w), (int)MAX_TAPS);
}

bool shape_conv_integer(Graph *graph, Node *node) {
  return shape_of(graph, node, OP_Conv, 0, 1) && check_one_scale(graph, node, 2) &&
         check_scales(graph, node, 3, node->inputs[1], 0) && check_taps(graph, node, node->inputs[1]);
}

bool shape_qlinear_conv(Graph *graph, Node *node) {
  static const int scalars[] = {1, 2, 6, 7};
  const Value *w = node->inputs[3];
  if (!shape_of(graph, node, OP_Conv, 0, 3) || !check_taps(graph, node, w)) return false;
  for (int i = 0; i < 4; i++)
    if (!check_one_scale(graph, node, scalars[i])) return false;
  return check_scales(graph, node, 4, w, 0) && check_scales(graph, node, 5, w, 0) &&
         check_shape(graph, node, 8, 1, w->shape, "the bias, [M]");
}

bool shape_conv_to_float(Graph *graph, Node *node) {
  const Value *w = node->inputs[1];
  return shape_of(graph, node, OP_Conv, 0, 1) && check_taps(graph, node, w) && check_one_scale(graph, node, 2) &&
         check_scales(graph, node, 3, w, 0) && check_one_scale(graph, node, 4) && check_scales(graph, node, 5, w, 0) &&
         check_shape(graph, node, 6, 1, w->shape, "the bias, [M]");
}
