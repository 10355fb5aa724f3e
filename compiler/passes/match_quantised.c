/* SPDX-License-Identifier: MIT */
/*
 * A product or a mean of dequantised tensors becomes the operator that takes their numbers: QLinearConv, QLinearMatMul,
 * QGemm, QLinearAveragePool, QLinearGlobalAveragePool, QLinearAdd behind a convolution, where the result is quantised,
 * and ConvIntegerToFloat, MatMulIntegerToFloat or QGemm for products where it is not. Sums are exact there; results are
 * the same but for roundings of f32 on the way, so a number is off by at most one step, where a result lies halfway
 * between two.
 */
#include <math.h>

#include "ir/op.h"
#include "ir/tensor.h"
#include "passes.h"
#include "passes/quantised.h"
#include "shapes/integer_conv.h"
#include "shapes/quantised.h"
#include "shapes/shape.h"

typedef struct Match {
  Graph *graph;
  UseList uses;
  bool *taken; /* by node id: a QuantizeLinear that became part of another node */
} Match;

/* A dequantised input. */
typedef struct Operand {
  Value *numbers;
  Quantisation how;
} Operand;

static bool read_operand(const Node *node, int input, Operand *operand) {
  operand->numbers = dequantised_from(node_input(node, input), &operand->how);
  return operand->numbers && has_8_bits(&operand->how);
}

/* The QuantizeLinear that alone reads the value, if its numbers are bytes of known scale; NULL: none. */
static Node *quantised_result(const Match *match, const Value *value, Quantisation *how) {
  Node *reader = match->uses.single[value->id];
  if (!reader || match->uses.count[value->id] != 1 || !read_quantize(reader, how)) return NULL;
  return reader->inputs[0] == value && has_8_bits(how) && is_whole(how) && is_known(how) ? reader : NULL;
}

/* The new node writes what the QuantizeLinear does. */
static bool replace_with_numbers(Match *match, Node *made, const Node *quantize) {
  graph_set_output(made, 0, quantize->outputs[0]);
  match->taken[quantize->id] = true;
  return true;
}

static bool replace(const Node *node, const Value *result) {
  graph_set_output(result->producer, result->producer_output, node->outputs[0]);
  return true;
}

static Value *binary(const Builder *f, OpKind op, Value *a, Value *b) {
  Value *const inputs[] = {a, b};
  return build_op(f, op, 2, inputs, 1, 0, NULL)->outputs[0];
}

/* ---- biases ---- */

/* A constant bias, in f32 or dequantised. */
typedef struct Bias {
  const Value *numbers;
  Quantisation how; /* scale NULL: of f32 */
} Bias;

static bool read_bias(const Value *value, Bias *bias) {
  *bias = (Bias){.numbers = value};
  if (value->data) return true;
  bias->numbers = dequantised_from(value, &bias->how);
  return bias->numbers && bias->numbers->data && is_known(&bias->how);
}

static double bias_at(const Bias *bias, int64_t i, int64_t position) {
  double number = value_element(bias->numbers, i);
  return bias->how.scale ? (number - (double)zero_at(&bias->how, position)) * scale_at(&bias->how, position) : number;
}

/* In i32, in steps of a.scale * b.scale * factor; b's scales are of the bias' last axis, and so are its own. NULL: it
 * has no such numbers, or the sum of `depth` products and it might leave i32. */
static Value *bias_in_steps(const Builder *f, const Value *value, const Operand *a, const Operand *b, double factor,
                            double depth) {
  Bias bias;
  if (!is_known(&a->how) || !is_known(&b->how) || !read_bias(value, &bias)) return NULL;
  if (bias.how.scale && !is_whole(&bias.how) && bias.how.axis != value->rank - 1) return NULL;
  int64_t shape[MAX_RANK], last = value->rank ? dim_value(value->shape[value->rank - 1]) : 1;
  if (!is_whole(&b->how) && last != value_count(b->how.scale) && value_count(b->how.scale) != 1) return NULL;
  for (int axis = 0; axis < value->rank; axis++) shape[axis] = dim_value(value->shape[axis]);
  Tensor *steps = tensor_new(f->graph->arena, RNNCC_I32, value->rank, shape);
  for (int64_t i = 0; i < tensor_count(steps); i++) {
    double step = scale_at(&a->how, 0) * scale_at(&b->how, i % last) * factor;
    double number = rint(bias_at(&bias, i, i % last) / step);
    if (!(fabs(number) <= (double)INT32_MAX - depth * 255 * 255)) return NULL;
    tensor_set_int(steps, i, (int64_t)number);
  }
  return graph_constant(f->graph, value->name, RNNCC_I32, value->rank, shape, steps->data);
}

/* ---- products ---- */

