/* SPDX-License-Identifier: MIT */
/* Gradients of data movement: what was moved is moved back, and what was read several times adds up. */
#include "differentiate/rule.h"
#include "ir/op.h"
#include "shapes/shape.h"
#include "support/numbers.h"

/* ---- shapes ---- */

const char *of_view(const Gradient *g) {
  g->dx[0] = shaped_as(g->f, gradient_in(g), g->node->inputs[0]);
  return NULL;
}

/* In the extent that the node found. */
const char *of_expect_extent(const Gradient *g) {
  int64_t axis = node_int(g->node, ATTR_axis);
  Value *const inputs[] = {gradient_in(g), g->node->inputs[0]};
  const Attribute attributes[] = {attribute_int(ATTR_axis, axis), attribute_int(ATTR_like_axis, axis)};
  g->dx[0] = build_op(g->f, OP_ExpectExtent, 2, inputs, 1, 2, attributes)->outputs[0];
  return NULL;
}

const char *of_expand(const Gradient *g) {
  g->dx[0] = sum_to(g->f, gradient_in(g), g->node->inputs[0]);
  return NULL;
}

/* An axis that is repeated is two: the copies, which are summed, and its own. */
const char *of_tile(const Gradient *g) {
  const Formula *f = g->f;
  const Value *x = g->node->inputs[0], *y = g->node->outputs[0];
  const Dim *shape[2 * MAX_RANK];
  int64_t copies[MAX_RANK];
  int rank = 0, n = 0;
  for (int axis = 0; axis < x->rank; axis++) {
    if (x->shape[axis] != y->shape[axis]) {
      copies[n++] = rank;
      shape[rank++] = dim_div_exact(f->graph->dims, y->shape[axis], x->shape[axis]);
    }
    shape[rank++] = x->shape[axis];
  }
  if (rank > MAX_RANK) return "so many repeated axes";
  g->dx[0] = n ? summed_away(f, in_shape(f, gradient_in(g), rank, shape), n, copies) : gradient_in(g);
  return NULL;
}

const char *of_transpose(const Gradient *g) {
  const Attribute *perm = node_attribute(g->node, ATTR_perm);
  int rank = g->node->inputs[0]->rank;
  int64_t back[MAX_RANK];
  for (int axis = 0; axis < rank; axis++) back[perm ? normal_axis(perm->ints[axis], rank) : rank - 1 - axis] = axis;
  g->dx[0] = build_transpose(g->f, gradient_in(g), back);
  return NULL;
}

/* ---- parts ---- */

/* Elements [start, end) along an axis. */
static Value *part(const Formula *f, Value *x, int axis, const Dim *start, const Dim *end) {
  const int64_t one = axis;
  Value *const inputs[] = {x, extents(f, 1, &start), extents(f, 1, &end), integers(f, 1, &one)};
  return build_op(f, OP_Slice, 4, inputs, 1, 0, NULL)->outputs[0];
}

/* With zeros around; negative numbers of them cut off. */
static Value *padded(const Formula *f, Value *x, const Dim *const *before, const Dim *const *after) {
  const Dim *pads[2 * MAX_RANK];
  for (int axis = 0; axis < x->rank; axis++) {
    pads[axis] = before[axis];
    pads[x->rank + axis] = after[axis];
  }
  return apply2(f, OP_Pad, x, extents(f, 2 * x->rank, pads));
}

const char *of_concat(const Gradient *g) {
  const Formula *f = g->f;
  const Node *node = g->node;
  DimTable *dims = f->graph->dims;
  int axis = normal_axis(node_int(node, ATTR_axis), node->outputs[0]->rank);
  const Dim *start = dim_const(dims, 0);
  for (int i = 0; i < node->n_inputs; i++) {
    const Dim *end = dim_add(dims, start, node->inputs[i]->shape[axis]);
    if (g->wanted[i]) g->dx[i] = part(f, gradient_in(g), axis, start, end);
    start = end;
  }
  return NULL;
}

const char *of_split(const Gradient *g) {
  const Formula *f = g->f;
  const Node *node = g->node;
  Value **parts = ARENA_ARRAY(f->graph->arena, Value *, node->n_outputs);
  for (int i = 0; i < node->n_outputs; i++) {
    if (!node->outputs[i]) return "an output that is left out";
    parts[i] = g->dy[i] ? g->dy[i] : zeros_like(f, node->outputs[i]);
  }
  g->dx[0] = build_concat(f, node->n_outputs, parts, normal_axis(node_int(node, ATTR_axis), node->inputs[0]->rank));
  return NULL;
}

/* d with step - 1 zeros behind each element of the axis. */
static Value *spaced(const Formula *f, Value *d, int axis, int64_t step) {
  DimTable *dims = f->graph->dims;
  const Dim *none[MAX_RANK], *behind[MAX_RANK], *shape[MAX_RANK];
  for (int k = 0; k < d->rank; k++) shape[k] = d->shape[k];
  for (int k = 0; k < MAX_RANK; k++) none[k] = behind[k] = dim_const(dims, 0);
  behind[axis + 1] = dim_const(dims, step - 1);
  shape[axis] = dim_mul(dims, shape[axis], dim_const(dims, step));
  return in_shape(f, padded(f, with_axis(f, d, axis + 1), none, behind), d->rank, shape);
}

