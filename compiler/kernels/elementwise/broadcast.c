/* SPDX-License-Identifier: MIT */
#include "kernels/elementwise/broadcast.h"

#include "shapes/shape.h"
#include "support/diagnostics.h"

/* Does the operand have more than one element along the output's axis? */
static bool moves_along(const Value *output, const Value *operand, int axis) {
  int own = axis - (output->rank - operand->rank);
  if (own < 0 || dim_equals(operand->shape[own], 1)) return false;
  if (!same_dim(operand->shape[own], output->shape[axis])) bug("an operand's axis is neither 1 nor the output's");
  return true;
}

static bool merges(const Broadcast *nest, int axis, const bool moves[MAX_BROADCAST]) {
  for (int k = 0; k < nest->operands; k++)
    if (nest->moves[k][axis] != moves[k]) return false;
  return true;
}

static void add_axis(Graph *graph, Broadcast *nest, const Dim *extent, const bool moves[MAX_BROADCAST]) {
  int last = nest->rank - 1;
  if (nest->rank > 0 && merges(nest, last, moves)) {
    nest->extent[last] = dim_mul(graph->dims, nest->extent[last], extent);
    return;
  }
  nest->extent[nest->rank] = extent;
  for (int k = 0; k < nest->operands; k++) nest->moves[k][nest->rank] = moves[k];
  nest->rank++;
}

static void find_strides(Graph *graph, Broadcast *nest, int operand) {
  const Dim *stride = dim_const(graph->dims, 1);
  for (int axis = nest->rank - 1; axis >= 0; axis--) {
    bool moves = nest->moves[operand][axis];
    nest->stride[operand][axis] = moves ? stride : dim_const(graph->dims, 0);
    if (moves) stride = dim_mul(graph->dims, stride, nest->extent[axis]);
  }
}

Broadcast broadcast_of(Graph *graph, const Value *output, int n, const Value *const *operands) {
  Broadcast nest = {.operands = n};
  for (int axis = 0; axis < output->rank; axis++) {
    bool moves[MAX_BROADCAST] = {false};
    if (dim_equals(output->shape[axis], 1)) continue;
    for (int k = 0; k < n; k++) moves[k] = moves_along(output, operands[k], axis);
    add_axis(graph, &nest, output->shape[axis], moves);
  }
  const bool all[MAX_BROADCAST] = {true, true, true};
  if (nest.rank == 0) add_axis(graph, &nest, dim_const(graph->dims, 1), all);
  for (int k = 0; k < n; k++) find_strides(graph, &nest, k);
  return nest;
}