/* Are the weights' scales of the whole tensor, or of this axis? */
static bool is_along(const Operand *w, int axis) { return is_whole(&w->how) || w->how.axis == axis; }

static double taps_of(const Value *w) {
  double taps = 1;
  for (int axis = 1; axis < w->rank; axis++) taps *= (double)dim_upper(w->shape[axis]);
  return taps;
}

/* Where no kernel of bytes runs, or gains, a result in floats is left to the convolution of floats. */
static bool match_conv_to_floats(const Builder *f, const Node *node, const Operand *x, const Operand *w) {
  enum { WITHOUT_BIAS = 6 };
  Bias folded;
  Value *bias = node_input(node, 2);
  Value *inputs[] = {x->numbers,          w->numbers,          x->how.scale, w->how.scale,
                     zero_of(f, &x->how), zero_of(f, &w->how), bias};
  const Node like = {.op = op_info(OP_ConvIntegerToFloat),
                     .inputs = inputs,
                     .n_inputs = WITHOUT_BIAS,
                     .outputs = node->outputs,
                     .n_outputs = 1,
                     .attributes = node->attributes,
                     .n_attributes = node->n_attributes,
                     .where = node->where};
  if (!integer_conv_fits(f->graph, &like) || (bias && !read_bias(bias, &folded))) return false;
  Node *made = build_op(f, OP_ConvIntegerToFloat, WITHOUT_BIAS + (bias != NULL), inputs, 1, node->n_attributes,
                        node->attributes);
  return replace(node, made->outputs[0]);
}

static bool match_conv(Match *match, const Builder *f, const Node *node) {
  Operand x, w;
  Quantisation y;
  if (!read_operand(node, 0, &x) || !read_operand(node, 1, &w) || !is_whole(&x.how) || !is_along(&w, 0)) return false;
  if (!has_few_taps(w.numbers)) return false;
  Node *quantize = quantised_result(match, node->outputs[0], &y);
  Value *bias = node_input(node, 2), *steps = NULL;
  if (quantize && bias) steps = bias_in_steps(f, bias, &x, &w, 1, taps_of(w.numbers));
  if (!quantize || (bias && !steps)) return match_conv_to_floats(f, node, &x, &w);
  Value *const inputs[] = {x.numbers,          x.how.scale, zero_of(f, &x.how), w.numbers, w.how.scale,
                           zero_of(f, &w.how), y.scale,     zero_of(f, &y),     steps};
  Node *made = build_op(f, OP_QLinearConv, steps ? 9 : 8, inputs, 1, node->n_attributes, node->attributes);
  return replace_with_numbers(match, made, quantize);
}

static bool match_matmul(Match *match, const Builder *f, const Node *node) {
  Operand a, b;
  Quantisation y;
  if (!read_operand(node, 0, &a) || !read_operand(node, 1, &b) || !is_whole(&a.how)) return false;
  int columns = b.numbers->rank - 1;
  if (b.numbers->rank < 2 || !is_along(&b, columns)) return false;
  Node *quantize = quantised_result(match, node->outputs[0], &y);
  if (quantize) {
    Value *const inputs[] = {a.numbers,          a.how.scale, zero_of(f, &a.how), b.numbers, b.how.scale,
                             zero_of(f, &b.how), y.scale,     zero_of(f, &y)};
    return replace_with_numbers(match, build_op(f, OP_QLinearMatMul, 8, inputs, 1, 0, NULL), quantize);
  }
  Value *const inputs[] = {a.numbers, b.numbers, a.how.scale, b.how.scale, zero_of(f, &a.how), zero_of(f, &b.how)};
  return replace(node, build_op(f, OP_MatMulIntegerToFloat, 6, inputs, 1, 0, NULL)->outputs[0]);
}

/* Without beta, which QGemm has not. */
static int gemm_attributes(const Node *node, Attribute attributes[3]) {
  attributes[0] = attribute_float(ATTR_alpha, node_float(node, ATTR_alpha));
  attributes[1] = attribute_int(ATTR_transA, node_int(node, ATTR_transA));
  attributes[2] = attribute_int(ATTR_transB, node_int(node, ATTR_transB));
  return 3;
}

static Value *gemm_in_floats(const Builder *f, const Node *node, Value *const *inputs, const Attribute *attributes) {
  Value *y = build_op(f, OP_QGemm, 6, inputs, 1, 3, attributes)->outputs[0], *c = node_input(node, 2);
  float beta = (float)node_float(node, ATTR_beta);
  if (!c) return y;
  if (beta < 1 || beta > 1)
    c = binary(f, OP_Mul, c,
               graph_constant(f->graph, f->name, RNNCC_F32, 0, NULL, arena_copy(f->graph->arena, &beta, sizeof beta)));
  return binary(f, OP_Add, y, c);
}

