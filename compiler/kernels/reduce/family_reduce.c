/* SPDX-License-Identifier: MIT */
/*
 * Reductions, global pools, ArgMax and ArgMin. Axes of extent 1 are removed, and neighbours that are both kept or both
 * reduced are merged, so kept and reduced axes alternate.
 */
#include "ir/family.h"
#include "kernels/reduce/reduce.h"
#include "knobs.h"
#include "layout/blocked.h"
#include "machine/targets.h"
#include "program/build.h"
#include "shapes/shape.h"
#include "support/diagnostics.h"

typedef struct Reduction {
  int combine; /* COMBINE_ */
  bool exponentials;
  const char *map, *finish; /* hooks; NULL: none */
  int plainly;              /* REDUCE_; -1: none */
} Reduction;

#define FINISH(expression) "(void)count;\n  return " expression ";"
/* The mean of no elements is 0, as ONNX Runtime has it. */
static const Reduction REDUCTIONS[N_OPS] = {
    [OP_ReduceSum] = {COMBINE_SUM, false, NULL, NULL, REDUCE_SUM},
    [OP_ReduceMean] = {COMBINE_SUM, false, NULL, "return vdiv(total, vmax(count, vset(1)));", REDUCE_MEAN},
    [OP_ReduceMax] = {COMBINE_MAX, false, NULL, NULL, REDUCE_MAX},
    [OP_ReduceMin] = {COMBINE_MIN, false, NULL, NULL, REDUCE_MIN},
    [OP_ReduceProd] = {COMBINE_PRODUCT, false, NULL, NULL, REDUCE_PRODUCT},
    [OP_ReduceSumSquare] = {COMBINE_SUM, false, "return vmul(x, x);", NULL, REDUCE_SQUARES},
    [OP_ReduceL1] = {COMBINE_SUM, false, "return vabs(x);", NULL, REDUCE_MAGNITUDES},
    [OP_ReduceL2] = {COMBINE_SUM, false, "return vmul(x, x);", FINISH("vsqrt(total)"), REDUCE_NORM},
    [OP_ReduceLogSum] = {COMBINE_SUM, false, NULL, FINISH("vlog(total)"), REDUCE_LOG},
    [OP_ReduceLogSumExp] = {COMBINE_SUM, true, NULL, FINISH("vlog(total)"), REDUCE_LOG_EXP},
    [OP_GlobalMaxPool] = {COMBINE_MAX, false, NULL, NULL, -1},
    [OP_GlobalAveragePool] = {COMBINE_SUM, false, NULL, "return vdiv(total, count);", -1},
    [OP_GlobalLpPool] = {COMBINE_SUM, false, NULL, NULL, -1},
};
#undef FINISH

/* GlobalLpPool of p = 1 and 2 has kernels of its own. */
static OpKind row_of(const Node *node) {
  if (!is_op(node, OP_GlobalLpPool) || node_int(node, ATTR_p) > 2) return node->op->kind;
  return node_int(node, ATTR_p) == 1 ? OP_ReduceL1 : OP_ReduceL2;
}

static const Reduction *reduction_of(const Node *node) { return &REDUCTIONS[row_of(node)]; }

/* ---- axes ---- */

static void mark_reduced(Graph *graph, const Node *node, bool reduced[MAX_RANK]) {
  int rank = node->inputs[0]->rank;
  if (op_is_global_pool(node->op)) {
    for (int axis = 0; axis < rank; axis++) reduced[axis] = axis >= 2;
    return;
  }
  IntList axes;
  if (!operand_ints(graph, node, ATTR_axes, 1, &axes) || !operand_axes(node, &axes, rank, reduced))
    bug("n%d: axes that have no shape", node->id);
  bool all = axes.n == 0 && !node_int(node, ATTR_noop_with_empty_axes);
  for (int axis = 0; axis < rank; axis++) reduced[axis] |= all;
}

