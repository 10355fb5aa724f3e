/* SPDX-License-Identifier: MIT */
/* ONNX Runtime's own operators of floats, as the ones that it has fused. */
#include "shapes/fused.h"

#include "expand/expansion.h"
#include "shapes/shape.h"
#include "support/diagnostics.h"

/* The operator with those attributes of the node that are its own. */
static Value *with_own_attributes(const Formula *f, OpKind op, const Node *node, int n, Value *const *inputs) {
  Attribute *own = ARENA_ARRAY(f->graph->arena, Attribute, node->n_attributes);
  int count = 0;
  for (int i = 0; i < node->n_attributes; i++)
    if (op_has_attribute(op_info(op), node->attributes[i].id)) own[count++] = node->attributes[i];
  return build_op(f, op, n, inputs, 1, count, own)->outputs[0];
}

static Value *with_numbers(const Formula *f, OpKind op, Value *x, AttributeName first, double a, AttributeName second,
                           double b) {
  const Attribute numbers[] = {attribute_float(first, a), attribute_float(second, b)};
  return build_op(f, op, 1, &x, 1, second ? 2 : 1, numbers)->outputs[0];
}

/* The numbers of an activation that gives none. */
typedef struct Numbers {
  double a, b;
} Numbers;
static const Numbers usual[] = {[FUSED_LeakyRelu] = {0.01, 0},
                                [FUSED_Clip] = {-0x1.fffffep127, 0x1.fffffep127},
                                [FUSED_HardSigmoid] = {0.2, 0.5},
                                [FUSED_HardSwish] = {0, 0}};

static Value *activated(const Formula *f, FusedActivation activation, Value *x, Numbers n) {
  switch (activation) {
  case FUSED_none:
    return x;
  case FUSED_Relu:
    return apply(f, OP_Relu, x);
  case FUSED_Tanh:
    return apply(f, OP_Tanh, x);
  case FUSED_Sigmoid:
    return apply(f, OP_Sigmoid, x);
  case FUSED_HardSwish:
    return apply(f, OP_HardSwish, x);
  case FUSED_LeakyRelu:
    return with_numbers(f, OP_LeakyRelu, x, ATTR_alpha, n.a, ATTR_NONE, 0);
  case FUSED_HardSigmoid:
    return with_numbers(f, OP_HardSigmoid, x, ATTR_alpha, n.a, ATTR_beta, n.b);
  case FUSED_Clip:
    return apply3(f, OP_Clip, x, number(f, x, n.a), number(f, x, n.b));
  }
  bug("activation %d", activation);
}

void expand_fused_conv(const Formula *f, const Node *node, Value **results) {
  int n = node_input(node, 2) ? 3 : 2, activation = node_word(node, ATTR_activation);
  const Attribute *given = node_attribute(node, ATTR_activation_params);
  Numbers numbers = usual[activation];
  if (given && given->count > 0) numbers.a = given->floats[0];
  if (given && given->count > 1) numbers.b = given->floats[1];
  Value *y = with_own_attributes(f, OP_Conv, node, n, node->inputs);
  if (node_input(node, 3)) y = plus(f, y, node->inputs[3]);
  results[0] = activated(f, (FusedActivation)activation, y, numbers);
}

void expand_fused_gemm(const Formula *f, const Node *node, Value **results) {
  int activation = node_word(node, ATTR_activation);
  Numbers numbers = usual[activation];
  if (node_has(node, ATTR_activation_alpha)) numbers.a = node_float(node, ATTR_activation_alpha);
  if (node_has(node, ATTR_activation_beta)) numbers.b = node_float(node, ATTR_activation_beta);
  Value *y = with_own_attributes(f, OP_Gemm, node, node->n_inputs, node->inputs);
  results[0] = activated(f, (FusedActivation)activation, y, numbers);
}

static Value *turned(const Formula *f, Value *x, bool turn, bool batch) {
  int64_t perm[MAX_RANK];
  if (!turn && !batch) return x;
  fused_perm(x->rank, turn, batch, perm);
  return build_transpose(f, x, perm);
}

void expand_fused_matmul(const Formula *f, const Node *node, Value **results) {
  Value *a = turned(f, node->inputs[0], node_int(node, ATTR_transA) != 0, node_int(node, ATTR_transBatchA) != 0);
  Value *b = turned(f, node->inputs[1], node_int(node, ATTR_transB) != 0, node_int(node, ATTR_transBatchB) != 0);
  Value *y = apply2(f, OP_MatMul, a, b);
  double alpha = node_float(node, ATTR_alpha);
  results[0] = alpha == 1 ? y : times(f, y, number(f, y, alpha));
}

/* ---- activations ---- */

static Value *gelu(const Formula *f, Value *x, GeluForm form) {
  const Attribute attribute = attribute_one_of(ATTR_approximate, form);
  return build_op(f, OP_Gelu, 1, &x, 1, 1, &attribute)->outputs[0];
}

void expand_bias_gelu(const Formula *f, const Node *node, Value **results) {
  results[0] = gelu(f, plus(f, node->inputs[0], node->inputs[1]), GELU_none);
}

void expand_fast_gelu(const Formula *f, const Node *node, Value **results) {
  Value *x = node->inputs[0], *bias = node_input(node, 1);
  results[0] = gelu(f, bias ? plus(f, x, bias) : x, GELU_tanh);
}

void expand_bias_add(const Formula *f, const Node *node, Value **results) {
  results[0] = plus(f, plus(f, node->inputs[0], node->inputs[1]), node->inputs[2]);
}