static bool match_gemm(Match *match, const Builder *f, const Node *node) {
  Operand a, b;
  Quantisation y;
  Attribute attributes[3];
  bool turned = node_int(node, ATTR_transB) != 0;
  double alpha = node_float(node, ATTR_alpha), beta = node_float(node, ATTR_beta);
  if (!read_operand(node, 0, &a) || !read_operand(node, 1, &b) || !is_whole(&a.how)) return false;
  if (!is_along(&b, turned ? 0 : 1) || !(alpha > 0)) return false;
  double depth = (double)dim_upper(b.numbers->shape[turned ? 1 : 0]);
  Value *c = node_input(node, 2), *steps = NULL;
  Value *inputs[] = {a.numbers, a.how.scale, zero_of(f, &a.how), b.numbers, b.how.scale, zero_of(f, &b.how), NULL,
                     NULL,      NULL};
  gemm_attributes(node, attributes);
  Node *quantize = quantised_result(match, node->outputs[0], &y);
  if (quantize && c && beta > 0) steps = bias_in_steps(f, c, &a, &b, alpha / beta, depth);
  if (!quantize || (c && !steps)) return replace(node, gemm_in_floats(f, node, inputs, attributes));
  inputs[6] = steps, inputs[7] = y.scale, inputs[8] = zero_of(f, &y);
  return replace_with_numbers(match, build_op(f, OP_QGemm, 9, inputs, 1, 3, attributes), quantize);
}

/* ---- means ---- */

static bool read_around(const Match *match, const Node *node, Operand *x, Quantisation *y, Node **quantize) {
  if (!read_operand(node, 0, x) || !is_whole(&x->how)) return false;
  *quantize = quantised_result(match, node->outputs[0], y);
  return *quantize && y->dtype == x->how.dtype;
}

static Node *build_pool(const Builder *f, OpKind op, const Operand *x, const Quantisation *y, int n_attributes,
                        const Attribute *attributes) {
  Value *const inputs[] = {x->numbers, x->how.scale, zero_of(f, &x->how), y->scale, zero_of(f, y)};
  return build_op(f, op, 5, inputs, 1, n_attributes, attributes);
}

static bool match_average_pool(Match *match, const Builder *f, const Node *node) {
  Operand x;
  Quantisation y;
  Node *quantize;
  if (!read_around(match, node, &x, &y, &quantize)) return false;
  int n = node->n_attributes;
  Attribute *attributes = ARENA_ARRAY(f->graph->arena, Attribute, n + 1);
  for (int i = 0; i < n; i++) attributes[i] = node->attributes[i];
  attributes[n] = attribute_int(ATTR_rounds_first, 1);
  return replace_with_numbers(match, build_pool(f, OP_QLinearAveragePool, &x, &y, n + 1, attributes), quantize);
}

static bool match_global_pool(Match *match, const Builder *f, const Node *node) {
  Operand x;
  Quantisation y;
  Node *quantize;
  if (!read_around(match, node, &x, &y, &quantize)) return false;
  return replace_with_numbers(match, build_pool(f, OP_QLinearGlobalAveragePool, &x, &y, 0, NULL), quantize);
}

/* Is it the mean of all pixels of images: axes 2.. of N, C, ...? */
static bool is_mean_of_pixels(Graph *graph, const Node *node) {
  IntList axes;
  bool marked[MAX_RANK] = {false};
  int rank = node->inputs[0]->rank;
  if (rank < 3 || !operand_ints(graph, node, ATTR_axes, 1, &axes) || !axes.given || axes.n != rank - 2) return false;
  return operand_axes(node, &axes, rank, marked) && !marked[0] && !marked[1];
}

static bool match_mean(Match *match, const Builder *f, const Node *node) {
  Operand x;
  Quantisation y;
  Node *quantize;
  if (!read_around(match, node, &x, &y, &quantize) || !is_mean_of_pixels(f->graph, node)) return false;
  Value *mean = build_pool(f, OP_QLinearGlobalAveragePool, &x, &y, 0, NULL)->outputs[0], *result = quantize->outputs[0];
  return replace_with_numbers(match, build_reshape(f, mean, result->rank, result->shape)->producer, quantize);
}

/* ---- sums ---- */

/* A sum with what a convolution writes: its kernel may add as it writes. Other sums are arithmetic between bytes, whose
 * results are those of the pairs to the bit. */
static bool match_add(Match *match, const Builder *f, const Node *node) {
  Operand a, b;
  Quantisation y;
  Node *quantize;
  if (!read_around(match, node, &a, &y, &quantize) || !read_operand(node, 1, &b) || !is_whole(&b.how)) return false;
  if (b.how.dtype != y.dtype || !is_known(&a.how) || !is_known(&b.how)) return false;
  if (!is_op(a.numbers->producer, OP_QLinearConv) && !is_op(b.numbers->producer, OP_QLinearConv)) return false;
  Value *const inputs[] = {a.numbers,          a.how.scale, zero_of(f, &a.how), b.numbers, b.how.scale,
                           zero_of(f, &b.how), y.scale,     zero_of(f, &y)};
  const Attribute rounds_first = attribute_int(ATTR_rounds_first, 1);
  return replace_with_numbers(match, build_op(f, OP_QLinearAdd, 8, inputs, 1, 1, &rounds_first), quantize);
}

