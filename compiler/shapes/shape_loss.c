/* SPDX-License-Identifier: MIT */
/* Losses: of scores x[N, C, ...], and for each other place a target, one of the C classes. */
#include "shapes/shape.h"

/* Sets the extents of the places, [N, ...] of x. */
static bool find_places(Graph *graph, Node *node, const Dim *places[MAX_RANK]) {
  const Value *x = node->inputs[0];
  if (!check_rank(graph, node, 0, 2, MAX_RANK)) return false;
  for (int axis = 0, from = 0; axis < x->rank; axis++)
    if (axis != 1) places[from++] = x->shape[axis];
  return check_shape(graph, node, 1, x->rank - 1, places, "[N, ...] of the scores [N, C, ...]");
}

bool shape_loss(Graph *graph, Node *node) {
  const Value *x = node->inputs[0];
  const Dim *places[MAX_RANK];
  if (!find_places(graph, node, places)) return false;
  if (!check_shape(graph, node, 2, 1, &x->shape[1], "a weight for each of the classes")) return false;
  set_shape(graph, node, 1, x->rank, x->shape);
  return set_shape(graph, node, 0, node_word(node, ATTR_reduction) == LOSS_none ? x->rank - 1 : 0, places);
}

bool shape_cross_entropy(Graph *graph, Node *node) {
  const Dim *places[MAX_RANK];
  if (!find_places(graph, node, places)) return false;
  for (int i = 0; i < node->n_outputs; i++) set_shape(graph, node, i, node->inputs[0]->rank - 1, places);
  return true;
}

/* Of each place, too: what the forward pass kept, and the loss's gradient. */
bool shape_cross_entropy_gradient(Graph *graph, Node *node) {
  const Value *x = node->inputs[0];
  const Dim *places[MAX_RANK];
  if (!find_places(graph, node, places)) return false;
  for (int i = 2; i < 5; i++)
    if (!check_shape(graph, node, i, x->rank - 1, places, "[N, ...] of the scores [N, C, ...]")) return false;
  return set_shape(graph, node, 0, x->rank, x->shape);
}

/* Of log-probabilities [T, N, C], targets [N, S], and lengths of both, [N]. */
static bool check_ctc(Graph *graph, Node *node) {
  const Value *scores = node->inputs[0];
  if (!check_rank(graph, node, 0, 3, 3) || !check_rank(graph, node, 1, 2, 2)) return false;
  const Dim *N = scores->shape[1], *C = scores->shape[2], *targets[] = {N, node->inputs[1]->shape[1]};
  int64_t blank = node_int(node, ATTR_blank);
  bool good = check_shape(graph, node, 1, 2, targets, "[N, S] of the scores [T, N, C]");
  for (int i = 2; i < 4; i++) good &= check_shape(graph, node, i, 1, &N, "[N] of the scores [T, N, C]");
  if (blank < 0 || blank >= dim_upper(C))
    return shape_error(node, "`blank` is %lld; it must be one of the %s classes", (long long)blank, dim_text(graph, C));
  return good;
}

bool shape_ctc_loss(Graph *graph, Node *node) {
  if (!check_ctc(graph, node)) return false;
  const Dim *N = node->inputs[0]->shape[1];
  return set_shape(graph, node, 0, node_word(node, ATTR_reduction) == LOSS_none ? 1 : 0, &N);
}

bool shape_ctc_likelihood(Graph *graph, Node *node) {
  const Value *scores = node->inputs[0];
  if (!check_ctc(graph, node)) return false;
  if (node_output(node, 1)) set_shape(graph, node, 1, scores->rank, scores->shape);
  return set_shape(graph, node, 0, 1, &scores->shape[1]);
}
