/* SPDX-License-Identifier: MIT */
/*
 * Gather. Indices that are constant have been checked by shape inference, or against the least length the axis may
 * have; those of a graph input are checked before the run; all others in the kernel.
 */
#include "emit/family.h"

static bool constant_in_range(const Value *indices, int64_t length) {
  if (!indices->data) return false;
  int64_t count = value_count(indices);
  for (int64_t i = 0; i < count; i++) {
    int64_t index = indices->dtype == RNNCC_I64 ? ((const int64_t *)indices->data)[i]
                                                : (int64_t)((const int32_t *)indices->data)[i];
    if (index < -length || index >= length) return false;
  }
  return true;
}

/* A constant length; with one that only run time knows, the least index is no constant. */
static bool checked_before(Emitter *emitter, const Value *indices, const Dim *length) {
  if (constant_in_range(indices, dim_lower(length))) return true;
  if (!dim_is_const(length)) return false;
  return emitter_check_range(emitter, indices, -dim_value(length), dim_value(length), NULL, "index");
}

static void gather_emit(Emitter *emitter, Node *node) {
  Graph *graph = emitter_graph(emitter);
  const Value *x = node->inputs[0], *indices = node->inputs[1], *y = node->outputs[0];
  int axis = normal_axis(node_int(node, "axis"), x->rank);
  KernelSpec *spec = kernel_spec(emitter, "gather");
  kernel_bits(spec, "T", x->dtype);
  kernel_type(spec, "Index", indices->dtype);
  bool checked = checked_before(emitter, indices, x->shape[axis]);
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
