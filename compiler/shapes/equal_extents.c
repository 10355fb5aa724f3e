/* SPDX-License-Identifier: MIT */
/*
 * Extents that operators want to be equal, where one of them is known in the run alone: NonZero's count, or
 * floor((T + 1) / 2), which is 4 in some runs; or a mask's own dim, of which the file does not say that it is S + P.
 * ONNX Runtime runs such a graph and fails if they differ; so does the module, by the node ExpectExtent. Extents of one
 * dim are not meant where bounds make them equal, nor are two inputs' own dims: the error says so.
 */
#include "shapes/equal_extents.h"

#include <ctype.h>
#include <limits.h>

#include "ir/equal_nodes.h"
#include "ir/tensor.h"
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

static void become_copy(Node *node, Value *of) {
  node->op = op_info(OP_Identity);
  node->n_inputs = 1;
  node->inputs[0] = of;
  node->n_attributes = 0;
}

static bool sums_all(Graph *graph, const Node *node) {
  bool reduced[MAX_RANK];
  if (!dtype_is_integer(node->inputs[0]->dtype) || !read_reduced(graph, node, reduced)) return false;
  for (int axis = 0; axis < node->inputs[0]->rank; axis++)
    if (!reduced[axis]) return false;
  return true;
}

/* The conditions that the value has as numbers, in any shape; NULL: it has no such. */
static Value *as_conditions(Value *value) {
  for (const Node *from = value->producer; from; from = value->producer) {
    if (!op_is_view(from->op) && (!is_op(from, OP_Cast) || value->dtype == RNNCC_BOOL)) break;
    value = from->inputs[0];
  }
  return value->dtype == RNNCC_BOOL ? value : NULL;
}

/* How many conditions hold, by the NonZero of them: exporters count so what they assign by a mask. NULL: there is none,
 * or the node counts nothing. */
static Value *counted_before(Graph *graph, Node *node) {
  Value *mask = as_conditions(node->inputs[0]);
  Node *twin = mask && sums_all(graph, node)
                   ? twin_of(graph, &(Node){.op = op_info(OP_NonZero), .n_inputs = 1, .inputs = &mask})
                   : NULL;
  if (!twin || twin->outputs[0]->rank < 0) return NULL;
  const Builder builder = {graph, node->name, node->where};
  const Dim *one[MAX_RANK];
  int rank = node_int(node, ATTR_keepdims) ? node->inputs[0]->rank : 0;
  for (int axis = 0; axis < rank; axis++) one[axis] = dim_const(graph->dims, 1);
  Value *count = build_reshape(&builder, build_extent(&builder, twin->outputs[0], 1), rank, one);
  const Attribute to = attribute_type(ATTR_to, node->inputs[0]->dtype);
  return build_op(&builder, OP_Cast, 1, &count, 1, 1, &to)->outputs[0];
}

/* The places of the elements that are not 0 in a list of one number: all of them, as exporters write an arange. NULL:
 * the node is none such. */
static Value *all_places(Graph *graph, const Node *node) {
  Value *list = node->inputs[0];
  const Attribute *value =
      is_op(list->producer, OP_ConstantOfShape) ? node_attribute(list->producer, ATTR_value) : NULL;
  if (!value || list->rank != 1 || value_element(value->tensor, 0) == 0) return NULL;
  const Builder builder = {graph, node->name, node->where};
  static const int64_t bounds[] = {0, 1};
  Value *numbers[2];
  for (int i = 0; i < 2; i++) numbers[i] = graph_constant(graph, node->name, RNNCC_I64, 0, NULL, &bounds[i]);
  Value *const range[] = {numbers[0], build_reshape(&builder, build_extent(&builder, list, 0), 0, NULL), numbers[1]};
  Value *places = build_op(&builder, OP_Range, 3, range, 1, 0, NULL)->outputs[0];
  const Dim *shape[] = {dim_const(graph->dims, 1), places->shape[0]};
  return build_reshape(&builder, places, 2, shape);
}

