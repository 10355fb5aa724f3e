/* SPDX-License-Identifier: MIT */
/* Ops that only move elements: Concat, Split, Slice, Transpose, Expand, Pad, BitCast, and Identity where it must
 * copy. */
#include "ir/family.h"
#include "kernels/move/channel_copy.h"
#include "kernels/move/strided_copy.h"
#include "knobs.h"
#include "layout/blocked.h"
#include "layout/layout.h"
#include "layout/layout_costs.h"
#include "program/build.h"
#include "shapes/shape.h"

/* Concat copies each input to its place, Split each output from its place. */
static void lower_parts(Program *program, Node *node) {
  Graph *graph = program->graph;
  bool joins = is_op(node, OP_Concat);
  const Value *whole = joins ? node->outputs[0] : node->inputs[0];
  int axis = normal_axis(node_int(node, ATTR_axis), whole->rank), n = joins ? node->n_inputs : node->n_outputs;
  const Dim *stride[MAX_RANK], *whole_stride[MAX_RANK], *first = dim_const(graph->dims, 0);
  dense_strides(graph, whole, whole_stride);
  for (int k = 0; k < n; k++) {
    const Value *part = joins ? node->inputs[k] : node->outputs[k];
    dense_strides(graph, part, stride);
    StridedBox box = strided_box(graph, part->rank, (const Dim *const *)part->shape, joins ? stride : whole_stride,
                                 joins ? whole_stride : stride);
    *(joins ? &box.out_offset : &box.in_offset) = dim_mul(graph->dims, first, whole_stride[axis]);
    Call *copy = lower_strided_copy(program, node, &box, joins ? part : whole, joins ? whole : part);
    if (joins) operand_sharing(copy, "out", SHARED_APART); /* the copies write different bytes */
    first = dim_add(graph->dims, first, part->shape[axis]);
  }
}

static void lower_slice(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0], *y = node->outputs[0];
  const Dim *in_stride[MAX_RANK], *out_stride[MAX_RANK], *first = dim_const(graph->dims, 0);
  SliceAxis axes[MAX_RANK];
  if (!read_slice(graph, node, axes)) bug("n%d: a slice that has no shape", node->id);
  dense_strides(graph, x, in_stride);
  dense_strides(graph, y, out_stride);
  for (int axis = 0; axis < x->rank; axis++) {
    first = dim_add(graph->dims, first, dim_mul(graph->dims, axes[axis].start, in_stride[axis]));
    in_stride[axis] = dim_mul(graph->dims, in_stride[axis], dim_const(graph->dims, axes[axis].step));
  }
  StridedBox box = strided_box(graph, y->rank, y->shape, in_stride, out_stride);
  box.in_offset = first;
  lower_strided_copy(program, node, &box, x, y);
}

/* The axis of the input that is the output's. */
static int transposed_axis(const Node *node, int axis) {
  const Attribute *perm = node_attribute(node, ATTR_perm);
  int rank = node->inputs[0]->rank;
  return perm ? normal_axis(perm->ints[axis], rank) : rank - 1 - axis;
}

/* Does it take axis `from` of an image to `to`, and leaves the others in their order? */
static bool moves_axis(const Node *node, int from, int to) {
  int rank = node->inputs[0]->rank;
  for (int axis = 0; axis < rank; axis++) {
    int before = axis == to ? from : axis > to && axis <= from ? axis - 1 : axis < to && axis >= from ? axis + 1 : axis;
    if (transposed_axis(node, axis) != before) return false;
  }
  return true;
}

static bool transposes_image(const Node *node) {
  return is_op(node, OP_Transpose) && (node->inputs[0]->rank == 3 || node->inputs[0]->rank == 4);
}

/* From N, C, H, W to N, H, W, C: of a blocked tensor this only puts the blocks of a pixel together. */
static bool brings_channels_last(const Node *node) {
  return transposes_image(node) && moves_axis(node, 1, node->inputs[0]->rank - 1);
}

