/* SPDX-License-Identifier: MIT */
/*
 * Shape inference: each op's rule computes its outputs' types and shapes as expressions over the named dimensions. An
 * error leaves the node's outputs unknown; nodes that read unknown values are skipped, so one mistake gives one
 * message. Small constants are folded on the way, because shapes may depend on any arithmetic.
 */
#include "ir/bodies.h"
#include "passes.h"
#include "shapes/control.h"
#include "shapes/elements.h"
#include "shapes/equal_extents.h"
#include "shapes/fold_node.h"
#include "shapes/intervals.h"
#include "shapes/shape.h"
#include "support/numbers.h"

/* A larger tensor is a mistake or an attack; nothing is allocated before the check. */
#define MAX_TENSOR_BYTES ((int64_t)1 << 40)

static bool check_extent(Graph *graph, const Value *value, int axis) {
  const Dim *extent = value->shape[axis];
  if (dim_at_most(graph->dims, dim_const(graph->dims, 0), extent)) return true;
  if (dim_is_const(extent))
    error_at(value->where, EXIT_INVALID, "axis %d of %s is %lld; no extent may be negative", axis,
             shape_text(graph, value), (long long)dim_value(extent));
  else
    error_at(value->where, EXIT_INVALID,
             "axis %d of %s may be as small as %lld; give its named dimensions a larger minimum%s", axis,
             shape_text(graph, value), (long long)dim_lower(extent), dims_places(graph, 1, &extent));
  return false;
}

/* Axes of length 0 count as 1, so that the strides of empty tensors do not overflow either. */
static bool check_size(Graph *graph, const Value *value) {
  int64_t bytes = (int64_t)dtype_size(value->dtype);
  for (int axis = 0; axis < value->rank; axis++)
    bytes = saturating_mul(bytes, max_int(1, dim_upper(value->shape[axis])));
  if (bytes <= MAX_TENSOR_BYTES) return true;
  error_at(value->where, EXIT_LIMIT, "%s takes %s%lld bytes at its dimensions' maxima%s; the limit is %lld%s",
           shape_text(graph, value), bytes == INT64_MAX ? "over " : "", (long long)bytes,
           value_max_count(value) == 0 ? ", its axes of length 0 left out" : "", (long long)MAX_TENSOR_BYTES,
           dims_places(graph, value->rank, value->shape));
  return false;
}

static bool check_value(Graph *graph, const Value *value) {
  if (value->rank > MAX_RANK) {
    error_at(value->where, EXIT_UNSUPPORTED, "`%.200s` has rank %d; at most %d is supported", value->name, value->rank,
             MAX_RANK);
    return false;
  }
  bool good = true;
  for (int axis = 0; axis < value->rank; axis++) good &= check_extent(graph, value, axis);
  return good && check_size(graph, value);
}

static void forget(Value *value) { value->rank = -1; }

bool inputs_known(const Node *node) {
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] && node->inputs[i]->rank < 0) return false;
  return true;
}

/* Ops whose kernels take empty inputs. All others need empty outputs for an empty input: then no kernel runs. */
static const bool of_nothing[N_OPS] = {
    [OP_CastLike] = true,
    [OP_Compress] = true,
    [OP_Concat] = true,
    [OP_Constant] = true,
    [OP_ConstantOfShape] = true,
    [OP_ConvWeightGradient] = true,
    [OP_Expand] = true,
    [OP_ExpectExtent] = true,
    [OP_Gather] = true,
    [OP_GatherND] = true,
    [OP_Gemm] = true,
    [OP_Identity] = true,
    [OP_MatMul] = true,
    [OP_If] = true,
    [OP_Loop] = true,
    [OP_Scan] = true,
    [OP_NonZero] = true,
    [OP_NonMaxSuppression] = true,
    [OP_Range] = true,
    [OP_ScatterElements] = true,
    [OP_ScatterND] = true,
    [OP_Shape] = true,
    [OP_Size] = true,
    [OP_Slice] = true,
    [OP_Split] = true,
};

/* Pad fills what it adds to nothing with a constant; other modes have nothing to repeat. */
static bool takes_nothing(const Node *node) {
  const OpInfo *op = node->op;
  if (is_op(node, OP_Pad)) return node_word(node, ATTR_mode) == PAD_constant;
  return op_is_view(op) || op_is_reduction(op) || of_nothing[op->kind];
}

/* Is the value empty whenever `extent` is 0? */
static bool empty_with(Graph *graph, const Value *value, const Dim *extent) {
  for (int axis = 0; axis < value->rank; axis++) {
    const Dim *own = value->shape[axis];
    if (dim_at_most(graph->dims, own, extent) || dim_equals(own, 0)) return true;
    if (!dim_is_const(extent) && dim_div_exact(graph->dims, own, extent)) return true;
  }
  return false;
}

static bool check_nothing(Graph *graph, const Node *node, const Value *input) {
  bool known = input->data || input->elements; /* an empty list of axes is a tensor of no elements */
  for (int axis = 0; axis < input->rank && !known; axis++) {
    if (dim_lower(input->shape[axis]) > 0) continue;
    for (int i = 0; i < node->n_outputs; i++)
      if (node->outputs[i] && !empty_with(graph, node->outputs[i], input->shape[axis]))
        return shape_unsupported(node,
                                 "axis %d of %s may be 0 long; that is supported only where the result is then "
                                 "empty too",
                                 axis, shape_text(graph, input));
  }
  return true;
}

