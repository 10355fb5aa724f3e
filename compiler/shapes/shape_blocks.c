/* SPDX-License-Identifier: MIT */
/* ONNX Runtime's own operators of weights that are quantised in blocks, several numbers in a byte. */
#include "shapes/shape.h"

/* Numbers in `n` bytes, or bytes for n numbers. */
static int64_t numbers_in(int64_t n, int64_t bits) { return n * 8 / bits; }
static int64_t bytes_of(int64_t n, int64_t bits) { return (n * bits + 7) / 8; }

static bool check_bits(const Node *node) {
  int64_t bits = node_int(node, ATTR_bits), block = node_int(node, ATTR_block_size);
  if (bits != 2 && bits != 4 && bits != 8)
    return shape_unsupported(node, "`bits` is %lld; it may be 2, 4 or 8", (long long)bits);
  return (block >= 16 && block <= INT32_MAX && (block & (block - 1)) == 0) ||
         shape_error(node, "`block_size` is %lld; it must be a power of two, at least 16", (long long)block);
}

/* As many elements as [rows, columns], in that shape or flat. */
static bool check_table(Graph *graph, const Node *node, int input, int64_t rows, int64_t columns) {
  const Value *x = node_input(node, input);
  if (!x) return true;
  bool flat = x->rank == 1 && dim_equals(x->shape[0], rows * columns);
  bool matrix = x->rank == 2 && dim_equals(x->shape[0], rows) && dim_equals(x->shape[1], columns);
  return flat || matrix ||
         shape_error(node, "input %d must be [%lld, %lld], or as many in a row, found %s", input, (long long)rows,
                     (long long)columns, shape_text(graph, x));
}

/* A [..., K]; B [N, blocks, bytes of a block]; scales and zero points of each block; bias [N]. */
bool shape_matmul_n_bits(Graph *graph, Node *node) {
  const Value *a = node->inputs[0], *zero = node_input(node, 3);
  int64_t K = node_int(node, ATTR_K), N = node_int(node, ATTR_N), block = node_int(node, ATTR_block_size);
  int64_t bits = node_int(node, ATTR_bits);
  const Dim *shape[MAX_RANK];
  if (!check_bits(node) || !check_rank(graph, node, 0, 1, MAX_RANK)) return false;
  if (K < 1 || N < 1 || K > INT32_MAX || N > INT32_MAX)
    return shape_error(node, "`K` and `N` are %lld and %lld; they must be at least 1", (long long)K, (long long)N);
  if (node_input(node, 4)) return shape_unsupported(node, "g_idx (input 4) is not supported");
  if (node_int(node, ATTR_weight_prepacked) != 0)
    return shape_unsupported(node, "weights that are packed for a device (`weight_prepacked`) are not supported");
  if (!dim_equals(a->shape[a->rank - 1], K))
    return shape_error(node, "the last axis of %s must be `K`, %lld", shape_text(graph, a), (long long)K);
  int64_t blocks = (K + block - 1) / block;
  const Dim *weights[] = {dim_const(graph->dims, N), dim_const(graph->dims, blocks),
                          dim_const(graph->dims, bytes_of(block, bits))};
  if (!check_shape(graph, node, 1, 3, weights, "the weights, [N, blocks, bytes]") ||
      !check_table(graph, node, 2, N, blocks) ||
      !check_table(graph, node, 3, N, zero && zero->dtype == RNNCC_U8 ? bytes_of(blocks, bits) : blocks) ||
      !check_shape(graph, node, 5, 1, weights, "the bias, [N]"))
    return false;
  for (int axis = 0; axis < a->rank; axis++) shape[axis] = axis < a->rank - 1 ? a->shape[axis] : weights[0];
  return set_shape(graph, node, 0, a->rank, shape);
}

/* The table's numbers on an axis, and how many of its scales or, in bytes, of its zero points. */
static bool check_blocks(Graph *graph, const Node *node, int input, int quantised, int64_t block, int64_t bits) {
  const Value *data = node->inputs[0], *x = node_input(node, input);
  const Dim *wanted[MAX_RANK];
  if (!x) return true;
  for (int axis = 0; axis < data->rank; axis++) {
    int64_t n = dim_value(data->shape[axis]);
    if (axis == data->rank - 1) n = numbers_in(n, bits);
    if (axis == quantised) n = (n + block - 1) / block;
    if (axis == data->rank - 1 && input == 3) n = bytes_of(n, bits);
    wanted[axis] = dim_const(graph->dims, n);
  }
  return check_shape(graph, node, input, data->rank, wanted, "those of each block");
}

/* Data, which are bytes of several numbers, or numbers of 4 bits; indices; scales and zero points of blocks. */
bool shape_gather_blocks(Graph *graph, Node *node) {
  const Value *data = node->inputs[0], *indices = node->inputs[1];
  const Dim *shape[MAX_RANK];
  int gather = check_axis(node, "gather_axis", node_int(node, ATTR_gather_axis), data->rank), rank = 0;
  int quantised = check_axis(node, "quantize_axis", node_int(node, ATTR_quantize_axis), data->rank);
  if (gather < 0 || quantised < 0 || !check_bits(node)) return false;
  bool bytes = data->dtype == RNNCC_U8;
  int64_t bits = bytes ? node_int(node, ATTR_bits) : 8;
  if (bytes && (gather != 0 || quantised == 0))
    return shape_error(node, "of bytes `gather_axis` must be 0, and `quantize_axis` another one");
  for (int axis = 0; axis < data->rank; axis++)
    if (!dim_is_const(data->shape[axis]))
      return shape_unsupported(node, "the shape of %s must be known at compile time", shape_text(graph, data));
  for (int input = 2; input <= 3; input++)
    if (!check_blocks(graph, node, input, quantised, node_int(node, ATTR_block_size), bits)) return false;
  if (!check_made_rank(node, "the result", data->rank + indices->rank - 1)) return false;
  for (int i = 0; i < gather; i++) shape[rank++] = data->shape[i];
  for (int i = 0; i < indices->rank; i++) shape[rank++] = indices->shape[i];
  for (int i = gather + 1; i < data->rank; i++) shape[rank++] = data->shape[i];
  if (gather < data->rank - 1)
    shape[rank - 1] = dim_const(graph->dims, numbers_in(dim_value(data->shape[data->rank - 1]), bits));
  return set_shape(graph, node, 0, rank, shape);
}
