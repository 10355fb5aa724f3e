/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/bf16.h"

#include "kernels/gemm/narrow_panels.h"
#include "kernels/recurrent/int8.h"
#include "machine/targets.h"
#include "support/numbers.h"

/* The most samples of a step; rows of the product with W, or with R. */
static int64_t most_samples(const Node *node) {
  return dim_upper(node->inputs[INPUT_X]->shape[node_int(node, ATTR_layout) ? 0 : 1]);
}
static int64_t most_rows(const Node *node, int input) {
  const Dim *steps = node->inputs[INPUT_X]->shape[node_int(node, ATTR_layout) ? 1 : 0];
  return input == INPUT_W ? saturating_mul(dim_upper(steps), most_samples(node)) : most_samples(node);
}

bool bf16_product_in_matrices(const Target *target, const Node *node, int input) {
  const Value *weights = node->inputs[input];
  const NarrowWeights *narrow = int8_asked(node) ? NULL : weights->narrow;
  return narrow && weights_in_matrices(target, narrow, most_rows(node, input), dim_value(weights->shape[2]));
}

bool bf16_in_matrices(const Target *target, const Node *node) {
  return bf16_product_in_matrices(target, node, INPUT_W) || bf16_product_in_matrices(target, node, INPUT_R);
}

void bf16_settle_products(const Graph *graph, const Node *node, Layer *l) {
  const Target *target = graph->config->target;
  l->input_in_matrices = bf16_product_in_matrices(target, node, INPUT_W);
  l->hidden_in_matrices = bf16_product_in_matrices(target, node, INPUT_R);
  if (l->hidden_in_matrices) l->row_parts = weights_row_parts(node->inputs[INPUT_R]->narrow);
}

void bf16_settle_variant(Layer *l) {
  RecurrentVariant *v = &l->variant;
  if (l->input_in_matrices || l->hidden_in_matrices) v->input = INPUT_AHEAD, v->chunk = 0;
  if (l->hidden_in_matrices) v->hide = v->depth_block = 0;
}

/* ---- scratch memory ---- */

/* As rounded_row() of the template; states of even and odd steps, and as the reset gate leaves them. */
enum { ROW_UNIT = 2 * BF16_DEPTH, BUFFERS = 3 };

static int64_t take(int64_t *end, int64_t bytes) {
  int64_t at = *end;
  *end = saturating_add(at, bytes);
  *end = *end > INT64_MAX - 63 ? INT64_MAX : (*end + 63) & ~INT64_C(63);
  return at;
}

static int64_t state_bytes(const Target *target, const Layer *l) {
  int64_t row = round_up(l->panels * l->unit_vectors * target->lanes, ROW_UNIT) + BF16_DEPTH;
  return saturating_mul(max_int(dim_upper(l->batch), 1), 2 * l->directions * BUFFERS * l->row_parts * row);
}

void bf16_plan_scratch(Graph *graph, Layer *l) {
  const Dim *rows = dim_mul(graph->dims, l->steps, l->batch), *inputs = dim_const(graph->dims, l->inputs);
  int64_t of_x = l->input_in_matrices ? dim_upper(rounded_bytes(graph, rows, inputs, l->gemm.row_parts)) : 0;
  l->x_rounded = take(&l->scratch_bytes, of_x);
  l->state_rounded = take(&l->scratch_bytes, l->hidden_in_matrices ? state_bytes(graph->config->target, l) : 0);
}
