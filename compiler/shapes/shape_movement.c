/* SPDX-License-Identifier: MIT */
/* Ops that move elements: Concat, Split, Transpose, Expand, Gather. */
#include "shapes/shape.h"

static bool concat_agrees(Graph *graph, const Node *node, int input, int axis) {
  const Value *first = node->inputs[0], *value = node->inputs[input];
  int i = 0;
  while (value->rank == first->rank && i < first->rank && (i == axis || same_dim(value->shape[i], first->shape[i])))
    i++;
  if (value->rank == first->rank && i == first->rank) return true;
  return shape_error(node, "inputs may differ on axis %d only, found %s and %s%s", axis, shape_text(graph, first),
                     shape_text(graph, value),
                     value->rank == first->rank ? equal_where(graph, first->shape[i], value->shape[i]) : "");
}

bool shape_concat(Graph *graph, Node *node) {
  const Value *first = node->inputs[0];
  int axis = check_axis(node, "axis", node_int(node, ATTR_axis), first->rank);
  if (axis < 0) return false;
  const Dim *shape[MAX_RANK];
  for (int i = 0; i < first->rank; i++) shape[i] = first->shape[i];
  bool good = true;
  for (int input = 1; input < node->n_inputs; input++) {
    if (!concat_agrees(graph, node, input, axis))
      good = false;
    else
      shape[axis] = dim_add(graph->dims, shape[axis], node->inputs[input]->shape[axis]);
  }
  return good && set_shape(graph, node, 0, first->rank, shape);
}

/* Equal parts; with `num_outputs` (opset 18) the last may be smaller. */
static bool equal_parts(Graph *graph, const Node *node, const Dim *extent, DimList *sizes) {
  DimTable *dims = graph->dims;
  const Dim *n = dim_const(dims, node->n_outputs);
  bool uneven = node_has(node, ATTR_num_outputs);
  if (uneven && node_int(node, ATTR_num_outputs) != node->n_outputs)
    return shape_error(node, "`num_outputs` is %lld, but there are %d outputs",
                       (long long)node_int(node, ATTR_num_outputs), node->n_outputs);
  const Dim *chunk = dim_div(dims, uneven ? dim_add(dims, extent, dim_const(dims, node->n_outputs - 1)) : extent, n);
  if (!uneven && dim_mul(dims, chunk, n) != extent)
    return shape_error(node, "an extent of %s cannot be cut into %d equal parts; give their sizes in `split`",
                       dim_text(graph, extent), node->n_outputs);
  sizes->n = node->n_outputs;
  sizes->items = ARENA_ARRAY(graph->arena, const Dim *, sizes->n);
  for (int i = 0; i < sizes->n; i++) sizes->items[i] = chunk;
  const Dim *before_last = dim_mul(dims, chunk, dim_const(dims, sizes->n - 1));
  sizes->items[sizes->n - 1] = dim_sub(dims, extent, before_last);
  return true;
}

static bool check_sizes(Graph *graph, const Node *node, const Dim *extent, const DimList *sizes) {
  if (sizes->n != node->n_outputs)
    return shape_error(node, "`split` has %d sizes, but there are %d outputs", sizes->n, node->n_outputs);
  const Dim *sum = dim_const(graph->dims, 0);
  for (int i = 0; i < sizes->n; i++) {
    if (dim_lower(sizes->items[i]) < 0)
      return shape_error(node, "part %d has size %s; no part may be negative", i, dim_text(graph, sizes->items[i]));
    sum = dim_add(graph->dims, sum, sizes->items[i]);
  }
  return same_dim(sum, extent) || shape_error(node, "the sizes add up to %s, but the axis has %s", dim_text(graph, sum),
                                              dim_text(graph, extent));
}