/* Back: to a blocked tensor this only puts them apart. */
static bool brings_channels_first(const Node *node) {
  return transposes_image(node) && moves_axis(node, node->inputs[0]->rank - 1, 1);
}

static void lower_transpose(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0], *y = node->outputs[0];
  if (x->channel_block) {
    lower_channels_last(program, node, x, y);
    return;
  }
  if (y->channel_block) {
    lower_channels_first(program, node, x, y);
    return;
  }
  const Dim *dense[MAX_RANK], *in_stride[MAX_RANK], *out_stride[MAX_RANK];
  dense_strides(graph, x, dense);
  dense_strides(graph, y, out_stride);
  for (int axis = 0; axis < x->rank; axis++) in_stride[axis] = dense[transposed_axis(node, axis)];
  StridedBox box = strided_box(graph, y->rank, y->shape, in_stride, out_stride);
  lower_strided_copy(program, node, &box, x, y);
}

static void lower_expand(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0], *y = node->outputs[0];
  const Dim *dense[MAX_RANK], *in_stride[MAX_RANK], *out_stride[MAX_RANK], *zero = dim_const(graph->dims, 0);
  int lead = y->rank - x->rank;
  dense_strides(graph, x, dense);
  dense_strides(graph, y, out_stride);
  for (int axis = 0; axis < y->rank; axis++) {
    bool repeats = axis < lead || dim_equals(x->shape[axis - lead], 1);
    in_stride[axis] = repeats ? zero : dense[axis - lead];
  }
  StridedBox box = strided_box(graph, y->rank, y->shape, in_stride, out_stride);
  lower_strided_copy(program, node, &box, x, y);
}

static void lower_identity(Program *program, Node *node) {
  lower_whole_copy(program, node, node->inputs[0], node->outputs[0]);
}

static void read_pad_axes(Graph *graph, const Node *node, PadAxis pads[MAX_RANK]) {
  const Value *x = node->inputs[0];
  const Dim *before[MAX_RANK], *after[MAX_RANK];
  if (!read_pads(graph, node, before, after)) bug("n%d: a padding that has no shape", node->id);
  for (int axis = 0; axis < x->rank; axis++)
    pads[axis] = pad_axis(graph->dims, x->shape[axis], before[axis], after[axis]);
}

/* A slab of the border: `length` elements of `axis` from `first` on; only the kept part along axes before it,
 * everything along axes after it. So slabs share no element. */
static void lower_slab(Program *program, const Node *node, const PadAxis *pads, int axis, const Dim *first,
                       const Dim *length) {
  Graph *graph = program->graph;
  const Value *y = node->outputs[0], *fill = node_input(node, 2);
  if (dim_equals(length, 0)) return;
  const Dim *zeros[MAX_RANK], *out_stride[MAX_RANK];
  for (int k = 0; k < y->rank; k++) zeros[k] = dim_const(graph->dims, 0);
  dense_strides(graph, y, out_stride);
  StridedBox box = strided_box(graph, y->rank, y->shape, zeros, out_stride);
  for (int k = 0; k < axis; k++) {
    box.shape[k] = pads[k].extent;
    box.out_offset = dim_add(graph->dims, box.out_offset, dim_mul(graph->dims, pads[k].before, out_stride[k]));
  }
  box.shape[axis] = length;
  box.out_offset = dim_add(graph->dims, box.out_offset, dim_mul(graph->dims, first, out_stride[axis]));
  if (!fill && node->packed) fill = node->packed[0];
  operand_sharing(lower_strided_copy(program, node, &box, fill, y), "out", SHARED_APART);
}

