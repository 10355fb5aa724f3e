/* SPDX-License-Identifier: MIT */
/*
 * MatMulInteger -> Cast to f32 -> Mul by a scale -> Add of a bias, as quantisers write a product whose input is
 * quantised in each run, becomes MatMulIntegerToFloat: one kernel, whose sums in i32 are not in memory. ConvInteger
 * becomes ConvIntegerToFloat.
 */
#include "ir/integer_product.h"
#include "ir/op.h"
#include "passes.h"
#include "shapes/build.h"
#include "shapes/integer_conv.h"
#include "shapes/shape.h"

typedef struct Match {
  Graph *graph;
  UseList uses;
} Match;

/* The producer of a value that no other node reads, if it is of that operator; NULL: none. */
static const Node *only_from(const Match *match, const Value *value, OpKind op) {
  bool alone = value->producer && is_op(value->producer, op) && match->uses.count[value->id] == 1;
  return alone ? value->producer : NULL;
}

/* The two operators of a product. */
typedef struct Product {
  OpKind of_integers, to_floats;
  bool convolves;
} Product;

static const Product products[] = {{OP_MatMulInteger, OP_MatMulIntegerToFloat, false},
                                   {OP_ConvInteger, OP_ConvIntegerToFloat, true}};
enum { N_PRODUCTS = sizeof products / sizeof *products };

/* Inputs of those to floats. */
enum { A, B, A_SCALE, B_SCALE, A_ZERO, B_ZERO, BIAS, INPUTS };

static bool is_one(const Value *value) { return value->rank <= 1 && value_max_count(value) == 1; }

/* ---- numbers of columns and channels ---- */

/* Is it [.., M, 1, ..] for a y of [N, M, ..]? */
static bool is_along_channels(const Value *value, const Value *y) {
  int missing = y->rank - value->rank;
  if (missing < 0 || missing > 1) return false;
  for (int axis = 0; axis < value->rank; axis++)
    if (axis + missing == 1 ? !same_dim(value->shape[axis], y->shape[1]) : !dim_equals(value->shape[axis], 1))
      return false;
  return true;
}

/* A constant that is along the channels of y, maybe by a Reshape, as [M]; NULL: it is none. */
static Value *of_channels(const Builder *f, const Value *value, const Value *y) {
  const Value *source = value->producer && is_op(value->producer, OP_Reshape) ? value->producer->inputs[0] : value;
  if (!is_along_channels(value, y) || !source->data) return NULL;
  int64_t channels = dim_value(y->shape[1]);
  return graph_constant(f->graph, source->name, source->dtype, 1, &channels, source->data);
}

/* Numbers of the product's columns or channels, of rank 1; NULL: they are none. */
static Value *of_outputs(const Builder *f, const Product *product, Value *value, const Value *y) {
  if (product->convolves) return of_channels(f, value, y);
  return value->rank == 1 && same_dim(value->shape[0], y->shape[y->rank - 1]) ? value : NULL;
}

/* ---- scales and biases ---- */

/* Sets the scales of A, which is one number, and of B. False: these are none. */
static bool take_scales(const Builder *f, const Product *product, Value *a, Value *b, const Value *y, Value **inputs) {
  inputs[A_SCALE] = a;
  inputs[B_SCALE] = is_one(b) ? b : of_outputs(f, product, b, y);
  return is_one(a) && inputs[B_SCALE];
}

/* Sets the scales of A and of B, whose product it is; one of them may be 1. Kernels want a constant one of B. False:
 * there are none. */
static bool split_scale(const Builder *f, const Product *product, Value *scale, const Value *y, Value **inputs) {
  static const float number = 1;
  const Node *both = scale->producer && is_op(scale->producer, OP_Mul) ? scale->producer : NULL;
  for (int i = 0; both && i < 4; i++) {
    Value *a = both->inputs[i % 2], *b = both->inputs[1 - i % 2];
    if ((b->data || i >= 2) && take_scales(f, product, a, b, y, inputs)) return true;
  }
  Value *one = graph_constant(f->graph, f->name, RNNCC_F32, 0, NULL, &number);
  if (!scale->data && take_scales(f, product, scale, one, y, inputs)) return true;
  return take_scales(f, product, one, scale, y, inputs);
}