typedef struct AxisList {
  int n;
  const Dim *extent[MAX_RANK], *stride[MAX_RANK]; /* in elements */
  bool reduced[MAX_RANK];
} AxisList;

/* At least one axis: a scalar is a reduction of one element. */
static AxisList merged_axes(Graph *graph, const Value *x, const bool reduced[MAX_RANK]) {
  AxisList axes = {0};
  for (int axis = 0; axis < x->rank; axis++) {
    const Dim *extent = x->shape[axis];
    if (dim_lower(extent) == 1 && dim_upper(extent) == 1) continue;
    if (axes.n > 0 && axes.reduced[axes.n - 1] == reduced[axis]) {
      axes.extent[axes.n - 1] = dim_mul(graph->dims, axes.extent[axes.n - 1], extent);
      continue;
    }
    axes.reduced[axes.n] = reduced[axis];
    axes.extent[axes.n++] = extent;
  }
  if (axes.n == 0) axes = (AxisList){.n = 1, .extent = {dim_const(graph->dims, 1)}, .reduced = {true}};
  const Dim *stride = dim_const(graph->dims, 1);
  for (int k = axes.n - 1; k >= 0; k--) {
    axes.stride[k] = stride;
    stride = dim_mul(graph->dims, stride, axes.extent[k]);
  }
  return axes;
}

/* The reduced or the kept ones of the first `n` axes. */
static AxisList pick(const AxisList *axes, int n, bool reduced, int without) {
  AxisList picked = {0};
  for (int k = 0; k < n; k++) {
    if (axes->reduced[k] != reduced || k == without) continue;
    picked.extent[picked.n] = axes->extent[k];
    picked.stride[picked.n++] = axes->stride[k];
  }
  return picked;
}

/* ---- calls ---- */

/* GlobalLpPool of any p; of 1 and 2 it is another row of the table. */
static void set_norm_hooks(Arena *arena, KernelSpec *spec, int64_t p) {
  kernel_hook(spec, "map", arena_format(arena, "return vpow(vabs(x), vset(%lld));", (long long)p));
  kernel_hook(spec, "finish",
              arena_format(arena, "(void)count;\n  return vpow(total, vset(1.0f / %lld));", (long long)p));
}

static void set_hooks(Arena *arena, const Node *node, KernelSpec *spec) {
  const Reduction *reduction = reduction_of(node);
  kernel_knob(spec, "COMBINE", reduction->combine);
  if (reduction->map) kernel_hook(spec, "map", reduction->map);
  if (reduction->finish) kernel_hook(spec, "finish", reduction->finish);
  if (row_of(node) == OP_GlobalLpPool) set_norm_hooks(arena, spec, node_int(node, ATTR_p));
}

/* ---- f32 ---- */

bool reduces_elements(const Node *node) {
  if (node->op->family != &family_reduce || op_is_arg(node->op) || op_is_global_pool(node->op)) return false;
  return node->inputs[0]->dtype == RNNCC_F32 && !reduction_of(node)->exponentials;
}

Broadcast reduction_nest(Graph *graph, const Node *reduction, int n, Value *const *operands) {
  const Value *x = reduction->inputs[0], *all[MAX_BROADCAST];
  bool reduced[MAX_RANK] = {false};
  mark_reduced(graph, reduction, reduced);
  Value result = {.rank = x->rank, .shape = ARENA_ARRAY(graph->arena, const Dim *, x->rank ? x->rank : 1)};
  for (int axis = 0; axis < x->rank; axis++)
    result.shape[axis] = reduced[axis] ? dim_const(graph->dims, 1) : x->shape[axis];
  for (int k = 0; k < n; k++) all[k] = operands[k];
  all[n] = &result;
  return broadcast_of(graph, x, n + 1, all);
}

/* Some axes of the nest, before the last. */
typedef struct NestAxes {
  int n, axis[MAX_RANK];
} NestAxes;

static NestAxes nest_axes(const Broadcast *nest, bool kept) {
  NestAxes axes = {0};
  for (int axis = 0; axis < nest->rank - 1; axis++)
    if (nest->moves[nest->operands - 1][axis] == kept) axes.axis[axes.n++] = axis;
  return axes;
}

