/* SPDX-License-Identifier: MIT */
/* ONNX Runtime's own operators of floats: one for several of ONNX's. */
#include "shapes/fused.h"

#include "shapes/shape.h"

/* ---- products ---- */

/* A matrix in its batch: [K, M] is turned; with `batch` the rows stand before all batch axes, [M, batch, K]. */
void fused_perm(int rank, bool turned, bool batch, int64_t *perm) {
  for (int axis = 0; axis < rank; axis++) perm[axis] = axis;
  if (batch) {
    for (int axis = 0; axis < rank - 2; axis++) perm[axis] = axis + 1;
    perm[rank - 2] = 0;
  }
  if (!turned) return;
  perm[rank - 2] = rank - 1;
  perm[rank - 1] = batch ? 0 : rank - 2;
}

static Value *turned(Graph *graph, const Node *node, int input, AttributeName turn, AttributeName batch) {
  Value *x = ARENA_NEW(graph->arena, Value);
  int64_t perm[MAX_RANK];
  *x = *node->inputs[input];
  bool whole = batch && node_int(node, batch) != 0;
  x->shape = ARENA_ARRAY(graph->arena, const Dim *, x->rank);
  fused_perm(x->rank, node_int(node, turn) != 0, whole, perm);
  for (int axis = 0; axis < x->rank; axis++) x->shape[axis] = node->inputs[input]->shape[perm[axis]];
  return x;
}

/* A vector is not turned: it has no other axis. */
bool shape_fused_matmul(Graph *graph, Node *node) {
  static const AttributeName turns[] = {ATTR_transA, ATTR_transB}, batches[] = {ATTR_transBatchA, ATTR_transBatchB};
  Value *operands[2];
  for (int i = 0; i < 2; i++) {
    bool turns_it = node_int(node, turns[i]) != 0 || node_int(node, batches[i]) != 0;
    if (turns_it && !check_rank(graph, node, i, 2, MAX_RANK)) return false;
    operands[i] = turns_it ? turned(graph, node, i, turns[i], batches[i]) : node->inputs[i];
  }
  return shape_as(graph, node, OP_MatMul, 2, operands);
}

/* How many numbers an activation takes; they have defaults all. */
static bool check_parameters(const Node *node) {
  static const size_t most[] = {
      [FUSED_LeakyRelu] = 1, [FUSED_Clip] = 2, [FUSED_HardSigmoid] = 2, [FUSED_HardSwish] = 0};
  const Attribute *given = node_attribute(node, ATTR_activation_params);
  int activation = node_word(node, ATTR_activation);
  if (!given || given->count <= most[activation]) return true;
  return shape_error(node, "`activation_params` has %zu numbers; \"%s\" takes at most %zu", given->count,
                     node_string(node, ATTR_activation), most[activation]);
}

bool shape_fused_gemm(Graph *graph, Node *node) { return shape_as(graph, node, OP_Gemm, node->n_inputs, node->inputs); }

bool shape_fused_conv(Graph *graph, Node *node) {
  int n = node->n_inputs < 3 ? node->n_inputs : 3;
  const Value *y = node->outputs[0];
  return check_parameters(node) && shape_as(graph, node, OP_Conv, n, node->inputs) &&
         check_shape(graph, node, 3, y->rank, y->shape, "what is added, like the result");
}

/* ---- activations ---- */

bool shape_biased(Graph *graph, Node *node) {
  const Value *x = node->inputs[0];
  if (!check_rank(graph, node, 0, 1, MAX_RANK)) return false;
  return check_shape(graph, node, 1, 1, &x->shape[x->rank - 1], "the bias, as long as the last axis") &&
         shape_same(graph, node);
}

/* input, bias of the last axis, what is added. */
bool shape_bias_add(Graph *graph, Node *node) {
  const Value *x = node->inputs[0];
  return shape_biased(graph, node) && check_shape(graph, node, 2, x->rank, x->shape, "what is added, like the input");
}

/* Half of the last axis is left. */
bool shape_bias_split_gelu(Graph *graph, Node *node) {
  const Value *x = node->inputs[0];
  const Dim *shape[MAX_RANK];
  if (!shape_biased(graph, node)) return false;
  const Dim *last = x->shape[x->rank - 1];
  if (!dim_is_const(last) || dim_value(last) % 2)
    return shape_error(node, "the last axis of %s must be constant and even", shape_text(graph, x));
  for (int axis = 0; axis < x->rank; axis++) shape[axis] = x->shape[axis];
  shape[x->rank - 1] = dim_const(graph->dims, dim_value(last) / 2);
  return set_shape(graph, node, 0, x->rank, shape);
}

/* Of each row of [M, K] to each of [N, K]. */
bool shape_distances(Graph *graph, Node *node) {
  const Value *a = node->inputs[0], *b = node->inputs[1];
  if (!check_rank(graph, node, 0, 2, 2) || !check_rank(graph, node, 1, 2, 2)) return false;
  if (!same_dim(a->shape[1], b->shape[1]))
    return shape_error(node, "rows of %s and %s differ in length", shape_text(graph, a), shape_text(graph, b));
  const Dim *shape[] = {a->shape[0], b->shape[0]};
  return set_shape(graph, node, 0, 2, shape);
}