static void lower_pad_constant(Program *program, const Node *node, const PadAxis *pads) {
  Graph *graph = program->graph;
  DimTable *dims = graph->dims;
  const Value *x = node->inputs[0], *y = node->outputs[0];
  const Dim *in_stride[MAX_RANK], *out_stride[MAX_RANK];
  for (int axis = 0; axis < y->rank; axis++) {
    lower_slab(program, node, pads, axis, dim_const(dims, 0), pads[axis].before);
    lower_slab(program, node, pads, axis, dim_add(dims, pads[axis].before, pads[axis].extent), pads[axis].after);
  }
  dense_strides(graph, x, in_stride);
  dense_strides(graph, y, out_stride);
  StridedBox box = strided_box(graph, y->rank, y->shape, in_stride, out_stride);
  for (int axis = 0; axis < y->rank; axis++) {
    box.shape[axis] = pads[axis].extent;
    box.in_offset = dim_add(dims, box.in_offset, dim_mul(dims, pads[axis].origin, in_stride[axis]));
    box.out_offset = dim_add(dims, box.out_offset, dim_mul(dims, pads[axis].before, out_stride[axis]));
  }
  operand_sharing(lower_strided_copy(program, node, &box, x, y), "out", SHARED_APART);
}

static const int pad_maps[] = {[PAD_edge] = MAP_EDGE, [PAD_reflect] = MAP_REFLECT, [PAD_wrap] = MAP_WRAP};

static void lower_pad_map(Program *program, const Node *node, const PadAxis *pads, int mode) {
  Graph *graph = program->graph;
  DimTable *dims = graph->dims;
  const Value *x = node->inputs[0], *y = node->outputs[0];
  const Dim *in_stride[MAX_RANK], *before[MAX_RANK], *extent[MAX_RANK], *first = dim_const(dims, 0);
  dense_strides(graph, x, in_stride);
  for (int axis = 0; axis < x->rank; axis++) {
    before[axis] = pads[axis].before;
    extent[axis] = pads[axis].extent;
    first = dim_add(dims, first, dim_mul(dims, pads[axis].origin, in_stride[axis]));
  }
  KernelSpec *spec = kernel_spec(program, "pad_map");
  kernel_bits(spec, "T", y->dtype);
  kernel_knob(spec, "RANK", y->rank);
  kernel_knob(spec, "MODE", mode);
  Call *call = kernel_call(program, node, spec);
  operand_elements(call, "in", x, offset_inside(graph, x, first), NULL, READ);
  operand_value(call, "out", y, WRITE);
  operand_dim_array(call, "shape", y->rank, (const Dim *const *)y->shape);
  operand_dim_array(call, "before", y->rank, before);
  operand_dim_array(call, "extent", y->rank, extent);
  operand_dim_array(call, "in_stride", y->rank, in_stride);
  call_bytes_of(call, 2 * (double)dtype_size(y->dtype), y);
}

static void lower_pad(Program *program, Node *node) {
  PadAxis pads[MAX_RANK];
  read_pad_axes(program->graph, node, pads);
  PadMode mode = node_word(node, ATTR_mode);
  if (mode == PAD_constant)
    lower_pad_constant(program, node, pads);
  else
    lower_pad_map(program, node, pads, pad_maps[mode]);
}

/* ---- blocked tensors: Concat and Split along the channels, images whose channels are brought first ---- */

static bool joins_channels(const Node *node) {
  if (!is_op(node, OP_Concat) && !is_op(node, OP_Split)) return false;
  if (normal_axis(node_int(node, ATTR_axis), node->inputs[0]->rank) != 1) return false;
  for (int i = 0; is_op(node, OP_Concat) && i < node->n_inputs; i++)
    if (value_is_constant(node->inputs[i]) || !can_be_blocked(node->inputs[i])) return false;
  return true;
}

static LayoutSet layouts(Graph *graph, const Node *node) {
  (void)graph;
  if (brings_channels_last(node)) return LAYOUT_BIT(LAYOUT_ANY, LAYOUT_ROW_MAJOR);
  if (brings_channels_first(node))
    return LAYOUT_BIT(LAYOUT_ROW_MAJOR, LAYOUT_BLOCKED) | LAYOUT_BIT(LAYOUT_ROW_MAJOR, LAYOUT_WIDE);
  return joins_channels(node) ? LAYOUT_SET_BLOCKED | LAYOUT_BIT(LAYOUT_WIDE, LAYOUT_WIDE) : 0;
}