bool shape_split(Graph *graph, Node *node) {
  const Value *input = node->inputs[0];
  DimList sizes;
  int axis = check_axis(node, "axis", node_int(node, ATTR_axis), input->rank);
  if (axis < 0 || !operand_dims(graph, node, ATTR_split, 1, &sizes)) return false;
  const Dim *extent = input->shape[axis];
  if (!sizes.given && !equal_parts(graph, node, extent, &sizes)) return false;
  if (!check_sizes(graph, node, extent, &sizes)) return false;
  const Dim *shape[MAX_RANK];
  for (int i = 0; i < input->rank; i++) shape[i] = input->shape[i];
  for (int output = 0; output < node->n_outputs; output++) {
    shape[axis] = sizes.items[output];
    set_shape(graph, node, output, input->rank, shape);
  }
  return true;
}

/* Without `perm`, the axes in reverse. */
bool shape_transpose(Graph *graph, Node *node) {
  const Value *input = node->inputs[0];
  IntList perm;
  bool seen[MAX_RANK];
  if (!operand_ints(graph, node, ATTR_perm, -1, &perm)) return false;
  if (perm.given && perm.n != input->rank)
    return shape_error(node, "`perm` has %d axes, but the input is %s", perm.n, shape_text(graph, input));
  for (int i = 0; i < perm.n; i++)
    if (perm.items[i] < 0)
      return shape_error(node, "`perm` has %lld; axes of a permutation are 0 to %d", (long long)perm.items[i],
                         input->rank - 1);
  if (!operand_axes(node, &perm, input->rank, seen)) return false;
  const Dim *shape[MAX_RANK];
  for (int axis = 0; axis < input->rank; axis++)
    shape[axis] = input->shape[perm.given ? perm.items[axis] : input->rank - 1 - axis];
  return set_shape(graph, node, 0, input->rank, shape);
}

/* Both ways: an extent of 1 in the target keeps the input's. */
bool shape_expand(Graph *graph, Node *node) {
  const Value *input = node->inputs[0];
  DimList target;
  if (!operand_dims(graph, node, ATTR_NONE, 1, &target) || !check_made_rank(node, "the result", target.n)) return false;
  int rank = target.n > input->rank ? target.n : input->rank;
  const Dim *one = dim_const(graph->dims, 1), *shape[MAX_RANK];
  for (int axis = 0; axis < rank; axis++) {
    int mine = axis - (rank - input->rank), other = axis - (rank - target.n);
    const Dim *a = mine < 0 ? one : input->shape[mine], *b = other < 0 ? one : target.items[other];
    shape[axis] = broadcast_dim(a, b);
    if (!shape[axis])
      return shape_error(node, "%s cannot expand to %s on axis %d", shape_text(graph, input), dim_text(graph, b), axis);
  }
  return set_shape(graph, node, 0, rank, shape);
}

/* One that the run knows may never be reached, as in a loop that a condition ends: the kernel checks it. */
static bool check_indices(Graph *graph, const Node *node, const Dim *extent) {
  const Dim **indices = known_elements(graph, node->inputs[1]);
  if (!indices || !dim_is_const(extent)) return true;
  int64_t count = value_count(node->inputs[1]);
  for (int64_t i = 0; i < count; i++)
    if (dim_lower(indices[i]) >= dim_value(extent) || dim_upper(indices[i]) < -dim_value(extent))
      return shape_error(node, "index %s is outside an axis of %s", dim_text(graph, indices[i]),
                         dim_text(graph, extent));
  return true;
}

bool shape_gather(Graph *graph, Node *node) {
  const Value *data = node->inputs[0], *indices = node->inputs[1];
  int axis = check_axis(node, "axis", node_int(node, ATTR_axis), data->rank);
  if (axis < 0 || !check_indices(graph, node, data->shape[axis])) return false;
  if (!check_made_rank(node, "the result", data->rank + indices->rank - 1)) return false;
  const Dim *shape[MAX_RANK];
  int rank = 0;
  for (int i = 0; i < axis; i++) shape[rank++] = data->shape[i];
  for (int i = 0; i < indices->rank; i++) shape[rank++] = indices->shape[i];
  for (int i = axis + 1; i < data->rank; i++) shape[rank++] = data->shape[i];
  return set_shape(graph, node, 0, rank, shape);
}