static void operand_extents(Call *call, const char *parameter, const Broadcast *nest, const NestAxes *axes) {
  const Dim *extents[MAX_RANK];
  for (int i = 0; i < axes->n; i++) extents[i] = nest->extent[axes->axis[i]];
  operand_dim_array(call, parameter, axes->n, extents);
}

/* In bytes: of axes first .. end, for each operand. */
static void operand_strides(Graph *graph, Call *call, const char *parameter, const Broadcast *nest,
                            Value *const *operands, const NestAxes *axes, int first, int end) {
  const Dim *strides[MAX_REDUCED_OPERANDS * MAX_RANK];
  int n = 0;
  for (int k = 0; k < nest->operands - 1; k++) {
    const Dim *size = dim_const(graph->dims, (int64_t)dtype_size(operands[k]->dtype));
    for (int i = first; i < end; i++) strides[n++] = dim_mul(graph->dims, nest->stride[k][axes->axis[i]], size);
  }
  operand_dim_array(call, parameter, n, strides);
}

Call *lower_reduction(Program *program, const Node *node, const Node *reduction, int n, Value *const *operands,
                      const char *element, const char *epilogue) {
  Graph *graph = program->graph;
  Broadcast nest = reduction_nest(graph, reduction, n, operands);
  NestAxes kept = nest_axes(&nest, true), reduced = nest_axes(&nest, false);
  int outer = reduced.n ? reduced.n - 1 : 0;
  bool last_reduced = !nest.moves[n][nest.rank - 1];
  const Dim *count = last_reduced ? nest.extent[nest.rank - 1] : dim_const(graph->dims, 1);
  for (int i = 0; i < reduced.n; i++) count = dim_mul(graph->dims, count, nest.extent[reduced.axis[i]]);
  KernelSpec *spec = kernel_spec(program, "reduce");
  set_hooks(program->arena, reduction, spec);
  kernel_hook(spec, "element", element);
  kernel_hook(spec, "epilogue", epilogue);
  kernel_knob(spec, "EXPONENTIALS", reduction_of(reduction)->exponentials);
  kernel_knob(spec, "LAST_AXIS", last_reduced);
  kernel_knob(spec, "OPERANDS", n);
  kernel_knob(spec, "KEPT", kept.n);
  kernel_knob(spec, "REDUCED", reduced.n);
  Call *call = kernel_call(program, node, spec);
  operand_value_array(call, "operands", n, operands, READ);
  operand_value(call, "y", node->outputs[0], WRITE);
  operand_extents(call, "kept_extent", &nest, &kept);
  operand_strides(graph, call, "kept_strides", &nest, operands, &kept, 0, kept.n);
  operand_extents(call, "reduced_extent", &nest, &reduced);
  operand_strides(graph, call, "reduced_strides", &nest, operands, &reduced, 0, outer);
  operand_strides(graph, call, "inner_strides", &nest, operands, &reduced, outer, reduced.n);
  operand_dim(call, "n", nest.extent[nest.rank - 1]);
  operand_dim(call, "count", count);
  call_flops_of(call, 1 + node->n_members, reduction->inputs[0]);
  for (int k = 0; k < n; k++) call_touches(call, operands[k]);
  return call;
}

/* ---- other kernels ---- */

/* Global pools run blocked: they reduce all pixels of each channel. */
static LayoutSet layouts(Graph *graph, const Node *node) {
  if (op_is_arg(node->op) || reduction_of(node)->exponentials) return 0;
  bool reduced[MAX_RANK] = {false};
  mark_reduced(graph, node, reduced);
  for (int axis = 0; axis < node->inputs[0]->rank; axis++)
    if (reduced[axis] != (axis >= 2)) return 0;
  return LAYOUT_SET_BLOCKED | LAYOUT_BIT(LAYOUT_WIDE, LAYOUT_BLOCKED);
}

