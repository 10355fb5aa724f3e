/* SPDX-License-Identifier: MIT */
#include "kernels/matmul/product.h"

/* Batch axes of a MatMul operand: all but the last two. */
static int batch_axes(const Value *value) { return value->rank > 2 ? value->rank - 2 : 0; }

/* strides[i]: the operand's stride along the output's batch axis i; `step`: that of a matrix. */
static void batch_strides(Graph *graph, const Value *operand, int batch_rank, const Dim *step, const Dim **strides) {
  int own = batch_axes(operand);
  for (int i = batch_rank - 1; i >= 0; i--) {
    int axis = i - (batch_rank - own);
    bool repeated = axis < 0 || operand->shape[axis] == one_of(graph);
    strides[i] = repeated ? zero_of(graph) : step;
    if (axis >= 0) step = dim_mul(graph->dims, step, operand->shape[axis]);
  }
}

/* With one matrix B, batches of A become rows. */
static void merge_batches(Graph *graph, Product *p, const Value *a) {
  p->m = dim_mul(graph->dims, p->m, value_count_dim(graph, a, 0, batch_axes(a)));
  p->batch_rank = 0;
}

Product product_of(Graph *graph, const Value *a, const Value *b, const Value *y) {
  const Dim *one = one_of(graph);
  Product p = {.k = a->shape[a->rank - 1], .a_depth = one, .b_column = one, .alpha = 1, .beta = 1};
  p.m = a->rank > 1 ? a->shape[a->rank - 2] : one;
  p.n = b->rank > 1 ? b->shape[b->rank - 1] : one;
  p.a_row = p.k;
  p.b_depth = p.n;
  p.b_matrices = value_count_dim(graph, b, 0, batch_axes(b));
  p.batch_rank = batch_axes(a) > batch_axes(b) ? batch_axes(a) : batch_axes(b);
  batch_strides(graph, a, p.batch_rank, dim_mul(graph->dims, p.m, p.k), p.a_batch);
  batch_strides(graph, b, p.batch_rank, one, p.b_batch);
  for (int i = 0; i < p.batch_rank; i++) p.batch[i] = y->shape[i];
  if (p.b_matrices == one) merge_batches(graph, &p, a);
  return p;
}

void product_dims(Call *call, const char *const *parameters, const Dim *const *dims) {
  for (int i = 0; parameters[i]; i++) operand_dim(call, parameters[i], dims[i]);
}

void product_batches(Call *call, Graph *graph, const Product *p, const Dim *b_matrix) {
  const Dim *b_batch[MAX_RANK];
  for (int i = 0; i < p->batch_rank; i++) b_batch[i] = dim_mul(graph->dims, p->b_batch[i], b_matrix);
  operand_integer(call, "batch_rank", p->batch_rank);
  operand_dim_array(call, "batch_dims", p->batch_rank, p->batch);
  operand_dim_array(call, "a_batch", p->batch_rank, p->a_batch);
  operand_dim_array(call, "b_batch", p->batch_rank, b_batch);
}

void product_cost(Call *call, const Product *p, double a_size, double b_size, double c_size) {
  const Dim *extents[MAX_RANK + 4] = {NULL};
  int n = p->batch_rank;
  for (int i = 0; i < n; i++) extents[i] = p->batch[i];
  extents[n] = p->m;
  extents[n + 1] = p->k;
  call_bytes(call, a_size, extents);
  extents[n + 2] = p->n;
  call_flops(call, 2, extents);
  extents[n + 1] = p->n;
  extents[n + 2] = NULL;
  call_bytes(call, c_size, extents);
  call_bytes(call, b_size, EXTENTS(p->b_matrices, p->k, p->n));
}
