/* SPDX-License-Identifier: MIT */
/*
 * LayerNormalization and others: the input consists of rows with their own statistics, and a row of pieces whose
 * elements may share a scale and a bias.
 */
#include "ir/family.h"
#include "kernels/elementwise/elementwise.h"
#include "knobs.h"
#include "program/build.h"

typedef struct Rows {
  const Dim *rows, *groups, *pieces, *inner;
  int scale, bias; /* PARAMETER_ */
  bool centred;
} Rows;

static int parameter_kind(const Value *value, const Dim *row) {
  if (!value) return PARAMETER_NONE;
  for (int axis = 0; axis < value->rank; axis++)
    if (dim_upper(value->shape[axis]) > 1) return PARAMETER_BY_ELEMENT;
  return dim_upper(row) == 1 ? PARAMETER_BY_ELEMENT : PARAMETER_BY_PIECE;
}

/* Axes from `axis` on are a row; all rows share the parameters. */
static Rows trailing_rows(Graph *graph, const Node *node) {
  const Value *x = node->inputs[0], *bias = node_own_inputs(node) > 2 ? node->inputs[2] : NULL;
  const Dim *one = dim_const(graph->dims, 1);
  int axis = normal_axis(node_int(node, ATTR_axis), x->rank);
  const Dim *n = value_count_dim(graph, x, axis, x->rank);
  return (Rows){.rows = value_count_dim(graph, x, 0, axis),
                .groups = one,
                .pieces = one,
                .inner = n,
                .scale = parameter_kind(node->inputs[1], n),
                .bias = parameter_kind(bias, n),
                .centred = is_op(node, OP_LayerNormalization)};
}

/* A group of channels is a row; elements that share a parameter are a piece. */
static Rows channel_rows(Graph *graph, const Node *node) {
  DimTable *dims = graph->dims;
  const Value *x = node->inputs[0];
  bool instance = is_op(node, OP_InstanceNormalization);
  const Dim *groups = instance ? x->shape[1] : dim_const(dims, node_int(node, ATTR_num_groups));
  const Dim *pieces = dim_div(dims, node->inputs[1]->shape[0], groups);
  const Dim *image = value_count_dim(graph, x, 1, x->rank);
  return (Rows){.rows = dim_mul(dims, x->shape[0], groups),
                .groups = groups,
                .pieces = pieces,
                .inner = dim_div(dims, image, node->inputs[1]->shape[0]),
                .scale = PARAMETER_BY_PIECE,
                .bias = PARAMETER_BY_PIECE,
                .centred = true};
}

static Rows rows_of(Graph *graph, const Node *node) {
  return node->op->min_inputs == 3 ? channel_rows(graph, node) : trailing_rows(graph, node);
}

static void lower_normalise(Program *program, Node *node) {
  Graph *graph = program->graph;
  const Value *x = node->inputs[0];
  Rows rows = rows_of(graph, node);
  KernelSpec *spec = kernel_spec(program, "normalise");
  kernel_knob(spec, "CENTRED", rows.centred);
  kernel_knob(spec, "SCALE", rows.scale);
  kernel_knob(spec, "BIAS", rows.bias);
  kernel_hook(spec, "epilogue", elementwise_epilogue(program->arena, node));
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "x", x, READ);
  operand_value(call, "scale", node->inputs[1], READ);
  operand_value(call, "bias", rows.bias == PARAMETER_NONE ? NULL : node->inputs[2], READ);
  operand_value(call, "y", node->outputs[0], WRITE);
  operand_value(call, "mean", node_output(node, 1), WRITE);
  operand_value(call, "inverse", node_output(node, 2), WRITE);
  operand_float(call, "epsilon", node_float(node, ATTR_epsilon));
  operand_dim(call, "rows", rows.rows);
  operand_dim(call, "groups", rows.groups);
  operand_dim(call, "pieces", rows.pieces);
  operand_dim(call, "inner", rows.inner);
  call_flops_of(call, 6, x);
  call_bytes_of(call, 8, x);
}

/* A worker reads a whole row before it writes it. */
static bool overwrites(const Node *node, int input) {
  (void)node;
  return input == 0;
}

const KernelFamily family_normalise = {
    .takes_epilogue = elementwise_follows, .overwrites = overwrites, .lower = lower_normalise};