/* ---- other scales ---- */

/* What a convolution writes is taken to another scale: its kernel may do so as it writes. */
static bool match_rescaling(Match *match, const Builder *f, const Node *node) {
  Operand x;
  Quantisation y;
  (void)match;
  if (!read_quantize(node, &y) || !has_8_bits(&y) || !is_whole(&y) || !is_known(&y)) return false;
  if (!read_operand(node, 0, &x) || !is_whole(&x.how) || !is_known(&x.how) || x.how.dtype != y.dtype) return false;
  if (!is_op(x.numbers->producer, OP_QLinearConv)) return false;
  Value *const inputs[] = {x.numbers, x.how.scale, zero_of(f, &x.how), y.scale, zero_of(f, &y)};
  const Attribute alpha = attribute_float(ATTR_alpha, 1);
  return replace(node, build_op(f, OP_QLinearLeakyRelu, 5, inputs, 1, 1, &alpha)->outputs[0]);
}

/* ---- normalisations ---- */

enum { BN_SCALE = 1, BN_SHIFT, BN_MEAN, BN_VARIANCE, BN_INPUTS };

/* A constant of the channels, [C, 1, 1], from the inputs of a batch normalisation. */
static Value *of_batch_norm(const Builder *f, const Node *node, bool shift) {
  const Value *x = node->inputs[0];
  int64_t shape[MAX_RANK], channels = dim_value(x->shape[1]);
  float *data = ARENA_ARRAY(f->graph->arena, float, channels);
  for (int64_t c = 0; c < channels; c++) {
    double variance = value_element(node->inputs[BN_VARIANCE], c) + node_float(node, ATTR_epsilon);
    double scale = value_element(node->inputs[BN_SCALE], c) / sqrt(variance);
    double moved = value_element(node->inputs[BN_SHIFT], c) - value_element(node->inputs[BN_MEAN], c) * scale;
    data[c] = (float)(shift ? moved : scale);
  }
  for (int axis = 0; axis < x->rank - 1; axis++) shape[axis] = axis ? 1 : channels;
  return graph_constant(f->graph, f->name, RNNCC_F32, x->rank - 1, shape, data);
}

/* Between numbers a product and a sum, which stay in registers. */
static bool match_batch_norm(Match *match, const Builder *f, const Node *node) {
  Operand x;
  Quantisation y;
  if (!read_operand(node, 0, &x) || !quantised_result(match, node->outputs[0], &y)) return false;
  if (node->n_outputs != 1 || node_int(node, ATTR_training_mode) || node->inputs[0]->rank < 2) return false;
  for (int i = BN_SCALE; i < BN_INPUTS; i++)
    if (!node->inputs[i]->data) return false;
  Value *scaled = binary(f, OP_Mul, node->inputs[0], of_batch_norm(f, node, false));
  return replace(node, binary(f, OP_Add, scaled, of_batch_norm(f, node, true)));
}

/* ---- the pass ---- */

static bool (*const matches[N_OPS])(Match *, const Builder *, const Node *) = {
    [OP_Add] = match_add,
    [OP_AveragePool] = match_average_pool,
    [OP_BatchNormalization] = match_batch_norm,
    [OP_Conv] = match_conv,
    [OP_Gemm] = match_gemm,
    [OP_GlobalAveragePool] = match_global_pool,
    [OP_MatMul] = match_matmul,
    [OP_QuantizeLinear] = match_rescaling,
    [OP_ReduceMean] = match_mean,
};

/* needs: move_quantised, dense ids. keeps: types and shapes, the names of outputs; results but for roundings of f32.
 * breaks: nothing. */
void match_quantised(Graph *graph) {
  if (!has_pairs(graph)) return;
  Match match = {graph, graph_uses(graph), ARENA_ARRAY(graph->arena, bool, graph->n_nodes)};
  Node **nodes;
  int n_nodes = graph_take_nodes(graph, &nodes);
  for (int n = 0; n < n_nodes; n++) {
    Node *node = nodes[n];
    const Builder f = {graph, node->name, node->where};
    bool (*matched)(Match *, const Builder *, const Node *) = matches[node->op->kind];
    if (!match.taken[node->id] && !(matched && matched(&match, &f, node))) graph_append(graph, node);
  }
  graph_renumber(graph);
  graph_remove_dead(graph);
}