/* `is_inner_broadcast` repeats what the bias's shape says. */
bool shape_bias_softmax(Graph *graph, Node *node) {
  const Value *x = node->inputs[0], *y = node->outputs[0];
  if (check_axis(node, "axis", node_int(node, ATTR_axis), x->rank) < 0 || !broadcast_inputs(graph, node)) return false;
  return shapes_agree(x, y) || shape_error(node, "input 1, %s, does not broadcast to %s",
                                           shape_text(graph, node->inputs[1]), shape_text(graph, x));
}

/* ---- normalisations ---- */

static bool check_vectors(Graph *graph, const Node *node, const Value *x, int first, int last) {
  for (int input = first; input <= last; input++)
    if (!check_shape(graph, node, input, 1, &x->shape[x->rank - 1], "as long as the last axis")) return false;
  return true;
}

/* What is added may lack the first axis, or have one of 1. */
static bool check_skip(Graph *graph, const Node *node) {
  const Value *x = node->inputs[0], *skip = node->inputs[1];
  bool fits = skip->rank == x->rank || skip->rank == x->rank - 1;
  for (int axis = 0; fits && axis < skip->rank; axis++) {
    int own = axis + x->rank - skip->rank;
    fits = same_dim(skip->shape[axis], x->shape[own]) || (own == 0 && dim_equals(skip->shape[axis], 1));
  }
  return fits || shape_error(node, "input 1, %s, does not fit %s", shape_text(graph, skip), shape_text(graph, x));
}

/* input, skip, then vectors; the result, mean and inverse deviation of each row, the sum. */
bool shape_skip_norm(Graph *graph, Node *node) {
  const Value *x = node->inputs[0];
  const Dim *rows[MAX_RANK];
  if (!check_rank(graph, node, 0, 2, 3) || !check_skip(graph, node) ||
      !check_vectors(graph, node, x, 2, node->op->max_inputs - 1))
    return false;
  bool statistics = node_output(node, 1) || node_output(node, 2);
  if (statistics && is_op(node, OP_SkipSimplifiedLayerNormalization))
    return shape_unsupported(node, "outputs 1 and 2, for training, are not supported");
  for (int axis = 0; axis < x->rank; axis++) rows[axis] = x->shape[axis];
  rows[x->rank - 1] = dim_const(graph->dims, 1);
  set_shape(graph, node, 1, x->rank, rows);
  set_shape(graph, node, 2, x->rank, rows);
  set_shape(graph, node, 3, x->rank, x->shape);
  return shape_same(graph, node);
}

/* The inverse deviation of each row, too. */
bool shape_simplified_norm(Graph *graph, Node *node) {
  int axis = check_axis(node, "axis", node_int(node, ATTR_axis), node->inputs[0]->rank);
  return axis >= 0 && shape_as(graph, node, OP_RMSNormalization, 2, node->inputs) &&
         set_row_statistics(graph, node, axis);
}

static bool check_table(Graph *graph, const Node *node, int input, const Dim *hidden) {
  if (!node_input(node, input)) return true;
  if (!check_rank(graph, node, input, 2, 2)) return false;
  const Dim *wanted[] = {node->inputs[input]->shape[0], hidden};
  return check_shape(graph, node, input, 2, wanted, "the embedding, [rows, hidden]");
}

static bool check_positions(Graph *graph, const Node *node, const Value *ids) {
  const Value *places = node_input(node, 8);
  if (places && places->rank == 2 && dim_equals(places->shape[0], 1) && same_dim(places->shape[1], ids->shape[1]))
    return true;
  if (places) return check_shape(graph, node, 8, 2, ids->shape, "the positions, [batch, sequence]");
  const Dim *rows = node->inputs[3]->shape[0];
  return dim_upper(ids->shape[1]) <= dim_lower(rows) ||
         shape_error(node, "%s has fewer positions than %s", shape_text(graph, node->inputs[3]),
                     shape_text(graph, ids));
}

/* ids [B, S] and segments of words, positions and segments; gamma, beta [H]; mask [B, S]; positions. */
bool shape_embed_norm(Graph *graph, Node *node) {
  const Value *ids = node->inputs[0], *words = node->inputs[2];
  if (!check_rank(graph, node, 0, 2, 2) || !check_rank(graph, node, 2, 2, 2)) return false;
  const Dim *shape[] = {ids->shape[0], ids->shape[1], words->shape[1]};
  if (!node_input(node, 1) != !node_input(node, 4))
    return shape_error(node, "segment_ids (input 1) and segment_embedding (input 4) belong together");
  if (!check_shape(graph, node, 1, 2, ids->shape, "like the ids") || !check_table(graph, node, 3, shape[2]) ||
      !check_table(graph, node, 4, shape[2]) || !check_vectors(graph, node, words, 5, 6) ||
      !check_shape(graph, node, 7, 2, ids->shape, "the mask, [batch, sequence]") || !check_positions(graph, node, ids))
    return false;
  set_shape(graph, node, 1, 1, ids->shape);
  set_shape(graph, node, 2, 3, shape);
  return set_shape(graph, node, 0, 3, shape);
}
