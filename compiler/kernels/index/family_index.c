/* SPDX-License-Identifier: MIT */
/*
 * Ops that gather or scatter elements by index: Gather, GatherElements, GatherND, ScatterElements, ScatterND, OneHot
 * and ReverseSequence. A Gather of as many rows as there are may be written over its input. Constant indices are
 * checked at compile time, against the least length of the axis; those of a graph input before the run; all others in
 * the kernel.
 */
#include <string.h>

#include "ir/family.h"
#include "kernels/move/strided_copy.h"
#include "knobs.h"
#include "program/build.h"
#include "shapes/shape.h"
#include "support/numbers.h"

static void moves(Call *call, const Value *value) { call_bytes_of(call, 2 * (double)dtype_size(value->dtype), value); }

/* Are the elements first, first + step, ... of constant indices in [-length, length)? */
static bool constants_in_range(const Value *indices, int64_t first, int64_t step, const Dim *length) {
  IntRange range;
  if (!constant_range(indices, first, step, &range)) return false;
  return range.least >= -dim_lower(length) && range.most < dim_lower(length);
}

/* Are they all: constant ones, or those of a graph input, which gets a check before the run? Then the length must be
 * constant, because such a check has a constant lower bound. */
static bool indices_checked(Program *program, const Value *indices, const Dim *length) {
  if (constants_in_range(indices, 0, 1, length)) return true;
  if (!dim_is_const(length)) return false;
  return program_check_range(program, indices, -dim_value(length), dim_value(length), NULL, "index");
}

static const int updates[] = {[SCATTER_none] = UPDATE_REPLACES,
                              [SCATTER_add] = UPDATE_ADDS,
                              [SCATTER_mul] = UPDATE_MULTIPLIES,
                              [SCATTER_min] = UPDATE_MIN,
                              [SCATTER_max] = UPDATE_MAX};

static int reduction_of(const Node *node) { return updates[node_word(node, ATTR_reduction)]; }

/* With the types of the elements, which are only moved unless a scatter combines them, and of the indices. */
static KernelSpec *index_spec(Program *program, const Node *node, const char *name, DType element, DType index) {
  KernelSpec *spec = kernel_spec(program, name);
  if (op_has_attribute(node->op, ATTR_reduction) && reduction_of(node) != UPDATE_REPLACES)
    kernel_type(spec, "T", element);
  else
    kernel_bits(spec, "T", element);
  kernel_type(spec, "Index", index);
  return spec;
}

/* ---- along one axis ---- */

static int gather_axis(const Node *node) { return normal_axis(node_int(node, ATTR_axis), node->inputs[0]->rank); }

/* Bytes of a row: with fewer the order of copies takes more than what it saves. */
enum { LEAST_ROW = 64 };

/* Does it give a body's tensor as many rows as it has, of sources that each iteration finds? Then it can be written
 * over what it reads. */
static bool moves_rows(const Graph *graph, const Node *node) {
  const Value *x = node->inputs[0], *indices = node->inputs[1];
  if (node->op->kind != OP_Gather || !graph->outer || indices->rank != 1 || value_is_constant(indices)) return false;
  const Dim *rows = x->shape[gather_axis(node)];
  if (!same_dim(indices->shape[0], rows) || dim_upper(rows) > INT32_MAX / 2) return false;
  return value_max_bytes(x) >= saturating_mul(LEAST_ROW, dim_upper(rows));
}

/* The order of copies. */
static void index_scratch(Graph *graph, Node *node) {
  if (!moves_rows(graph, node)) return;
  int64_t numbers = saturating_mul(4, dim_upper(node->inputs[1]->shape[0])) + 1;
  graph_scratch(graph, node, "order of copies", dim_const(graph->dims, 4 * numbers));
}

static bool overwrites(const Node *node, int input) { return input == 0 && node->scratch; }