static Value *turned_round(const Formula *f, Value *d, int axis) {
  const int64_t last = -1, end = -INT64_MAX, at = axis, step = -1;
  Value *const inputs[] = {d, integers(f, 1, &last), integers(f, 1, &end), integers(f, 1, &at), integers(f, 1, &step)};
  return build_op(f, OP_Slice, 5, inputs, 1, 0, NULL)->outputs[0];
}

/* The elements go back to start, start + step, ..., with zeros between and around. */
const char *of_slice(const Gradient *g) {
  const Formula *f = g->f;
  DimTable *dims = f->graph->dims;
  const Value *x = g->node->inputs[0];
  Value *d = gradient_in(g);
  SliceAxis axes[MAX_RANK];
  const Dim *before[MAX_RANK], *after[MAX_RANK];
  if (!read_slice(f->graph, g->node, axes)) bug("the slice was good before");
  for (int axis = 0; axis < x->rank; axis++) {
    int64_t step = axes[axis].step, length = step < 0 ? -step : step;
    const Dim *start = axes[axis].start;
    if (length > 1 && x->rank == MAX_RANK) return "a step along one of 8 axes";
    if (step < 0) { /* from the last one on upwards */
      d = turned_round(f, d, axis);
      const Dim *steps = dim_sub(dims, axes[axis].extent, dim_const(dims, 1));
      start = dim_sub(dims, start, dim_mul(dims, steps, dim_const(dims, length)));
      start = dim_min(dims, start, x->shape[axis]); /* of nothing it would lie beyond x */
    }
    if (length > 1) d = spaced(f, d, axis, length);
    before[axis] = start;
    after[axis] = dim_sub(dims, dim_sub(dims, x->shape[axis], start), d->shape[axis]);
  }
  g->dx[0] = padded(f, d, before, after);
  return NULL;
}

/* The pads' gradients, which are where a padded x would have nothing. */
static Value *of_padding(const Formula *f, Value *d, Value *x, const Dim *const *before, const Dim *const *after,
                         Value *value) {
  Value *inside = padded(f, spread_to(f, number(f, d, 1), x), before, after);
  return sum_to(f, where_true(f, apply2(f, OP_Equal, inside, number(f, d, 0)), d), value);
}

const char *of_pad(const Gradient *g) {
  const Formula *f = g->f;
  DimTable *dims = f->graph->dims;
  Value *value = node_input(g->node, 2);
  const Dim *before[MAX_RANK], *after[MAX_RANK], *zero = dim_const(dims, 0);
  if (node_word(g->node, ATTR_mode) != PAD_constant) return "a `mode` other than constant";
  if (!read_pads(f->graph, g->node, before, after)) bug("the pads were good before");
  if (value && g->wanted[2]) g->dx[2] = of_padding(f, gradient_in(g), g->node->inputs[0], before, after, value);
  if (!g->wanted[0]) return NULL;
  for (int axis = 0; axis < g->node->inputs[0]->rank; axis++) {
    before[axis] = dim_sub(dims, zero, before[axis]);
    after[axis] = dim_sub(dims, zero, after[axis]);
  }
  g->dx[0] = padded(f, gradient_in(g), before, after);
  return NULL;
}

/* ---- by index: in the order of the indices, so that sums do not depend on threads ---- */

/* `updates` added to zeros in the shape of x. */
static Value *scattered(const Formula *f, OpKind op, Value *x, Value *indices, Value *updates, int64_t axis) {
  const Attribute attributes[] = {attribute_one_of(ATTR_reduction, SCATTER_add), attribute_int(ATTR_axis, axis)};
  Value *const inputs[] = {zeros_like(f, x), indices, updates};
  return build_op(f, op, 3, inputs, 1, op == OP_ScatterElements ? 2 : 1, attributes)->outputs[0];
}

const char *of_gather_elements(const Gradient *g) {
  g->dx[0] = scattered(g->f, OP_ScatterElements, g->node->inputs[0], g->node->inputs[1], gradient_in(g),
                       node_int(g->node, ATTR_axis));
  return NULL;
}

const char *of_gather_nd(const Gradient *g) {
  if (node_int(g->node, ATTR_batch_dims)) return "`batch_dims` other than 0";
  g->dx[0] = scattered(g->f, OP_ScatterND, g->node->inputs[0], g->node->inputs[1], gradient_in(g), 0);
  return NULL;
}

const char *of_top_k(const Gradient *g) {
  g->dx[0] = scattered(g->f, OP_ScatterElements, g->node->inputs[0], g->node->outputs[1], gradient_in(g),
                       node_int(g->node, ATTR_axis));
  return NULL;
}

