/* SPDX-License-Identifier: MIT */
/*
 * Gather. Indices that are constant have been checked by shape inference, or against the least length the axis may
 * have; those of a graph input are checked before the run; all others in the kernel.
 */
#include "ir/family.h"
#include "kernels/index/index_check.h"
#include "program/emitter.h"

static void gather_emit(Emitter *emitter, Node *node) {
  Graph *graph = emitter_graph(emitter);
  const Value *x = node->inputs[0], *indices = node->inputs[1], *y = node->outputs[0];
  int axis = normal_axis(node_int(node, "axis"), x->rank);
  KernelSpec *spec = kernel_spec(emitter, "gather");
  kernel_bits(spec, "T", x->dtype);
  kernel_type(spec, "Index", indices->dtype);
  bool checked = indices_checked(emitter, indices, x->shape[axis]);
  kernel_knob(spec, "CHECKED", !checked);
  KernelCall *call = kernel_call(emitter, node, spec);
  call_bits(call, "in", x, dim_const(graph->dims, 0));
  call_value(call, "indices", indices);
  call_bits(call, "out", y, dim_const(graph->dims, 0));
  if (checked) call_argument(call, "fault", "NULL");
  call_dim(call, "outer", value_count_dim(graph, x, 0, axis));
  call_dim(call, "length", x->shape[axis]);
  call_dim(call, "count", value_count_dim(graph, indices, 0, indices->rank));
  call_dim(call, "inner", value_count_dim(graph, x, axis + 1, x->rank));
  call_cost(call, 0, 2.0 * (double)dim_optimum(value_count_dim(graph, y, 0, y->rank)) * (double)dtype_size(y->dtype));
}

const KernelFamily family_gather = {.name = "gather", .emit = gather_emit};
