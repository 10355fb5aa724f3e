/* SPDX-License-Identifier: MIT */
#include "passes/narrow_weights.h"

#include "ir/cell.h"
#include "ir/feedback.h"
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

NarrowWeights weights_form(const PrecisionRule *rule, const Target *target) {
  return (NarrowWeights){.dtype = precision_weights(rule->precision),
                         .rounds_rows = rule->precision == PRECISION_bf16_dynamic && target_multiplies_bf16(target),
                         .group = rule->group};
}

/* ---- tables ---- */

/* Does the node leave rows of the last axis, of that length, whole? */
static bool keeps_rows(const Node *node, int64_t depth) {
  bool view = op_is_view(node->op);
  if (!view && !is_op(node, OP_Transpose)) return false;
  const Value *y = node->outputs[0];
  const Attribute *perm = node_attribute(node, ATTR_perm);
  int last = y->rank - 1;
  if (y->rank < 1 || !dim_is_const(y->shape[last]) || dim_value(y->shape[last]) != depth) return false;
  return view || (perm && normal_axis(perm->ints[last], y->rank) == last);
}

/* The constant [n][depth] whose rows x has in its last axis; NULL: there is none. */
static const Value *table_behind(const Value *x, int64_t depth) {
  while (x->producer && keeps_rows(x->producer, depth)) x = x->producer->inputs[0];
  const Node *gather = x->producer;
  if (!gather || !is_op(gather, OP_Gather) || node_int(gather, ATTR_axis) != 0) return NULL;
  const Value *table = gather->inputs[0];
  bool fits = can_be_narrow(table) && !table->block && table->rank == 2 && dim_value(table->shape[1]) == depth;
  return fits ? table : NULL;
}

/* For the input, whose channels have `depth` numbers each. */
static const double *feedback_of_table(const Graph *graph, const Node *node, int input, int64_t depth) {
  bool rows_are_last = !is_op(node, OP_Gemm) || !node_int(node, ATTR_transA);
  const Value *table = input == INPUT_W && rows_are_last ? table_behind(node->inputs[INPUT_X], depth) : NULL;
  return table ? feedback_for(graph->arena, dim_value(table->shape[0]), depth, table->data) : NULL;
}

/* W and R are [directions][gates * units][depth]; B is [depth][columns], or of Gemm the other way round. */
int64_t narrow_channels(const Node *node, int input, NarrowWeights *form) {
  const Value *w = node->inputs[input];
  int last = w->rank - 1;
  bool rows = is_recurrent(node) || (is_op(node, OP_Gemm) && node_int(node, ATTR_transB));
  int64_t depth = dim_value(w->shape[rows ? last : last - 1]);
  form->inner = rows ? depth : 1;
  form->count = value_count(w) / depth;
  return depth;
}

static Value *scaled(Graph *graph, const Node *node, int input, const NarrowWeights *form) {
  NarrowWeights channels = *form;
  int64_t depth = narrow_channels(node, input, &channels);
  return narrow_scaled(graph, node->inputs[input], &channels, feedback_of_table(graph, node, input, depth));
}

/* Those that the model keeps narrow itself stay as they are. */
void narrow_weights(Graph *graph, Node *node, int input, const NarrowWeights *form) {
  if (node->inputs[input]->narrow) return;
  node->inputs[input] =
      narrow_is_scaled(form) ? scaled(graph, node, input, form) : narrow_rounded(graph, node->inputs[input], form);
}
