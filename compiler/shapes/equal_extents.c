/* SPDX-License-Identifier: MIT */
/*
 * Extents that operators want to be equal, where one of them is known in the run alone: NonZero's count, or
 * floor((T + 1) / 2), which is 4 in some runs; or a mask's own dim, of which the file does not say that it is S + P.
 * ONNX Runtime runs such a graph and fails if they differ; so does the module, by the node ExpectExtent. Extents of one
 * dim are not meant where bounds make them equal, nor are two inputs' own dims: the error says so.
 */
#include "shapes/equal_extents.h"

#include "ir/equal_nodes.h"
#include "shapes/build.h"
#include "shapes/shape.h"

/* ---- counts ---- */

static bool same_inputs(const Node *a, const Node *b) {
  for (int i = 0; i < a->n_inputs; i++)
    if (a->inputs[i] != b->inputs[i]) return false;
  return a->n_inputs == b->n_inputs;
}

static Node *twin_of(Graph *graph, const Node *node) {
  enum { LOOKED_AT = 1000 }; /* nodes: hostile graphs have many */
  for (int n = graph->n_nodes - 1; n >= 0 && n >= graph->n_nodes - LOOKED_AT; n--) {
    Node *earlier = graph->nodes[n];
    if (earlier->op == node->op && same_inputs(earlier, node) && same_attributes(earlier, node)) return earlier;
  }
  return NULL;
}

void share_counts(Graph *graph, Node *node) {
  if (!is_op(node, OP_NonZero) && !is_op(node, OP_Compress)) return;
  Node *twin = twin_of(graph, node);
  if (!twin || twin->outputs[0]->rank < 0) return;
  node->op = op_info(OP_Identity);
  node->n_inputs = 1;
  node->inputs[0] = twin->outputs[0];
  node->n_attributes = 0;
}

/* ---- what the run must find ---- */

/* An axis of an input. */
typedef struct Place {
  int input, axis;
} Place;

static const Dim *extent_at(const Node *node, Place place) { return node->inputs[place.input]->shape[place.axis]; }

static bool is_computed(const Dim *extent) {
  const DimSymbol *symbol = dim_as_symbol(extent);
  return !dim_is_const(extent) && !(symbol && symbol->kind == DIM_GIVEN);
}

/* Do the extents differ by what is known, and may be equal in a run? */
static bool may_meet(Graph *graph, const Dim *a, const Dim *b) {
  if (same_dim(a, b)) return false;
  const Dim *difference = dim_sub(graph->dims, a, b);
  if (dim_lower(difference) > 0 || dim_upper(difference) < 0) return false;
  return !dim_is_given(difference) || *equal_where(graph, a, b) || !only_symbol(graph, a, b);
}

static void tell(Graph *graph, const Node *node, const Value *x, int axis, const Dim *wanted) {
  note_at(node->where, "%s: axis %d of %s must be %s, which each run checks%s", node->op->name, axis,
          shape_text(graph, x), dim_text(graph, wanted), equal_where(graph, x->shape[axis], wanted));
}

/* The node's input gets the extent `size`, or that of an axis of the value `like`. */
static void expect(Graph *graph, Node *node, Place place, Value *like, int like_axis, int64_t size) {
  Value *x = node->inputs[place.input];
  const Builder builder = {graph, node->name, node->where};
  Value *const inputs[] = {x, like};
  const Attribute attributes[] = {attribute_int(ATTR_axis, place.axis),
                                  like ? attribute_int(ATTR_like_axis, like_axis) : attribute_int(ATTR_size, size)};
  tell(graph, node, x, place.axis, like ? like->shape[like_axis] : dim_const(graph->dims, size));
  node->inputs[place.input] = build_op(&builder, OP_ExpectExtent, like ? 2 : 1, inputs, 1, 2, attributes)->outputs[0];
}

/* How much the compiler knows of an extent: the other one is expected to be that. */
static int known(const Dim *extent) {
  if (dim_is_const(extent)) return 3;
  return dim_is_given(extent) ? 1 + is_computed(extent) : 0;
}

static void expect_equal(Graph *graph, Node *node, Place a, Place b) {
  const Dim *of_a = extent_at(node, a), *of_b = extent_at(node, b);
  if (!is_computed(of_a) && !is_computed(of_b)) return;
  if (!may_meet(graph, of_a, of_b)) return;
  bool turned = known(of_b) > known(of_a);
  Place sure = turned ? b : a, checked = turned ? a : b;
  const Dim *extent = extent_at(node, sure);
  if (dim_is_const(extent))
    expect(graph, node, checked, NULL, 0, dim_value(extent));
  else
    expect(graph, node, checked, node->inputs[sure.input], sure.axis, 0);
}

static int rank_of(const Node *node, int input) { return node->inputs[input]->rank; }

static void expect_product(Graph *graph, Node *node) {
  int a = rank_of(node, 0), b = rank_of(node, 1);
  if (a > 0 && b > 0) expect_equal(graph, node, (Place){0, a - 1}, (Place){1, b > 1 ? b - 2 : 0});
}

