/* SPDX-License-Identifier: MIT */
#include "passes/narrow_weights.h"

#include "ir/cell.h"
#include "ir/narrow.h"
#include "ir/op.h"

static bool is_recurrent(const Node *node) { return cell_kind(node->op->kind) != NULL; }
static bool is_product(const Node *node) { return is_op(node, OP_MatMul) || is_op(node, OP_Gemm); }

bool can_be_narrow(const Value *weights) {
  return weights->data && weights->dtype == RNNCC_F32 && value_count(weights) > 0;
}

bool has_weights(const Node *node) {
  if (is_product(node)) return can_be_narrow(node->inputs[1]) && node->inputs[1]->rank == 2;
  return is_recurrent(node) && can_be_narrow(node->inputs[INPUT_W]) && can_be_narrow(node->inputs[INPUT_R]);
}

/* Those that the model keeps narrow itself stay as they are. */
static void narrow_input(Graph *graph, Node *node, int input, const NarrowWeights *form, int64_t inner, int64_t count) {
  const Value *weights = node->inputs[input];
  if (weights->narrow) return;
  NarrowWeights channels = *form;
  channels.inner = inner;
  channels.count = count;
  node->inputs[input] =
      narrow_is_scaled(form) ? narrow_scaled(graph, weights, &channels) : narrow_rounded(graph, weights, form->dtype);
}

/* W and R are [directions][gates * units][depth]; B is [depth][columns], or of Gemm the other way round. */
void narrow_weights(Graph *graph, Node *node, const NarrowWeights *form) {
  for (int input = INPUT_W; is_recurrent(node) && input <= INPUT_R; input++) {
    const Value *w = node->inputs[input];
    narrow_input(graph, node, input, form, dim_value(w->shape[2]), dim_value(w->shape[0]) * dim_value(w->shape[1]));
  }
  if (!is_product(node)) return;
  const Value *b = node->inputs[1];
  bool turned = is_op(node, OP_Gemm) && node_int(node, ATTR_transB);
  narrow_input(graph, node, 1, form, turned ? dim_value(b->shape[1]) : 1, dim_value(b->shape[turned ? 0 : 1]));
}