/* The left half times Gelu of the right one. */
void expand_bias_split_gelu(const Formula *f, const Node *node, Value **results) {
  Value *sum = plus(f, node->inputs[0], node->inputs[1]);
  int64_t last = sum->rank - 1, half = dim_value(sum->shape[last]) / 2;
  const Range left = {last, 0, half}, right = {last, half, 2 * half};
  results[0] = times(f, build_slice(f, sum, 1, &left), gelu(f, build_slice(f, sum, 1, &right), GELU_none));
}

void expand_bias_softmax(const Formula *f, const Node *node, Value **results) {
  Value *sum = plus(f, node->inputs[0], node->inputs[1]);
  int axis = normal_axis(node_int(node, ATTR_axis), sum->rank);
  results[0] = axis == sum->rank - 1 ? softmax_along(f, sum, axis) : flat_softmax(f, sum, axis);
}

/* x sigmoid(alpha x). */
void expand_quick_gelu(const Formula *f, const Node *node, Value **results) {
  results[0] = with_numbers(f, OP_Swish, node->inputs[0], ATTR_alpha, node_float(node, ATTR_alpha), ATTR_NONE, 0);
}

/* ---- normalisations ---- */

/* input + skip + bias. */
static Value *skip_sum(const Formula *f, const Node *node, int bias) {
  Value *sum = plus(f, node->inputs[0], node->inputs[1]);
  return node_input(node, bias) ? plus(f, sum, node->inputs[bias]) : sum;
}

/* Of the last axis; `beta` may be NULL. With its statistics if they are wanted. */
static Node *layer_norm(const Formula *f, const Node *node, Value *x, Value *gamma, Value *beta, int n_outputs) {
  const Attribute epsilon = attribute_float(ATTR_epsilon, node_float(node, ATTR_epsilon));
  return build_op(f, OP_LayerNormalization, beta ? 3 : 2, (Value *const[]){x, gamma, beta}, n_outputs, 1, &epsilon);
}

void expand_skip_norm(const Formula *f, const Node *node, Value **results) {
  bool statistics = node_output(node, 1) || node_output(node, 2);
  Value *sum = skip_sum(f, node, 4);
  Node *norm = layer_norm(f, node, sum, node->inputs[2], node_input(node, 3), statistics ? 3 : 1);
  for (int i = 0; i < node->n_outputs; i++) results[i] = i < norm->n_outputs ? norm->outputs[i] : NULL;
  if (node_output(node, 3)) results[3] = sum;
}

static Value *rms_norm(const Formula *f, const Node *node, Value *x, Value *gamma, int64_t axis) {
  const Attribute attributes[] = {attribute_float(ATTR_epsilon, node_float(node, ATTR_epsilon)),
                                  attribute_int(ATTR_axis, axis)};
  return build_op(f, OP_RMSNormalization, 2, (Value *const[]){x, gamma}, 1, 2, attributes)->outputs[0];
}

void expand_skip_simplified_norm(const Formula *f, const Node *node, Value **results) {
  Value *sum = skip_sum(f, node, 3);
  results[0] = rms_norm(f, node, sum, node->inputs[2], -1);
  if (node_output(node, 3)) results[3] = sum;
}

void expand_simplified_norm(const Formula *f, const Node *node, Value **results) {
  Value *x = node->inputs[0];
  int64_t axes[MAX_RANK], axis = normal_axis(node_int(node, ATTR_axis), x->rank), n = 0;
  results[0] = rms_norm(f, node, x, node->inputs[1], axis);
  if (!node_output(node, 1)) return;
  for (int64_t k = axis; k < x->rank; k++) axes[n++] = k;
  Value *mean = reduced(f, OP_ReduceMean, times(f, x, x), (int)n, axes);
  Value *epsilon = number(f, x, node_float(node, ATTR_epsilon));
  results[1] = apply(f, OP_Reciprocal, apply(f, OP_Sqrt, plus(f, mean, epsilon)));
}

/* Sums of squared differences: no product of matrices, of which near rows would be left with its rounding errors. */
void expand_distances(const Formula *f, const Node *node, Value **results) {
  static const int64_t along = 2;
  Value *difference = minus(f, with_axis(f, node->inputs[0], 1), with_axis(f, node->inputs[1], 0));
  Value *squared = summed_away(f, times(f, difference, difference), 1, &along);
  results[0] = node_word(node, ATTR_metric) == METRIC_euclidean ? apply(f, OP_Sqrt, squared) : squared;
}

/* The rows of the positions: given ones, or the first. */
static Value *positions(const Formula *f, const Node *node) {
  Value *ids = node->inputs[0], *table = node->inputs[3];
  if (node_input(node, 8)) return gathered(f, table, counted_from_start(f, node->inputs[8]), 0);
  const Range first = {0, 0, dim_is_const(ids->shape[1]) ? dim_value(ids->shape[1]) : 0};
  if (dim_is_const(ids->shape[1])) return build_slice(f, table, 1, &first);
  return gathered(f, table, places_along(f, ids, 1), 0);
}

/* How many words of each sample the mask leaves; 0 without a mask. */
static Value *words_left(const Formula *f, const Node *node) {
  const int64_t along = 1;
  Value *mask = node_input(node, 7);
  if (mask) return summed_away(f, mask, 1, &along);
  return summed_away(f, times(f, node->inputs[0], number(f, node->inputs[0], 0)), 1, &along);
}

void expand_embed_norm(const Formula *f, const Node *node, Value **results) {
  Value *words = counted_from_start(f, node->inputs[0]), *segments = node_input(node, 1);
  Value *sum = plus(f, gathered(f, node->inputs[2], words, 0), positions(f, node));
  if (segments) sum = plus(f, sum, gathered(f, node->inputs[4], counted_from_start(f, segments), 0));
  results[0] = layer_norm(f, node, sum, node->inputs[5], node->inputs[6], 1)->outputs[0];
  if (node_output(node, 1)) results[1] = words_left(f, node);
  if (node_output(node, 2)) results[2] = sum;
}