static void lower_gather(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0], *indices = node->inputs[1], *y = node->outputs[0];
  int axis = gather_axis(node);
  const char *name = node->scratch ? "gather_in_place" : "gather";
  KernelSpec *spec = index_spec(program, node, name, x->dtype, indices->dtype);
  bool checked = indices_checked(program, indices, x->shape[axis]);
  kernel_knob(spec, "CHECKED", !checked);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "in", x, READ);
  operand_value(call, "indices", indices, READ);
  operand_value(call, "out", y, WRITE);
  if (checked) operand_null(call, "fault");
  operands_around(call, x, axis, node->scratch ? "rows" : "length");
  if (node->scratch)
    operand_value(call, "memory", node->scratch, READ_WRITE);
  else
    operand_dim(call, "count", value_count_dim(graph, indices, 0, indices->rank));
  moves(call, y);
}

/* The axes without the indexed one, and without the last one if it is a run. */
typedef struct Lines {
  int kept;
  bool has_run;
  const Dim *extent[MAX_RANK], *data_stride[MAX_RANK], *index_stride[MAX_RANK];
} Lines;

static Lines lines_of(Graph *graph, const Value *data, const Value *indices, int axis) {
  const Dim *data_stride[MAX_RANK], *index_stride[MAX_RANK];
  Lines lines = {.has_run = axis != data->rank - 1};
  dense_strides(graph, data, data_stride);
  dense_strides(graph, indices, index_stride);
  for (int k = 0; k < data->rank - lines.has_run; k++) {
    if (k == axis) continue;
    lines.extent[lines.kept] = indices->shape[k];
    lines.data_stride[lines.kept] = data_stride[k];
    lines.index_stride[lines.kept++] = index_stride[k];
  }
  return lines;
}

/* Adds the call; `data` is read (gathers) or written at the indices. */
static Call *call_lines(Program *program, Node *node, const char *name, const Value *data, bool gathers) {
  Graph *graph = program->graph;
  const Value *indices = node->inputs[1];
  int axis = normal_axis(node_int(node, ATTR_axis), data->rank);
  Lines lines = lines_of(graph, data, indices, axis);
  KernelSpec *spec = index_spec(program, node, name, data->dtype, indices->dtype);
  bool checked = indices_checked(program, indices, data->shape[axis]);
  kernel_knob(spec, "KEPT", lines.kept);
  kernel_knob(spec, "RUN", lines.has_run);
  kernel_knob(spec, "CHECKED", !checked);
  if (!gathers) kernel_knob(spec, "REDUCTION", reduction_of(node));
  Call *call = kernel_call(program, node, spec);
  const Dim *data_axis = value_count_dim(graph, data, axis + 1, data->rank);
  const Dim *index_axis = value_count_dim(graph, indices, axis + 1, data->rank);
  operand_value(call, "indices", indices, READ);
  operand_value(call, "out", node->outputs[0], WRITE);
  operand_dim_array(call, "kept_extent", lines.kept, lines.extent);
  operand_dim_array(call, "kept_in", lines.kept, gathers ? lines.data_stride : lines.index_stride);
  operand_dim_array(call, "kept_out", lines.kept, gathers ? lines.index_stride : lines.data_stride);
  operand_dim(call, "count", indices->shape[axis]);
  operand_dim(call, "length", data->shape[axis]);
  operand_dim(call, "in_axis", gathers ? data_axis : index_axis);
  operand_dim(call, "out_axis", gathers ? index_axis : data_axis);
  operand_dim(call, "run", lines.has_run ? indices->shape[data->rank - 1] : dim_const(graph->dims, 1));
  if (checked) operand_null(call, "fault");
  moves(call, indices);
  return call;
}

static void lower_gather_elements(Program *program, Node *node) {
  operand_value(call_lines(program, node, "gather_elements", node->inputs[0], true), "in", node->inputs[0], READ);
}

static void lower_scatter_elements(Program *program, Node *node) {
  const Value *y = node->outputs[0];
  lower_whole_copy(program, node, node->inputs[0], y);
  operand_value(call_lines(program, node, "scatter_elements", y, false), "updates", node->inputs[2], READ);
}

/* ---- by tuples ---- */

/* The length of tuples; *checked: all indices are constants in range. */
static int tuple_length(const Value *data, const Value *indices, int first, bool *checked) {
  int length = (int)dim_value(indices->shape[indices->rank - 1]);
  *checked = true;
  for (int k = 0; k < length; k++) *checked &= constants_in_range(indices, k, length, data->shape[first + k]);
  return length;
}