static bool check_inputs_of_nothing(Graph *graph, const Node *node) {
  bool good = true;
  for (int i = 0; i < node->n_inputs && !takes_nothing(node); i++)
    if (node->inputs[i]) good &= check_nothing(graph, node, node->inputs[i]);
  return good;
}

static bool check_outputs(Graph *graph, Node *node) {
  bool good = true;
  for (int i = 0; i < node->n_outputs; i++) {
    if (!node->outputs[i]) continue;
    if (node->outputs[i]->rank < 0) bug("the shape rule of %s left output %d unset", node->op->name, i);
    Location own = node->outputs[i]->where;
    node->outputs[i]->where = node->where;
    good &= check_value(graph, node->outputs[i]);
    node->outputs[i]->where = own;
  }
  return good;
}

static bool has_bodies(const Node *node) { return is_op(node, OP_If) || is_op(node, OP_Loop) || is_op(node, OP_Scan); }

bool infer_node(Graph *graph, Node *node) {
  dim_table_asked_at(graph->dims, node->where);
  bool known = inputs_known(node), good = known && op_check_types(node);
  if (!known && has_bodies(node)) node->op->shape(graph, node); /* nodes of the bodies may have errors of their own */
  if (good) {
    op_set_output_types(node);
    good = node->op->shape(graph, node) && check_outputs(graph, node);
    if (good) infer_elements(graph, node);
    if (good) infer_intervals(graph, node);
    good = good && check_inputs_of_nothing(graph, node);
  }
  for (int i = 0; !good && i < node->n_outputs; i++)
    if (node->outputs[i]) forget(node->outputs[i]);
  return good;
}

static void check_symbols(const Graph *graph) {
  for (int i = 0; i < dim_symbol_count(graph->dims); i++) {
    const DimSymbol *symbol = dim_symbol_at(graph->dims, i);
    if (symbol->min >= 0 && symbol->min <= symbol->opt && symbol->opt <= symbol->max) continue;
    error_at(LOCATION_FILE(graph->file), EXIT_INVALID,
             "dimension `%.200s` has min %lld, opt %lld, max %lld; they must be 0 <= min <= opt <= max", symbol->name,
             (long long)symbol->min, (long long)symbol->opt, (long long)symbol->max);
  }
}

static void check_given(Graph *graph, Value *value) {
  if (!value || value->refused) return;
  if (value->rank < 0 || value->dtype == RNNCC_NONE)
    error_at(value->where, EXIT_INVALID, "`%.200s` has no shape or type", value->name);
  else if (!check_value(graph, value))
    forget(value);
}

static void check_states(Graph *graph) {
  for (int i = 0; i < graph->n_states; i++) {
    const Value *from = graph->states[i].output, *to = graph->states[i].input;
    if (!from || from->rank < 0 || to->rank < 0) continue;
    if (from->dtype == to->dtype && shapes_agree(from, to)) continue;
    error_at(to->where, EXIT_INVALID, "a state goes in as %s and comes out as %s; they must be the same",
             shape_text(graph, to), shape_text(graph, from));
  }
}

/* Are the outputs constants now: of a Constant, or folded? */
static bool became_constants(const Node *node) {
  bool constant = node->n_outputs > 0;
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i]) constant &= node->outputs[i]->data != NULL;
  for (int i = 0; constant && i < node->n_outputs; i++)
    if (node->outputs[i]) node->outputs[i]->producer = NULL;
  return constant;
}

void drop_folded_nodes(Graph *graph) {
  int kept = 0;
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n];
    if (!became_constants(node)) graph->nodes[kept++] = node;
  }
  graph->n_nodes = kept;
}

/* Appends the node, or the nodes that replace it. */
static void infer_into(Graph *graph, Node *node) {
  if (control_rewrite(graph, node, infer_into)) return;
  if (inputs_known(node)) {
    share_counts(graph, node);
    expect_extents(graph, node);
  }
  graph_append(graph, node);
  if (infer_node(graph, node)) fold_small(graph, node);
}

void infer_nodes(Graph *graph) {
  Node **nodes;
  int n_nodes = graph_take_nodes(graph, &nodes);
  for (int i = 0; i < n_nodes; i++) infer_into(graph, nodes[i]);
}

/* needs: verify's structure; types and shapes of inputs, states and constants.
 * keeps: the nodes, except Constant and folded small nodes, whose outputs become constants, and control flow that is
 * known at compile time.
 * sets: dtype, shape, elements and interval of every value. Ends the compilation if shapes do not fit. */
void infer_shapes(Graph *graph) {
  if (graph->outer) return; /* a body: inferred with its node */
  check_symbols(graph);
  for (int i = 0; i < graph->n_inputs; i++) check_given(graph, graph->inputs[i]);
  for (int i = 0; i < graph->n_states; i++) check_given(graph, graph->states[i].input);
  for (int i = 0; i < graph->n_values; i++)
    if (graph->values[i]->data) check_given(graph, graph->values[i]);
  infer_nodes(graph);
  check_states(graph);
  stop_on_errors();
  drop_folded_nodes(graph);
  graph_each(graph, graph_renumber);
}
