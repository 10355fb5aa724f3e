/* SPDX-License-Identifier: MIT */
/*
 * softmax(scale Q K' + mask) V becomes one node whose kernel has no matrix of scores in memory (templates/attention.c),
 * and reads Q, K and V where they stand: Transpose, Split and the like before them, and a Transpose of the result, need
 * no copies. Exporters write it as
 *
 *   MatMul(Softmax(Add(Mul(MatMul(Q, K'), scale), mask)), V)
 *
 * with or without mask and scale, which may be a Div, and may stand before the product instead, on Q, on K or on both.
 * A constant mask may also choose, as Where(mask, scores, -inf).
 * Where masks are of true and false, PyTorch has Where(IsNaN(weights), 0, weights): a query that sees no key gets 0.
 *
 * A constant mask that hides all keys but a band of them, as causal ones and windows do, becomes that band: what is
 * outside is not computed, and nothing is added inside. A mask that has other numbers in its band stays beside it.
 *
 * It is fused where a block of queries fills half a vector at least, because a lane has one query, and where K and V
 * are so narrow that what a block works on stays in a core's cache; and of one query a batch, where there are batches
 * for all workers (templates/attention_row.c). Others are faster as products of rows.
 */
#include <math.h>

#include "ir/tensor.h"
#include "kernels/attention/band.h"
#include "kernels/attention/fused_attention.h"
#include "kernels/attention/strided_view.h"
#include "machine/machine.h"
#include "machine/targets.h"
#include "passes.h"
#include "shapes/shape.h"

enum { MAX_DEPTH_AND_WIDTH = 1024 };

typedef struct Match {
  const Node *scores, *product, *softmax; /* of Q and K; of the weights and V */
  Value *q, *k, *v, *mask;                /* k: [depth, keys]; mask: or NULL */
  const Node *choice;                     /* a Where that is a mask, or NULL */
  double scale;
  bool blind_zero;
} Match;

/* The value's producer, if it is an `op` and nothing else reads the value. */
static const Node *sole(const UseList *uses, const Value *value, OpKind op) {
  const Node *node = value->producer;
  return is_op(node, op) && uses->single[value->id] && !node->n_epilogue ? node : NULL;
}

/* x of x * number or x / number, of which *scale then is a factor; else the value itself. */
static Value *unscaled(const UseList *uses, Value *value, double *scale) {
  const Node *mul = sole(uses, value, OP_Mul), *div = sole(uses, value, OP_Div);
  double number;
  for (int i = 0; mul && i < 2; i++) {
    Value *x = mul->inputs[1 - i];
    if (!value_number(mul->inputs[i], &number) || x->rank != value->rank) continue;
    *scale *= number;
    return x;
  }
  if (!div || !value_number(div->inputs[1], &number) || number == 0 || div->inputs[0]->rank != value->rank)
    return value;
  *scale /= number;
  return div->inputs[0];
}

/* Has it a column for each key, and may its other axes be repeated? */
static bool is_mask(const Value *mask, const Value *scores, DType dtype) {
  if (mask->dtype != dtype || mask->rank < 1 || mask->rank > scores->rank) return false;
  for (int i = 1; i <= mask->rank; i++) {
    const Dim *own = mask->shape[mask->rank - i], *all = scores->shape[scores->rank - i];
    if (!same_dim(own, all) && (i == 1 || !dim_equals(own, 1))) return false;
  }
  return true;
}

/* Is it the product of Q and K, or a multiple of it? */
static bool is_scores(const UseList *uses, Value *value) {
  double scale = 1;
  return sole(uses, unscaled(uses, value, &scale), OP_MatMul) != NULL;
}

static Value *unmasked(const UseList *uses, Value *value, Match *match) {
  const Node *add = sole(uses, value, OP_Add);
  for (int i = 0; add && i < 2; i++) {
    Value *x = add->inputs[1 - i];
    if (!is_scores(uses, x) || !shapes_agree(x, value) || !is_mask(add->inputs[i], value, RNNCC_F32)) continue;
    match->mask = add->inputs[i];
    return x;
  }
  return value;
}