/* Did place_parts put the part in its place in the whole? */
static bool in_place(Value *part, Value *whole, int64_t channel) {
  int64_t block = whole->channel_block, lanes = channel % block;
  if (value_root(part) != value_root(whole) || lanes || part->channel_block != block) return false;
  return value_first_byte(part) == value_first_byte(whole) + channel_bytes(whole, channel);
}

static void lower_blocked(Program *program, const Node *node) {
  bool joins = is_op(node, OP_Concat);
  Value *whole = joins ? node->outputs[0] : node->inputs[0];
  int64_t channel = 0;
  for (int i = 0, n = joins ? node->n_inputs : node->n_outputs; i < n; i++) {
    Value *part = joins ? node->inputs[i] : node->outputs[i];
    int64_t channels = dim_value(part->shape[1]);
    ChannelRange own = {part, 0}, place = {whole, channel};
    if (!in_place(part, whole, channel))
      lower_channel_copy(program, node, joins ? own : place, joins ? place : own, channels);
    channel += channels;
  }
}

static void (*const lower_op[N_OPS])(Program *program, Node *node) = {
    [OP_Concat] = lower_parts,      [OP_Expand] = lower_expand,
    [OP_Identity] = lower_identity, [OP_BitCast] = lower_identity,
    [OP_Pad] = lower_pad,           [OP_Slice] = lower_slice,
    [OP_Split] = lower_parts,       [OP_Transpose] = lower_transpose,
};

/* Bytes that are copied; parts of whole blocks need no copy (layout/place_parts.c). */
static double copied_bytes(const Graph *graph, const Node *node, NodeLayout layout) {
  bool concat = is_op(node, OP_Concat);
  Value *const *parts = concat ? node->inputs : node->outputs;
  int64_t channel = 0, block = concat ? output_block(graph, node, layout, 0) : input_block(graph, node, layout, 0);
  double bytes = 0;
  for (int i = 0, n = concat ? node->n_inputs : node->n_outputs; i < n; i++) {
    bool whole = block && channel % block == 0 && (dim_optimum(parts[i]->shape[1]) % block == 0 || i == n - 1);
    bytes += whole ? 0 : 2 * value_optimum_bytes(parts[i]);
    channel += block ? dim_value(parts[i]->shape[1]) : 0;
  }
  return bytes;
}

/* Seconds of Concat and Split, and where channels are brought first; other copies never write blocks. */
static double seconds(Graph *graph, const Node *node, NodeLayout layout) {
  if (is_op(node, OP_Transpose)) return transposing_seconds(graph, node, layout);
  return copying_seconds(graph, copied_bytes(graph, node, layout));
}

static void copy_lower(Program *program, Node *node) {
  if (is_blocked(node) && !is_op(node, OP_Transpose)) {
    lower_blocked(program, node);
    return;
  }
  lower_op[node->op->kind](program, node);
}

/* Pad's fill value where it is an attribute (opset 2 to 10, f32 only) and not zero. */
static void copy_pack(Graph *graph, Node *node) {
  if (!is_op(node, OP_Pad) || node_input(node, 2) || node_float(node, ATTR_value) == 0) return;
  float *fill = ARENA_NEW(graph->arena, float);
  *fill = (float)node_float(node, ATTR_value);
  graph_pack(graph, node, graph_constant(graph, "fill", RNNCC_F32, 0, NULL, fill));
}

const KernelFamily family_copy = {
    .layouts = layouts,
    .runs_bytes = true,
    .runs_any_plane = true,
    .seconds = seconds,
    .pack = copy_pack,
    .lower = copy_lower,
};
