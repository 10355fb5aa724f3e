/* SPDX-License-Identifier: MIT */
/* NonZero: all workers count, then all write. Compress: NonZero of the condition, then Gather. */
#include "ir/family.h"
#include "knobs.h"
#include "program/build.h"

enum { COUNT_BYTES = NONZERO_CHUNKS * NONZERO_APART * (int)sizeof(int64_t) };

static bool is_compress(const Node *node) { return is_op(node, OP_Compress); }

/* The number of conditions that count. */
static const Dim *condition_count(Graph *graph, const Node *node, const Dim *extent) {
  return dim_min(graph->dims, extent, node->inputs[1]->shape[0]);
}

static int compressed_axis(const Node *node) {
  return node_has(node, ATTR_axis) ? normal_axis(node_int(node, ATTR_axis), node->inputs[0]->rank) : -1;
}

static const Dim *compressed_extent(Graph *graph, const Node *node) {
  const Value *x = node->inputs[0];
  int axis = compressed_axis(node);
  return axis < 0 ? value_count_dim(graph, x, 0, x->rank) : x->shape[axis];
}

/* The counts; for Compress, then the indices of kept elements. */
static void nonzero_scratch(Graph *graph, Node *node) {
  DimTable *dims = graph->dims;
  const Dim *bytes = dim_const(dims, COUNT_BYTES);
  if (is_compress(node)) {
    const Dim *places = condition_count(graph, node, compressed_extent(graph, node));
    bytes = dim_add(dims, bytes, dim_mul(dims, places, dim_const(dims, (int)sizeof(int64_t))));
  }
  graph_scratch(graph, node, "counts", bytes);
}

/* Writes the indices to `y` from byte `first_byte` on. */
static void lower_nonzero(Program *program, const Node *node, const Value *x, int rank, const Dim *const *shape,
                          const Dim *n, const Dim *found, const Value *y, int64_t first_byte) {
  KernelSpec *count = kernel_spec(program, "nonzero_count"), *place = kernel_spec(program, "nonzero");
  kernel_bits(count, "T", x->dtype);
  kernel_bits(place, "T", x->dtype);
  kernel_knob(count, "FLOATS", dtype_is_float(x->dtype));
  kernel_knob(place, "FLOATS", dtype_is_float(x->dtype));
  kernel_knob(place, "RANK", rank);
  Call *first = kernel_call(program, node, count);
  operand_value(first, "x", x, READ);
  operand_bytes(first, "counts", node->scratch, 0, COUNT_BYTES, WRITE);
  operand_dim(first, "n", n);
  call_flops(first, 1, EXTENTS(n));
  call_bytes(first, (double)dtype_size(x->dtype), EXTENTS(n));
  Call *second = kernel_call(program, node, place);
  operand_value(second, "x", x, READ);
  operand_bytes(second, "counts", node->scratch, 0, COUNT_BYTES, READ);
  operand_part(second, "y", y, dim_const(program->graph->dims, first_byte), NULL, WRITE);
  operand_found(second, "measured", found);
  operand_dim_array(second, "shape", rank, shape);
  operand_dim(second, "n", n);
  call_flops(second, 1, EXTENTS(n));
  call_bytes(second, (double)dtype_size(x->dtype), EXTENTS(n));
}

static void lower_compress(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0], *y = node->outputs[0];
  int axis = compressed_axis(node);
  const Dim *extent = compressed_extent(graph, node), *one = dim_const(graph->dims, 1);
  const Dim *n = condition_count(graph, node, extent), *found = y->shape[axis < 0 ? 0 : axis];
  lower_nonzero(program, node, node->inputs[1], 1, &n, n, found, node->scratch, COUNT_BYTES);
  KernelSpec *spec = kernel_spec(program, "gather");
  kernel_bits(spec, "T", x->dtype);
  kernel_type(spec, "Index", RNNCC_I64);
  kernel_knob(spec, "CHECKED", 0);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "in", x, READ);
  operand_part(call, "indices", node->scratch, dim_const(graph->dims, COUNT_BYTES), NULL, READ);
  operand_value(call, "out", y, WRITE);
  operand_dim(call, "outer", axis < 0 ? one : value_count_dim(graph, x, 0, axis));
  operand_dim(call, "length", extent);
  operand_dim(call, "count", found);
  operand_dim(call, "inner", axis < 0 ? one : value_count_dim(graph, x, axis + 1, x->rank));
  operand_null(call, "fault");
  call_bytes_of(call, 2 * (double)dtype_size(x->dtype), y);
}

static void nonzero_lower(Program *program, Node *node) {
  Graph *graph = program->graph;
  if (is_compress(node)) {
    lower_compress(program, node);
    return;
  }
  const Value *x = node->inputs[0], *y = node->outputs[0];
  const Dim *n = value_count_dim(graph, x, 0, x->rank);
  lower_nonzero(program, node, x, x->rank ? x->rank : 1, x->rank ? x->shape : &n, n, y->shape[1], y, 0);
}

const KernelFamily family_nonzero = {.scratch = nonzero_scratch, .lower = nonzero_lower};
