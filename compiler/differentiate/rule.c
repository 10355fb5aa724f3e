/* SPDX-License-Identifier: MIT */
/* What the rules of gradients share: shapes that fit again. */
#include "differentiate/rule.h"
#include "shapes/shape.h"

Value **all_outputs(const Gradient *g, int n) {
  Graph *graph = g->f->graph;
  Node *node = g->node;
  Value **outputs = ARENA_ARRAY(graph->arena, Value *, n);
  for (int i = 0; i < node->n_outputs; i++) outputs[i] = node->outputs[i];
  node->outputs = outputs;
  node->n_outputs = n;
  for (int i = 0; i < n; i++)
    if (!outputs[i]) graph_set_output(node, i, graph_value(graph, node->name, node->where));
  if (!infer_node(graph, node)) bug("a %s has lost its shape", node->op->name);
  return outputs;
}

Value *extents(const Formula *f, int n, const Dim *const *list) {
  int64_t constants[2 * MAX_RANK], count = n;
  int known = 0;
  for (; known < n && dim_is_const(list[known]); known++) constants[known] = dim_value(list[known]);
  if (known == n) return integers(f, n, constants);
  Value *value = graph_constant(f->graph, f->name, RNNCC_I64, 1, &count, NULL);
  value->elements = arena_copy(f->graph->arena, list, (size_t)n * sizeof *list);
  return value;
}

Value *in_shape(const Formula *f, Value *d, int rank, const Dim *const *shape) {
  return has_shape(d, rank, shape) ? d : apply2(f, OP_Reshape, d, extents(f, rank, shape));
}

Value *shaped_as(const Formula *f, Value *d, Value *like) { return in_shape(f, d, like->rank, like->shape); }

Value *spread_to_shape(const Formula *f, Value *d, int rank, const Dim *const *shape) {
  return has_shape(d, rank, shape) ? d : apply2(f, OP_Expand, d, extents(f, rank, shape));
}

Value *spread_to(const Formula *f, Value *d, Value *like) { return spread_to_shape(f, d, like->rank, like->shape); }

Value *zeros_like(const Formula *f, Value *like) { return spread_to(f, number(f, like, 0), like); }

Value *sum_to(const Formula *f, Value *d, Value *like) {
  int64_t axes[MAX_RANK];
  int n = 0, more = d->rank - like->rank;
  for (int axis = 0; axis < d->rank; axis++) {
    bool stretched = axis >= more && dim_equals(like->shape[axis - more], 1) && !dim_equals(d->shape[axis], 1);
    if (axis < more || stretched) axes[n++] = axis;
  }
  return shaped_as(f, n ? reduced(f, OP_ReduceSum, d, n, axes) : d, like);
}

Value *elements_for_each(const Formula *f, Value *x, Value *y) {
  int64_t count = 1;
  if (value_static(x) && value_static(y)) {
    if (value_count(y)) count = value_count(x) / value_count(y);
    return number(f, x, (double)count);
  }
  return cast(f, over(f, apply(f, OP_Size, x), apply(f, OP_Size, y)), x->dtype);
}

Value *where_true(const Formula *f, Value *condition, Value *d) {
  return apply3(f, OP_Where, condition, d, number(f, d, 0));
}

Value *matrix_product(const Formula *f, Value *a, bool turn_a, Value *b, bool turn_b, double alpha) {
  const Attribute attributes[] = {attribute_float(ATTR_alpha, alpha), attribute_int(ATTR_transA, turn_a),
                                  attribute_int(ATTR_transB, turn_b)};
  return build_op(f, OP_Gemm, 2, (Value *const[]){a, b}, 1, 3, attributes)->outputs[0];
}

Value *as_matrix(const Formula *f, Value *x) {
  const Attribute axis = attribute_int(ATTR_axis, x->rank - 1);
  return x->rank == 2 ? x : build_op(f, OP_Flatten, 1, &x, 1, 1, &axis)->outputs[0];
}