/* Does each row of the constant have a key where it is `seen`? */
static bool rows_see(const Value *condition, bool seen) {
  int64_t columns = dim_value(condition->shape[condition->rank - 1]), left = 0;
  for (int64_t i = 0; i < value_count(condition); i++) {
    if (i % columns == 0) left = 0;
    left += (value_element(condition, i) != 0) == seen;
    if (i % columns == columns - 1 && left == 0) return false;
  }
  return true;
}

/* The scores of Where(condition, scores, number), or with the number first, where the condition is constant and the
 * number hides: -inf, or a large one beside a key that is seen. Else the value itself. */
static Value *unhidden(const UseList *uses, Value *value, Match *match) {
  const Node *where = sole(uses, value, OP_Where);
  double number;
  for (int i = 1; where && i < 3; i++) {
    const Value *condition = where->inputs[0];
    Value *x = where->inputs[3 - i];
    if (!value_number(where->inputs[i], &number) || number > LARGE_NEGATIVE || !is_scores(uses, x)) continue;
    if (!value_is_constant(condition) || !is_mask(condition, value, RNNCC_BOOL) || !shapes_agree(x, value)) continue;
    if (!isinf(number) && !rows_see(condition, i == 2)) continue;
    match->choice = where;
    return x;
  }
  return value;
}

static bool is_float_product(const Node *node) {
  return is_op(node, OP_MatMul) && !node->n_epilogue && node->outputs[0]->dtype == RNNCC_F32 &&
         node->inputs[0]->rank > 1 && node->inputs[1]->rank > 1;
}

static bool is_zero(const Value *value) {
  double number;
  return value_number(value, &number) && number == 0;
}

/* x of Where(IsNaN(x), 0, x), both of which alone read x; NULL: it is none. */
static Value *known(const UseList *uses, const Value *value) {
  const Node *where = sole(uses, value, OP_Where);
  if (!where || !is_zero(where->inputs[1]) || uses->count[where->inputs[2]->id] != 2) return NULL;
  const Node *test = sole(uses, where->inputs[0], OP_IsNaN);
  return test && test->inputs[0] == where->inputs[2] ? where->inputs[2] : NULL;
}

static const Node *softmax_of(const UseList *uses, Value *weights, bool *blind_zero) {
  Value *x = known(uses, weights);
  *blind_zero = x != NULL;
  if (!x) return sole(uses, weights, OP_Softmax);
  return is_op(x->producer, OP_Softmax) && !x->producer->n_epilogue ? x->producer : NULL;
}

static bool find(const UseList *uses, const Node *product, Match *match) {
  *match = (Match){.product = product, .scale = 1};
  if (!is_float_product(product)) return false;
  match->softmax = softmax_of(uses, product->inputs[0], &match->blind_zero);
  if (!match->softmax) return false;
  int rank = product->inputs[0]->rank;
  if (normal_axis(node_int(match->softmax, ATTR_axis), rank) != rank - 1) return false;
  Value *scores = unmasked(uses, match->softmax->inputs[0], match);
  if (!match->mask) scores = unhidden(uses, scores, match);
  scores = unscaled(uses, scores, &match->scale);
  match->scores = sole(uses, scores, OP_MatMul);
  if (!match->scores || !is_float_product(match->scores) || scores->rank != rank) return false;
  match->q = unscaled(uses, match->scores->inputs[0], &match->scale);
  match->k = unscaled(uses, match->scores->inputs[1], &match->scale);
  match->v = product->inputs[1];
  return true;
}

static bool is_side_by_side(Graph *graph, Value *matrix, int axis) {
  StridedView view = strided_view(graph, matrix);
  return dim_equals(view.stride[view.rank - axis], 1);
}

/* Of one query a batch: a batch for each worker at least, and contiguous rows. A constant mask may be a band. */
static bool is_row(Graph *graph, const Match *match) {
  const Value *result = match->product->outputs[0];
  double batches = 1;
  if (match->choice || (match->mask && value_is_constant(match->mask))) return false;
  for (int axis = 0; axis < result->rank - 2; axis++) batches *= (double)dim_optimum(result->shape[axis]);
  return batches >= graph->config->machine->cores && is_side_by_side(graph, match->q, 1) &&
         is_side_by_side(graph, match->k, 2) && is_side_by_side(graph, match->v, 1);
}