void share_counts(Graph *graph, Node *node) {
  Value *found = is_op(node, OP_ReduceSum) ? counted_before(graph, node) : NULL;
  if (is_op(node, OP_NonZero)) found = all_places(graph, node);
  if (found) become_copy(node, found);
  if (!is_op(node, OP_NonZero) && !is_op(node, OP_Compress)) return;
  Node *twin = twin_of(graph, node);
  if (twin && twin->outputs[0]->rank >= 0) become_copy(node, twin->outputs[0]);
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

/* As expect_equal() of axes that broadcast: a constant may be 1. */
static void expect_spread(Graph *graph, Node *node, Place a, Place b) {
  if (!dim_is_const(extent_at(node, a)) && !dim_is_const(extent_at(node, b))) expect_equal(graph, node, a, b);
}

static void expect_product(Graph *graph, Node *node) {
  int a = rank_of(node, 0), b = rank_of(node, 1);
  if (a > 0 && b > 0) expect_equal(graph, node, (Place){0, a - 1}, (Place){1, b > 1 ? b - 2 : 0});
  for (int from_end = 3; from_end <= a && from_end <= b; from_end++)
    expect_spread(graph, node, (Place){0, a - from_end}, (Place){1, b - from_end});
}

static void expect_gemm(Graph *graph, Node *node) {
  int transposed_a = node_int(node, ATTR_transA) != 0, transposed_b = node_int(node, ATTR_transB) != 0;
  if (rank_of(node, 0) != 2 || rank_of(node, 1) != 2) return;
  expect_equal(graph, node, (Place){0, !transposed_a}, (Place){1, transposed_b});
  int rank = node_input(node, 2) ? rank_of(node, 2) : 0;
  if (rank == 2) expect_spread(graph, node, (Place){0, transposed_a}, (Place){2, 0});
  if (rank == 1 || rank == 2) expect_spread(graph, node, (Place){1, !transposed_b}, (Place){2, rank - 1});
}

/* Axes of one letter, of equations without an ellipsis. */
static void expect_letters(Graph *graph, Node *node) {
  const char *equation = node_string(node, ATTR_equation);
  Place first[CHAR_MAX + 1];
  bool has_first[CHAR_MAX + 1] = {false};
  Place own = {0, 0};
  for (; *equation && *equation != '-' && *equation != '.' && own.input < node->n_inputs; equation++) {
    if (*equation == ',') own = (Place){own.input + 1, -1};
    if (isspace((unsigned char)*equation)) continue;
    if (isalpha((unsigned char)*equation) && own.axis < rank_of(node, own.input)) {
      if (has_first[(int)*equation]) expect_spread(graph, node, first[(int)*equation], own);
      if (!has_first[(int)*equation]) first[(int)*equation] = own;
      has_first[(int)*equation] = true;
    }
    own.axis++;
  }
}

/* There is an update for each index. */
static void expect_updates(Graph *graph, Node *node) {
  int rank = rank_of(node, 1);
  for (int axis = 0; axis < rank && rank_of(node, 2) == rank; axis++)
    expect_equal(graph, node, (Place){1, axis}, (Place){2, axis});
}

/* There is an update for each tuple, of the axes that tuples leave. */
static void expect_updates_of_tuples(Graph *graph, Node *node) {
  int tuples = rank_of(node, 1) - 1, rank = rank_of(node, 2), left = rank - tuples, from = rank_of(node, 0) - left;
  for (int axis = 0; axis < tuples && axis < rank; axis++)
    expect_equal(graph, node, (Place){1, axis}, (Place){2, axis});
  for (int axis = 0; axis < left && from >= 0 && tuples >= 0; axis++)
    expect_equal(graph, node, (Place){0, from + axis}, (Place){2, tuples + axis});
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
    [OP_Attention] = expect_attention,
    [OP_Concat] = expect_joined,
    [OP_Einsum] = expect_letters,
    [OP_GRU] = expect_layer,
    [OP_Gemm] = expect_gemm,
    [OP_LSTM] = expect_layer,
    [OP_MatMul] = expect_product,
    [OP_RNN] = expect_layer,
    [OP_ScatterElements] = expect_updates,
    [OP_ScatterND] = expect_updates_of_tuples,
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