/* What updates replace has no gradient; of several for one place each has that place's, as in PyTorch. */
static const char *of_scatter(const Gradient *g, OpKind scatter, OpKind gather) {
  const Formula *f = g->f;
  const Node *node = g->node;
  int reduction = node_word(node, ATTR_reduction), n_attributes = gather == OP_GatherElements;
  if (reduction != SCATTER_none && reduction != SCATTER_add) return "a `reduction` other than none and add";
  Value *d = gradient_in(g), *operands[] = {d, node->inputs[1], NULL};
  const Attribute axis = attribute_int(ATTR_axis, n_attributes ? node_int(node, ATTR_axis) : 0);
  if (g->wanted[2]) g->dx[2] = build_op(f, gather, 2, operands, 1, n_attributes, &axis)->outputs[0];
  if (g->wanted[0] && reduction == SCATTER_add) g->dx[0] = d;
  if (g->wanted[0] && reduction == SCATTER_none) {
    operands[2] = zeros_like(f, node->inputs[2]);
    g->dx[0] = build_op(f, scatter, 3, operands, 1, n_attributes, &axis)->outputs[0];
  }
  return NULL;
}

const char *of_scatter_elements(const Gradient *g) { return of_scatter(g, OP_ScatterElements, OP_GatherElements); }

const char *of_scatter_nd(const Gradient *g) { return of_scatter(g, OP_ScatterND, OP_GatherND); }

/* Of the two values that it has: where an element is not hot, and where it is. */
const char *of_one_hot(const Gradient *g) {
  static const uint8_t truths[] = {0, 1};
  static const int64_t two = 2;
  const Formula *f = g->f;
  const Node *node = g->node;
  Value *marks = graph_constant(f->graph, f->name, RNNCC_BOOL, 1, &two, truths);
  Value *const inputs[] = {node->inputs[0], node->inputs[1], marks};
  Value *hot = build_op(f, OP_OneHot, 3, inputs, 1, node->n_attributes, node->attributes)->outputs[0];
  Value *d = gradient_in(g), *parts[] = {where_true(f, apply(f, OP_Not, hot), d), where_true(f, hot, d)}, *sums[2];
  for (int i = 0; i < 2; i++) {
    Value *sum = build_op(f, OP_ReduceSum, 1, &parts[i], 1, 0, NULL)->outputs[0];
    sums[i] = build_reshape(f, sum, 1, (const Dim *[]){dim_const(f->graph->dims, 1)});
  }
  g->dx[2] = build_concat(f, 2, sums, 0);
  return NULL;
}

/* The axes [first, first + n) go to the front. */
static Value *to_front(const Formula *f, Value *x, int first, int n) {
  int64_t perm[MAX_RANK];
  for (int axis = 0; axis < x->rank; axis++) perm[axis] = axis < n ? first + axis : axis < first + n ? axis - n : axis;
  return first ? build_transpose(f, x, perm) : x;
}

/* The rows that were gathered along an axis are added up where they stood: along the first one, then moved back. */
const char *of_gather(const Gradient *g) {
  const Formula *f = g->f;
  Value *x = g->node->inputs[0], *indices = g->node->inputs[1];
  int axis = normal_axis(node_int(g->node, ATTR_axis), x->rank);
  const Dim *shape[MAX_RANK];
  int64_t back[MAX_RANK];
  for (int k = 0; k < x->rank; k++) {
    int from = k == 0 ? axis : k <= axis ? k - 1 : k;
    shape[k] = x->shape[from];
    back[from] = k;
  }
  if (indices->rank == MAX_RANK) return "indices of 8 axes";
  Value *updates = to_front(f, gradient_in(g), axis, indices->rank);
  Value *rows = spread_to_shape(f, number(f, x, 0), x->rank, shape);
  const Attribute add = attribute_one_of(ATTR_reduction, SCATTER_add);
  Value *const inputs[] = {rows, with_axis(f, indices, indices->rank), updates};
  Value *d = build_op(f, OP_ScatterND, 3, inputs, 1, 1, &add)->outputs[0];
  g->dx[0] = axis ? build_transpose(f, d, back) : d;
  return NULL;
}

/* ---- what is its own inverse, or another operator's ---- */

/* With the same other inputs and attributes. */
static Value *moved_by(const Gradient *g, OpKind op) {
  const Node *node = g->node;
  Value **inputs = arena_copy(g->f->graph->arena, node->inputs, (size_t)node->n_inputs * sizeof *inputs);
  inputs[0] = gradient_in(g);
  return build_op(g->f, op, node->n_inputs, inputs, 1, node->n_attributes, node->attributes)->outputs[0];
}

const char *of_same_move(const Gradient *g) {
  g->dx[0] = moved_by(g, g->node->op->kind);
  return NULL;
}

const char *of_blocks(const Gradient *g) {
  g->dx[0] = moved_by(g, is_op(g->node, OP_DepthToSpace) ? OP_SpaceToDepth : OP_DepthToSpace);
  return NULL;
}