static void build_product(const Builder *f, const Product *product, const Node *like, int n, Value *const *inputs,
                          Value *result) {
  Node *made = build_op(f, product->to_floats, n, inputs, 1, like->n_attributes, like->attributes);
  graph_set_output(made, 0, result);
}

/* Sums of integers that i32 does not hold wrap around; those behind which floats are, do not. So each must be within
 * i32, by the number of its products, or as a kernel has it of constant weights. */
static bool sums_fit(Graph *graph, const Product *product, const Node *sums, Value **inputs) {
  const Value *b = sums->inputs[B];
  double products = product->convolves ? 1 : (double)dim_upper(b->shape[b->rank - 2]);
  for (int axis = 1; product->convolves && axis < b->rank; axis++) products *= (double)dim_upper(b->shape[axis]);
  if (products * 255 * 255 <= INT32_MAX) return true;
  const Node like = {.op = op_info(product->to_floats),
                     .inputs = inputs,
                     .n_inputs = BIAS,
                     .outputs = sums->outputs,
                     .n_outputs = 1,
                     .attributes = sums->attributes,
                     .n_attributes = sums->n_attributes,
                     .where = sums->where};
  return product->convolves ? integer_conv_fits(graph, &like) : integer_product_has_kernel(&like);
}

/* The product that a Mul scales. */
static bool match_scaled(const Match *match, const Builder *f, const Product *product, const Node *mul) {
  for (int i = 0; i < 2; i++) {
    const Node *cast = only_from(match, mul->inputs[i], OP_Cast);
    const Node *sums = cast ? only_from(match, cast->inputs[0], product->of_integers) : NULL;
    if (!sums || sums->inputs[B]->rank < 2 || mul->outputs[0]->dtype != RNNCC_F32) continue;
    Value *inputs[INPUTS] = {sums->inputs[A], sums->inputs[B], NULL, NULL, node_input(sums, 2), node_input(sums, 3)};
    if (!split_scale(f, product, mul->inputs[1 - i], sums->outputs[0], inputs)) continue;
    if (!sums_fit(f->graph, product, sums, inputs)) continue;
    build_product(f, product, sums, BIAS, inputs, mul->outputs[0]);
    return true;
  }
  return false;
}

/* The product that an Add gives its bias. */
static bool match_biased(const Match *match, const Builder *f, const Product *product, const Node *add) {
  for (int i = 0; i < 2; i++) {
    const Node *scaled = only_from(match, add->inputs[i], product->to_floats);
    Value *bias = NULL;
    if (scaled && !node_input(scaled, BIAS)) bias = of_outputs(f, product, add->inputs[1 - i], scaled->outputs[0]);
    if (!bias) continue;
    Value *inputs[INPUTS] = {[BIAS] = bias};
    for (int k = 0; k < BIAS; k++) inputs[k] = node_input(scaled, k);
    build_product(f, product, scaled, INPUTS, inputs, add->outputs[0]);
    return true;
  }
  return false;
}

static bool match_any(const Match *match, const Node *node) {
  const Builder f = {match->graph, node->name, node->where};
  for (int i = 0; i < N_PRODUCTS; i++) {
    if (is_op(node, OP_Mul) && match_scaled(match, &f, &products[i], node)) return true;
    if (is_op(node, OP_Add) && match_biased(match, &f, &products[i], node)) return true;
  }
  return false;
}

static bool has_integer_products(const Graph *graph) {
  for (int n = 0; n < graph->n_nodes; n++)
    for (int i = 0; i < N_PRODUCTS; i++)
      if (is_op(graph->nodes[n], products[i].of_integers) || is_op(graph->nodes[n], products[i].to_floats)) return true;
  return false;
}

/* needs: infer_shapes, dense ids. keeps: types, shapes and results, the names of outputs. breaks: nothing. */
void match_integer_products(Graph *graph) {
  if (!has_integer_products(graph)) return;
  const Match match = {graph, graph_uses(graph)};
  Node **nodes;
  int n_nodes = graph_take_nodes(graph, &nodes);
  for (int n = 0; n < n_nodes; n++)
    if (!match_any(&match, nodes[n])) graph_append(graph, nodes[n]);
  graph_renumber(graph);
  graph_remove_dead(graph);
}