static void expect_gemm(Graph *graph, Node *node) {
  if (rank_of(node, 0) != 2 || rank_of(node, 1) != 2) return;
  expect_equal(graph, node, (Place){0, node_int(node, ATTR_transA) == 0}, (Place){1, node_int(node, ATTR_transB) != 0});
}

static void expect_layer(Graph *graph, Node *node) {
  if (rank_of(node, 0) == 3 && rank_of(node, 1) == 3) expect_equal(graph, node, (Place){0, 2}, (Place){1, 2});
}

/* Extents of the run: of one and a constant broadcasting decides. All must be equal to the first one. */
static void expect_broadcast(Graph *graph, Node *node) {
  Place first[MAX_RANK];
  bool has_first[MAX_RANK] = {false};
  for (int i = 0; i < node->n_inputs; i++)
    for (int from_end = 1; node->inputs[i] && from_end <= rank_of(node, i); from_end++) {
      Place own = {i, rank_of(node, i) - from_end};
      if (dim_is_const(extent_at(node, own))) continue;
      if (has_first[from_end - 1])
        expect_equal(graph, node, first[from_end - 1], own);
      else
        first[from_end - 1] = own;
      has_first[from_end - 1] = true;
    }
}

/* Extents of the axes along which nothing is joined are those of the first input. */
static void expect_joined(Graph *graph, Node *node) {
  int rank = rank_of(node, 0), joined = normal_axis(node_int(node, ATTR_axis), rank);
  for (int i = 1; i < node->n_inputs && joined >= 0; i++)
    for (int axis = 0; axis < rank && rank_of(node, i) == rank; axis++)
      if (axis != joined) expect_equal(graph, node, (Place){0, axis}, (Place){i, axis});
}

/* A value [P + T], of the steps of the past's keys [B, heads, P, D] and the new ones. */
static Value *all_keys(Graph *graph, const Node *node, Value *past, Value *key, int axis) {
  const Builder builder = {graph, node->name, node->where};
  Value *both[] = {build_extent(&builder, past, 2), build_extent(&builder, key, axis)};
  Value *sum = build_op(&builder, OP_Add, 2, both, 1, 0, NULL)->outputs[0];
  return build_op(&builder, OP_ConstantOfShape, 1, &sum, 1, 0, NULL)->outputs[0];
}

/* The mask's last axis is that of the keys, of which the past is a part. */
static void expect_attention(Graph *graph, Node *node) {
  Value *mask = node_input(node, 3), *key = node->inputs[1], *past = node_input(node, 4);
  if (!mask || mask->rank < 1 || key->rank < 3 || (past && past->rank != 4)) return;
  Place of_mask = {3, mask->rank - 1}, of_key = {1, key->rank - 2};
  if (!past) {
    expect_equal(graph, node, of_mask, of_key);
    return;
  }
  const Dim *keys = dim_add(graph->dims, past->shape[2], extent_at(node, of_key)), *last = extent_at(node, of_mask);
  if (dim_is_const(keys) || dim_is_const(last) || !may_meet(graph, last, keys)) return;
  expect(graph, node, of_mask, all_keys(graph, node, past, key, of_key.axis), 0, 0);
}

static void (*const expect_of[N_OPS])(Graph *, Node *) = {
    [OP_Attention] = expect_attention, [OP_Concat] = expect_joined,  [OP_GRU] = expect_layer, [OP_Gemm] = expect_gemm,
    [OP_LSTM] = expect_layer,          [OP_MatMul] = expect_product, [OP_RNN] = expect_layer,
};

void expect_extents(Graph *graph, Node *node) {
  if (expect_of[node->op->kind]) expect_of[node->op->kind](graph, node);
  if (node->op->shape == op_info(OP_Add)->shape) expect_broadcast(graph, node);
}

bool shape_expect_extent(Graph *graph, Node *node) {
  const Value *x = node->inputs[0], *like = node_input(node, 1);
  const Dim *shape[MAX_RANK];
  int axis = check_axis(node, "axis", node_int(node, ATTR_axis), x->rank), like_axis = 0;
  if (!like == !node_has(node, ATTR_size)) return shape_error(node, "expected either `size` or input 1");
  if (like) like_axis = check_axis(node, "like_axis", node_int(node, ATTR_like_axis), like->rank);
  if (axis < 0 || like_axis < 0) return false;
  for (int k = 0; k < x->rank; k++) shape[k] = x->shape[k];
  shape[axis] = like ? like->shape[like_axis] : dim_const(graph->dims, node_int(node, ATTR_size));
  if (same_dim(x->shape[axis], shape[axis]) || may_meet(graph, x->shape[axis], shape[axis]))
    return set_shape(graph, node, 0, x->rank, shape);
  return shape_error(node, "axis %d of %s is never %s", axis, shape_text(graph, x), dim_text(graph, shape[axis]));
}
