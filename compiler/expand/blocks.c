/* SPDX-License-Identifier: MIT */
/*
 * Weights that are quantised in blocks, several numbers in a byte, the first in its lowest bits: unpacked to f32. Those
 * of products that are constants are unpacked at compile time (constant_blocks.h).
 */
#include "expand/constant_blocks.h"
#include "expand/quantised.h"
#include "shapes/shape.h"

/* Bytes [..., n] as numbers in f32, [..., n * 8 / bits]. */
static Value *unpacked(const Formula *f, Value *bytes, int64_t bits) {
  static const int64_t places[] = {0, 2, 4, 6}, halves[] = {0, 4};
  const Attribute right = attribute_one_of(ATTR_direction, SHIFT_RIGHT);
  const Dim *shape[MAX_RANK];
  if (bits == 8) return cast(f, bytes, RNNCC_F32);
  Value *shifts = cast(f, bits == 4 ? integers(f, 2, halves) : integers(f, 4, places), RNNCC_U8);
  Value *apart[] = {with_axis(f, bytes, bytes->rank), shifts};
  Value *shifted = build_op(f, OP_BitShift, 2, apart, 1, 1, &right)->outputs[0];
  Value *numbers = apply2(f, OP_BitwiseAnd, shifted, number(f, shifted, (double)((1 << bits) - 1)));
  for (int axis = 0; axis < bytes->rank; axis++) shape[axis] = bytes->shape[axis];
  shape[bytes->rank - 1] = dim_const(f->graph->dims, dim_value(bytes->shape[bytes->rank - 1]) * 8 / bits);
  return reshaped(f, cast(f, numbers, RNNCC_F32), bytes->rank, shape);
}

static Value *in_shape(const Formula *f, Value *x, int rank, const int64_t *extents) {
  const Dim *shape[MAX_RANK];
  for (int axis = 0; axis < rank; axis++) shape[axis] = dim_const(f->graph->dims, extents[axis]);
  return build_reshape(f, x, rank, shape);
}

/* The zero points of blocks [N, blocks, 1]: floats, or packed, where rows of a matrix begin with a byte of their own.
 */
static Value *zero_points(const Formula *f, const Node *node, int64_t N, int64_t blocks) {
  Value *given = node_input(node, 3);
  int64_t bits = node_int(node, ATTR_bits), bytes = (blocks * bits + 7) / 8;
  if (!given) return number(f, node->inputs[0], (double)(1 << (bits - 1)));
  if (given->dtype == RNNCC_U8) {
    const Range used = {1, 0, blocks};
    given = unpacked(f, in_shape(f, given, 2, (const int64_t[]){N, bytes}), bits);
    if (!dim_equals(given->shape[1], blocks)) given = build_slice(f, given, 1, &used);
  }
  return in_shape(f, given, 3, (const int64_t[]){N, blocks, 1});
}

/* In blocks along K; the last one may be longer than K. */
void expand_matmul_n_bits(const Formula *f, const Node *node, Value **results) {
  static const int64_t perm[] = {1, 0};
  int64_t K = node_int(node, ATTR_K), N = node_int(node, ATTR_N), block = node_int(node, ATTR_block_size);
  int64_t blocks = (K + block - 1) / block;
  const Range used = {1, 0, K};
  Value *constant = constant_blocks(f->graph, node);
  if (constant) {
    Value *product = apply2(f, OP_MatMul, node->inputs[0], constant);
    results[0] = node_input(node, 5) ? plus(f, product, node->inputs[5]) : product;
    return;
  }
  Value *numbers = unpacked(f, node->inputs[1], node_int(node, ATTR_bits));
  Value *scales = in_shape(f, node->inputs[2], 3, (const int64_t[]){N, blocks, 1});
  Value *weights = times(f, minus(f, numbers, zero_points(f, node, N, blocks)), scales);
  weights = in_shape(f, weights, 2, (const int64_t[]){N, blocks * block});
  if (blocks * block > K) weights = build_slice(f, weights, 1, &used);
  Value *y = apply2(f, OP_MatMul, node->inputs[0], build_transpose(f, weights, perm));
  results[0] = node_input(node, 5) ? plus(f, y, node->inputs[5]) : y;
}

/* ---- a table, rows of which are read ---- */

typedef struct Table {
  Value *data, *scales, *zeros; /* `zeros` may be NULL */
} Table;

static Table rows_of(const Formula *f, Table table, Value *indices, int axis) {
  return (Table){gathered(f, table.data, indices, axis), gathered(f, table.scales, indices, axis),
                 table.zeros ? gathered(f, table.zeros, indices, axis) : NULL};
}

/* In blocks along `axis`. Absent zero points are 0 of numbers of 4 bits, and the middle of those in bytes. */
static Value *dequantised(const Formula *f, const Node *node, Table table, int axis) {
  bool bytes = table.data->dtype == RNNCC_U8;
  int64_t bits = bytes ? node_int(node, ATTR_bits) : 8, block = node_int(node, ATTR_block_size);
  Value *numbers = unpacked(f, table.data, bits), *zeros = table.zeros ? unpacked(f, table.zeros, bits) : NULL;
  if (zeros)
    zeros = repeated(f, zeros, numbers, axis, block);
  else if (bytes)
    zeros = number(f, numbers, (double)(1 << (bits - 1)));
  if (zeros) numbers = minus(f, numbers, zeros);
  return times(f, numbers, repeated(f, table.scales, numbers, axis, block));
}

/* Rows are read before they are unpacked, so that the table stays packed. */
void expand_gather_blocks(const Formula *f, const Node *node, Value **results) {
  const Value *data = node->inputs[0];
  Value *indices = node->inputs[1];
  Table table = {node->inputs[0], node->inputs[2], node_input(node, 3)};
  int gather = normal_axis(node_int(node, ATTR_gather_axis), data->rank);
  int axis = normal_axis(node_int(node, ATTR_quantize_axis), data->rank);
  if (gather == axis)
    results[0] = gathered(f, dequantised(f, node, table, axis), indices, gather);
  else
    results[0] =
        dequantised(f, node, rows_of(f, table, indices, gather), axis < gather ? axis : axis + indices->rank - 1);
}