/* The call with the operands of both templates, for tuples that index axes from `first` on. */
static Call *call_tuples(Program *program, Node *node, const char *name, int first, int *length) {
  Graph *graph = program->graph;
  const Value *data = node->inputs[0], *indices = node->inputs[1];
  const Dim *stride[MAX_RANK];
  bool checked;
  *length = tuple_length(data, indices, first, &checked);
  dense_strides(graph, data, stride);
  KernelSpec *spec = index_spec(program, node, name, data->dtype, indices->dtype);
  kernel_knob(spec, "DEPTH", *length);
  kernel_knob(spec, "CHECKED", !checked);
  if (!strcmp(name, "scatter_nd")) kernel_knob(spec, "REDUCTION", reduction_of(node));
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "indices", indices, READ);
  operand_value(call, "out", node->outputs[0], WRITE);
  operand_dim(call, "inner", value_count_dim(graph, data, first + *length, data->rank));
  operand_dim_array(call, "extent", *length, (const Dim *const *)data->shape + first);
  operand_dim_array(call, "stride", *length, stride + first);
  if (checked) operand_null(call, "fault");
  moves(call, node->outputs[0]);
  return call;
}

static void lower_gather_nd(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *data = node->inputs[0], *indices = node->inputs[1];
  int first = (int)node_int(node, ATTR_batch_dims), length;
  Call *call = call_tuples(program, node, "gather_nd", first, &length);
  operand_value(call, "in", data, READ);
  operand_dim(call, "batches", value_count_dim(graph, data, 0, first));
  operand_dim(call, "batch", value_count_dim(graph, data, first, data->rank));
  operand_dim(call, "tuples", value_count_dim(graph, indices, first, indices->rank - 1));
}

static void lower_scatter_nd(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *data = node->inputs[0], *indices = node->inputs[1];
  int length;
  Call *call = call_tuples(program, node, "scatter_nd", 0, &length);
  operand_value(call, "data", data, READ);
  operand_value(call, "updates", node->inputs[2], READ);
  operand_dim(call, "total", value_count_dim(graph, data, 0, data->rank));
  operand_dim(call, "tuples", value_count_dim(graph, indices, 0, indices->rank - 1));
}

/* ---- others ---- */

static void lower_one_hot(Program *program, Node *node) {
  const Value *indices = node->inputs[0], *values = node->inputs[2], *y = node->outputs[0];
  int axis = normal_axis(node_int(node, ATTR_axis), y->rank);
  KernelSpec *spec = index_spec(program, node, "one_hot", values->dtype, indices->dtype);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "indices", indices, READ);
  operand_value(call, "values", values, READ);
  operand_value(call, "out", y, WRITE);
  operands_around(call, y, axis, "depth");
  moves(call, y);
}

static void lower_reverse_sequence(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0], *lengths = node->inputs[1];
  int time = (int)node_int(node, ATTR_time_axis);
  bool checked = program_check_range(program, lengths, 0, 1, x->shape[time], "sequence length");
  KernelSpec *spec = kernel_spec(program, "reverse_sequence");
  kernel_bits(spec, "T", x->dtype);
  kernel_type(spec, "Length", lengths->dtype);
  kernel_knob(spec, "STEPS_FIRST", time == 0);
  kernel_knob(spec, "CHECKED", !checked);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "in", x, READ);
  operand_value(call, "lengths", lengths, READ);
  operand_value(call, "out", node->outputs[0], WRITE);
  operand_dim(call, "steps", x->shape[time]);
  operand_dim(call, "batch", x->shape[1 - time]);
  operand_dim(call, "inner", value_count_dim(graph, x, 2, x->rank));
  if (checked) operand_null(call, "fault");
  moves(call, x);
}

static void (*const lower_op[N_OPS])(Program *program, Node *node) = {
    [OP_Gather] = lower_gather,
    [OP_GatherElements] = lower_gather_elements,
    [OP_GatherND] = lower_gather_nd,
    [OP_OneHot] = lower_one_hot,
    [OP_ReverseSequence] = lower_reverse_sequence,
    [OP_ScatterND] = lower_scatter_nd,
    [OP_ScatterElements] = lower_scatter_elements,
};

static void index_lower(Program *program, Node *node) { lower_op[node->op->kind](program, node); }

const KernelFamily family_index = {.scratch = index_scratch, .overwrites = overwrites, .lower = index_lower};
