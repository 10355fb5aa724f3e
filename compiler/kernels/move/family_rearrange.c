/* SPDX-License-Identifier: MIT */
/* Tile, DepthToSpace, SpaceToDepth, ConstantOfShape and EyeLike as strided copies; Trilu and Range by their own
 * kernels.
 */
#include "ir/family.h"
#include "ir/tensor.h"
#include "kernels/move/pixel_blocks.h"
#include "kernels/move/strided_copy.h"
#include "program/build.h"
#include "shapes/elements.h"
#include "shapes/shape.h"
#include "support/diagnostics.h"

static void add_axis(StridedBox *box, const Dim *extent, const Dim *in_stride, const Dim *out_stride) {
  box->shape[box->rank] = extent;
  box->in_stride[box->rank] = in_stride;
  box->out_stride[box->rank++] = out_stride;
}

static StridedBox empty_box(Graph *graph) { return strided_box(graph, 0, NULL, NULL, NULL); }

/* Each axis becomes [repeats, extent], without those that are 1. */
static void lower_tile(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0], *y = node->outputs[0];
  const Dim *in_stride[MAX_RANK], *out_stride[MAX_RANK], *one = dim_const(graph->dims, 1);
  DimList repeats;
  if (!operand_dims(graph, node, ATTR_NONE, 1, &repeats)) bug("n%d: repeats that have no shape", node->id);
  dense_strides(graph, x, in_stride);
  dense_strides(graph, y, out_stride);
  StridedBox box = empty_box(graph);
  for (int axis = 0; axis < x->rank; axis++) {
    const Dim *extent = x->shape[axis], *whole = dim_mul(graph->dims, extent, out_stride[axis]);
    if (repeats.items[axis] != one) add_axis(&box, repeats.items[axis], dim_const(graph->dims, 0), whole);
    if (extent != one) add_axis(&box, extent, in_stride[axis], out_stride[axis]);
  }
  lower_strided_copy(program, node, &box, x, y);
}

static void lower_blocks(Program *program, Node *node, const Value *deep, const Value *wide) {
  int64_t side = node_int(node, ATTR_blocksize);
  PixelBlocks blocks = {deep, wide, side, side, node_word(node, ATTR_mode) == DEPTH_DCR};
  StridedBox box = pixel_box(program->graph, &blocks, node->inputs[0] == deep);
  lower_strided_copy(program, node, &box, node->inputs[0], node->outputs[0]);
}

static void lower_depth_to_space(Program *program, Node *node) {
  lower_blocks(program, node, node->inputs[0], node->outputs[0]);
}

static void lower_space_to_depth(Program *program, Node *node) {
  lower_blocks(program, node, node->outputs[0], node->inputs[0]);
}

/* Fills the output with one element. */
static void lower_fill(Program *program, const Node *node, const Value *fill) {
  Graph *graph = program->graph;
  const Value *y = node->outputs[0];
  StridedBox box = empty_box(graph);
  add_axis(&box, value_count_dim(graph, y, 0, y->rank), dim_const(graph->dims, 0), dim_const(graph->dims, 1));
  lower_strided_copy(program, node, &box, fill, y);
}

static void lower_constant_of_shape(Program *program, Node *node) {
  lower_fill(program, node, node->packed ? node->packed[0] : NULL);
}

/* Zeros, then ones along the diagonal from column k, or from row -k. */
static void lower_eye_like(Program *program, Node *node) {
  Graph *graph = program->graph;
  DimTable *dims = graph->dims;
  const Value *y = node->outputs[0];
  int64_t k = node_int(node, ATTR_k), right = k > 0 ? k : 0, down = k < 0 ? -k : 0;
  const Dim *columns = y->shape[1], *zero = dim_const(dims, 0);
  const Dim *length =
      dim_min(dims, dim_sub(dims, y->shape[0], dim_const(dims, down)), dim_sub(dims, columns, dim_const(dims, right)));
  lower_fill(program, node, NULL);
  StridedBox box = empty_box(graph);
  add_axis(&box, dim_max(dims, zero, length), zero, dim_add(dims, columns, dim_const(dims, 1)));
  box.out_offset = dim_add(dims, dim_mul(dims, dim_const(dims, down), columns), dim_const(dims, right));
  lower_strided_copy(program, node, &box, node->packed[0], y);
}