static void lower_blocked(Program *program, const Node *node) {
  Graph *graph = program->graph;
  const Value *y = node->outputs[0];
  Blocked x = blocked_of(graph, node->inputs[0]);
  const Dim *y_image = y->rank > 2 ? blocked_of(graph, y).image : dim_const(graph->dims, x.channels);
  KernelSpec *spec = kernel_spec(program, "global_pool_blocked");
  set_hooks(program->arena, node, spec);
  kernel_knob(spec, "VECTORS", x.block / graph->config->target->lanes);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", node->inputs[0], READ);
  operand_value(call, "y", y, WRITE);
  operand_dim(call, "n", node->inputs[0]->shape[0]);
  operand_integer(call, "channels", x.channels);
  operand_extent(call, "pixels", dim_mul(graph->dims, x.height, x.width));
  operand_extent(call, "x_image", x.image);
  operand_extent(call, "y_image", y_image);
  call_flops_of(call, 1, node->inputs[0]);
  call_touches(call, node->inputs[0]);
}

static void lower_plain(Program *program, const Node *node) {
  Graph *graph = program->graph;
  const Dim *one = dim_const(graph->dims, 1);
  const Value *x = node->inputs[0];
  bool marked[MAX_RANK] = {false};
  mark_reduced(graph, node, marked);
  AxisList axes = merged_axes(graph, x, marked);
  int last = axes.n - 1;
  while (last >= 0 && !axes.reduced[last]) last--;
  AxisList kept = pick(&axes, axes.n, false, -1), reduced = pick(&axes, axes.n, true, last);
  KernelSpec *spec = kernel_spec(program, "reduce_plain");
  kernel_type(spec, "T", x->dtype);
  kernel_type(spec, "Total", dtype_is_float(x->dtype) ? RNNCC_F64 : RNNCC_U64);
  kernel_knob(spec, "OPERATION", reduction_of(node)->plainly);
  kernel_knob(spec, "KEPT", kept.n);
  kernel_knob(spec, "REDUCED", reduced.n);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", x, READ);
  operand_value(call, "y", node->outputs[0], WRITE);
  operand_dim_array(call, "kept_extent", kept.n, kept.extent);
  operand_dim_array(call, "kept_stride", kept.n, kept.stride);
  operand_dim_array(call, "reduced_extent", reduced.n, reduced.extent);
  operand_dim_array(call, "reduced_stride", reduced.n, reduced.stride);
  operand_dim(call, "n", last >= 0 ? axes.extent[last] : one);
  operand_dim(call, "step", last >= 0 ? axes.stride[last] : one);
  call_flops_of(call, 1, x);
  call_touches(call, x);
}

static void lower_arg(Program *program, const Node *node) {
  const Value *x = node->inputs[0];
  int axis = x->rank ? normal_axis(node_int(node, ATTR_axis), x->rank) : 0;
  KernelSpec *spec = kernel_spec(program, "arg_extreme");
  kernel_type(spec, "T", x->dtype);
  kernel_knob(spec, "MINIMUM", is_op(node, OP_ArgMin));
  kernel_knob(spec, "LAST", node_int(node, ATTR_select_last_index) != 0);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", x, READ);
  operand_value(call, "y", node->outputs[0], WRITE);
  operands_around(call, x, axis, "n");
  call_flops_of(call, 1, x);
  call_touches(call, x);
}

static void lower_reduce(Program *program, Node *node) {
  if (op_is_arg(node->op)) {
    lower_arg(program, node);
    return;
  }
  if (is_blocked(node)) {
    lower_blocked(program, node);
    return;
  }
  if (node->inputs[0]->dtype == RNNCC_F32)
    lower_reduction(program, node, node, 1, node->inputs, NULL, NULL);
  else
    lower_plain(program, node);
}

const KernelFamily family_reduce = {
    .layouts = layouts, .takes_constant_data = true, .runs_any_plane = true, .lower = lower_reduce};