static bool gains(Graph *graph, const Match *match) {
  const Dim *depth = extent_from_end(match->q, 1), *width = extent_from_end(match->v, 1),
            *queries = extent_from_end(match->q, 2);
  return dim_is_const(depth) && dim_is_const(width) && dim_value(depth) > 0 && dim_value(width) > 0 &&
         dim_value(depth) + dim_value(width) <= MAX_DEPTH_AND_WIDTH && dim_lower(extent_from_end(match->v, 2)) > 0 &&
         (dim_equals(queries, 1) ? is_row(graph, match) : 2 * dim_optimum(queries) >= graph->config->target->lanes);
}

/* ---- where the operands stand ---- */

/* `turned`: the value's columns are the operand's rows. */
static AttentionOperand operand_of(Graph *graph, const StridedView *view, int batch_rank, bool turned) {
  const Dim *zero = dim_const(graph->dims, 0);
  int own = view->rank - 2, row = turned ? view->rank - 1 : own, column = turned ? own : view->rank - 1;
  AttentionOperand operand = {view->offset, row < 0 ? zero : view->stride[row], view->stride[column], {NULL}};
  if (row >= 0 && dim_equals(view->shape[row], 1)) operand.row = zero;
  for (int i = 0; i < batch_rank; i++) {
    int axis = i - (batch_rank - own);
    bool repeated = axis < 0 || dim_equals(view->shape[axis], 1);
    operand.batch[i] = repeated ? zero : view->stride[axis];
  }
  return operand;
}

/* A constant mask turned, so that queries stand side by side: vectors of it can be loaded. */
static Value *turned_mask(Graph *graph, const Value *mask) {
  int64_t shape[MAX_RANK], rank = mask->rank, rows = dim_value(mask->shape[rank - 2]);
  int64_t columns = dim_value(mask->shape[rank - 1]), all = value_count(mask);
  const float *from = mask->data;
  float *to = ARENA_ARRAY(graph->arena, float, all);
  for (int64_t i = 0; i < all; i++) {
    int64_t matrix = i / (rows * columns), row = i / columns % rows, column = i % columns;
    to[(matrix * columns + column) * rows + row] = from[i];
  }
  for (int axis = 0; axis < rank - 2; axis++) shape[axis] = dim_value(mask->shape[axis]);
  shape[rank - 2] = columns;
  shape[rank - 1] = rows;
  return graph_constant(graph, mask->name, RNNCC_F32, (int)rank, shape, to);
}

/* The numbers that a choice amounts to when they are added. */
static Value *choice_in_numbers(Graph *graph, const Node *where) {
  const Value *condition = where->inputs[0];
  double number;
  bool hides = value_number(where->inputs[1], &number) && number <= LARGE_NEGATIVE;
  int64_t count = value_count(condition), shape[MAX_RANK];
  float *data = ARENA_ARRAY(graph->arena, float, count);
  for (int64_t i = 0; i < count; i++) data[i] = (value_element(condition, i) != 0) == hides ? -INFINITY : 0;
  for (int axis = 0; axis < condition->rank; axis++) shape[axis] = dim_value(condition->shape[axis]);
  return graph_constant(graph, condition->name, RNNCC_F32, condition->rank, shape, data);
}

/* A constant mask that hides all but a band: such keys are skipped. True if nothing else is left of the mask. */
static bool set_band(Graph *graph, FusedAttention *a, const Value *mask) {
  Band band;
  if (!band_of_mask(mask, &band)) return false;
  a->banded = true;
  a->low = dim_const(graph->dims, band.low);
  a->high = dim_const(graph->dims, band.high);
  a->period = dim_const(graph->dims, band.period);
  a->seen = band.seen;
  return band.whole;
}