static void lower_trilu(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0];
  DimList k;
  if (!operand_dims(graph, node, ATTR_NONE, 1, &k)) bug("n%d: a diagonal that has no shape", node->id);
  KernelSpec *spec = kernel_spec(program, "trilu");
  kernel_bits(spec, "T", x->dtype);
  kernel_knob(spec, "UPPER", node_int(node, ATTR_upper) != 0);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "in", x, READ);
  operand_value(call, "out", node->outputs[0], WRITE);
  operand_dim(call, "matrices", value_count_dim(graph, x, 0, x->rank - 2));
  operand_dim(call, "rows", x->shape[x->rank - 2]);
  operand_dim(call, "columns", x->shape[x->rank - 1]);
  operand_dim(call, "k", k.given ? k.items[0] : dim_const(graph->dims, 0));
  call_bytes_of(call, 2 * (double)dtype_size(x->dtype), x);
}

/* The operands are read, and the extent is found, in the run. */
static void lower_range_found(Program *program, const Node *node) {
  const Value *y = node->outputs[0];
  KernelSpec *spec = kernel_spec(program, "range_found");
  kernel_type(spec, "T", y->dtype);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "start", node->inputs[0], READ);
  operand_value(call, "limit", node->inputs[1], READ);
  operand_value(call, "delta", node->inputs[2], READ);
  operand_value(call, "out", y, WRITE);
  operand_found(call, "measured", y->shape[0]);
  operand_integer(call, "most", dim_upper(y->shape[0]));
  call_touches(call, y);
}

static void lower_range(Program *program, Node *node) {
  const Value *y = node->outputs[0];
  Ratio start, limit, delta;
  if (!range_is_known(program->graph, node)) {
    lower_range_found(program, node);
    return;
  }
  if (!read_range(program->graph, node, &start, &limit, &delta)) bug("n%d: a range of no shape", node->id);
  bool whole = start.divisor == 1 && delta.divisor == 1;
  KernelSpec *spec = kernel_spec(program, "range");
  kernel_type(spec, "T", y->dtype);
  kernel_knob(spec, "WHOLE", whole);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "out", y, WRITE);
  operand_dim(call, "n", y->shape[0]);
  operand_dim(call, "start", start.numerator);
  operand_integer(call, "start_divisor", start.divisor);
  operand_dim(call, "delta", delta.numerator);
  operand_integer(call, "delta_divisor", delta.divisor);
  call_touches(call, y);
}

static void (*const lower_op[N_OPS])(Program *program, Node *node) = {
    [OP_ConstantOfShape] = lower_constant_of_shape,
    [OP_DepthToSpace] = lower_depth_to_space,
    [OP_EyeLike] = lower_eye_like,
    [OP_Range] = lower_range,
    [OP_SpaceToDepth] = lower_space_to_depth,
    [OP_Tile] = lower_tile,
    [OP_Trilu] = lower_trilu,
};

static void rearrange_lower(Program *program, Node *node) { lower_op[node->op->kind](program, node); }

/* The number that is stored: ConstantOfShape's value, EyeLike's one. */
static void rearrange_pack(Graph *graph, Node *node) {
  const Attribute *value = is_op(node, OP_ConstantOfShape) ? node_attribute(node, ATTR_value) : NULL;
  Tensor *one = NULL;
  if (is_op(node, OP_EyeLike)) {
    one = tensor_new(graph->arena, node->outputs[0]->dtype, 0, NULL);
    tensor_set_int(one, 0, 1);
  }
  if (!value && !one) return;
  const void *data = one ? one->data : value->tensor->data;
  graph_pack(graph, node, graph_constant(graph, "fill", node->outputs[0]->dtype, 0, NULL, data));
}

const KernelFamily family_rearrange = {.pack = rearrange_pack, .lower = rearrange_lower};