static void set_mask(Graph *graph, FusedAttention *a, Node *node, Value *mask) {
  bool turned = value_is_known(mask) && mask->rank > 1 && !dim_equals(extent_from_end(mask, 2), 1);
  StridedView view = strided_view(graph, turned ? turned_mask(graph, mask) : mask);
  a->mask = operand_of(graph, &view, a->batch_rank, turned);
  node->inputs[node->n_inputs++] = view.base;
}

/* The result's strides; through the Transpose `turn`, which leaves columns side by side, or NULL. */
static void set_result(Graph *graph, FusedAttention *a, const Value *result, const Node *turn) {
  StridedView view = {.offset = dim_const(graph->dims, 0), .rank = result->rank};
  const Value *y = turn ? turn->outputs[0] : result;
  const Attribute *perm = turn ? node_attribute(turn, ATTR_perm) : NULL;
  for (int axis = 0; axis < y->rank; axis++) {
    int source = perm ? normal_axis(perm->ints[axis], y->rank) : axis;
    view.shape[source] = y->shape[axis];
    view.stride[source] = value_count_dim(graph, y, axis + 1, y->rank);
  }
  a->y = operand_of(graph, &view, a->batch_rank, false);
}

/* ---- the node ---- */

/* The only reader of the result, if it is a Transpose that leaves the last axis. */
static Node *turn_of(const UseList *uses, const Value *result) {
  Node *node = uses->single[result->id];
  const Attribute *perm = is_op(node, OP_Transpose) && !node->n_epilogue ? node_attribute(node, ATTR_perm) : NULL;
  return perm && normal_axis(perm->ints[result->rank - 1], result->rank) == result->rank - 1 ? node : NULL;
}

static FusedAttention *describe(Graph *graph, const Match *match, Node *node, const Node *turn) {
  FusedAttention *a = ARENA_NEW(graph->arena, FusedAttention);
  const Value *result = match->product->outputs[0];
  StridedView q = strided_view(graph, match->q), k = strided_view(graph, match->k), v = strided_view(graph, match->v);
  *a = (FusedAttention){.batch_rank = result->rank - 2,
                        .queries = extent_from_end(match->q, 2),
                        .keys = extent_from_end(match->v, 2),
                        .depth = extent_from_end(match->q, 1),
                        .width = extent_from_end(match->v, 1),
                        .scale = match->scale,
                        .blind_zero = match->blind_zero};
  for (int i = 0; i < a->batch_rank; i++) a->batch[i] = result->shape[i];
  a->q = operand_of(graph, &q, a->batch_rank, false);
  a->k = operand_of(graph, &k, a->batch_rank, true);
  a->v = operand_of(graph, &v, a->batch_rank, false);
  set_result(graph, a, result, turn);
  node->inputs = ARENA_ARRAY(graph->arena, Value *, 4);
  node->inputs[0] = q.base, node->inputs[1] = k.base, node->inputs[2] = v.base;
  node->n_inputs = 3;
  Value *mask = match->choice ? choice_in_numbers(graph, match->choice) : match->mask;
  if (mask && !set_band(graph, a, mask)) set_mask(graph, a, node, mask);
  return a;
}

/* The last node of the pattern becomes the fused one. */
static void fuse(Graph *graph, const UseList *uses, const Match *match, Node *product) {
  Node *turn = turn_of(uses, product->outputs[0]), *node = turn ? turn : product;
  node->attention = describe(graph, match, node, turn);
  node->op = &op_fused_attention;
  node->name = product->name;
  node->n_attributes = 0;
}

/* needs: simplify, dense ids; before fuse_prologue. keeps: types and shapes of what remains; results but for rounding.
 * breaks: that every node is one of ops.def. Removes the patterns' inner nodes. */
void fuse_attention(Graph *graph) {
  UseList uses = graph_uses(graph);
  int n_nodes = graph->n_nodes;
  for (int n = 0; n < n_nodes; n++) {
    Match match;
    if (find(&uses, graph->nodes[n], &match) && gains(graph, &match)) fuse(graph, &uses, &match, graph->nodes[n]);
  }
  graph_remove_dead(graph);
}
