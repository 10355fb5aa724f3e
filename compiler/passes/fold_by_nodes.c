/* SPDX-License-Identifier: MIT */
/*
 * Weights that can change have no numbers here. So what fold_affine computes of a batch normalisation, and of the
 * convolution before it, is written as nodes: derive_weights then takes these out of the network.
 */
#include "passes/fold_by_nodes.h"

#include "ir/op.h"
#include "shapes/build.h"

enum { NORM_SCALE = 1, NORM_SHIFT, NORM_MEAN, NORM_VARIANCE, NORM_INPUTS, MAX_DEPTH = 8 };

/* Does it depend on weights and constants alone? *any: on one that can change. */
static bool is_of_weights(const Value *value, bool *any, int depth) {
  *any |= value->block != 0;
  if (value->data || value->block) return true;
  const Node *node = value->producer;
  if (!node || depth == MAX_DEPTH) return false;
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] && !is_of_weights(node->inputs[i], any, depth + 1)) return false;
  return true;
}

static Value *two(const Builder *b, OpKind op, Value *left, Value *right) {
  return build_op(b, op, 2, (Value *[]){left, right}, 1, 0, NULL)->outputs[0];
}

static Value *vector_of(const Builder *b, int64_t n, float number) {
  float *data = ARENA_ARRAY(b->graph->arena, float, n);
  for (int64_t i = 0; i < n; i++) data[i] = number;
  return graph_constant(b->graph, b->name, RNNCC_F32, 1, &n, data);
}

/* y = s x + t. */
typedef struct Affine {
  Value *s, *t;
} Affine;

static Affine affine_of(const Builder *b, const Node *norm) {
  Value *epsilon = vector_of(b, 1, (float)node_float(norm, ATTR_epsilon));
  Value *variance = two(b, OP_Add, norm->inputs[NORM_VARIANCE], epsilon);
  Value *deviation = build_op(b, OP_Sqrt, 1, &variance, 1, 0, NULL)->outputs[0];
  Value *s = two(b, OP_Div, norm->inputs[NORM_SCALE], deviation);
  return (Affine){s, two(b, OP_Sub, norm->inputs[NORM_SHIFT], two(b, OP_Mul, norm->inputs[NORM_MEAN], s))};
}

/* s along the axis of the weights' output channels. */
static Value *along(const Builder *b, Value *s, int rank, int axis) {
  const Dim *shape[MAX_RANK];
  for (int i = 0; i < rank; i++) shape[i] = i == axis ? s->shape[0] : dim_const(b->graph->dims, 1);
  return build_reshape(b, s, rank, shape);
}

/* The convolution that writes x, whose weights can take a scale; NULL: there is none. */
static Node *convolution_before(const UseList *uses, const Node *norm, bool *any) {
  const Value *x = norm->inputs[0];
  Node *conv = x->producer;
  if (!conv || uses->single[x->id] != norm || conv->exact) return NULL;
  bool transposed = is_op(conv, OP_ConvTranspose) && node_int(conv, ATTR_group) == 1;
  if (!is_op(conv, OP_Conv) && !transposed) return NULL;
  const Value *bias = node_input(conv, 2);
  return is_of_weights(conv->inputs[1], any, 0) && (!bias || is_of_weights(bias, any, 0)) ? conv : NULL;
}

static void move_into(Graph *graph, const Builder *b, Node *conv, Node *norm) {
  Affine affine = affine_of(b, norm);
  Value *w = conv->inputs[1], *bias = node_input(conv, 2);
  Value *inputs[] = {conv->inputs[0], two(b, OP_Mul, w, along(b, affine.s, w->rank, is_op(conv, OP_Conv) ? 0 : 1)),
                     bias ? two(b, OP_Add, two(b, OP_Mul, bias, affine.s), affine.t) : affine.t};
  conv->inputs = arena_copy(graph->arena, inputs, sizeof inputs);
  conv->n_inputs = 3;
  graph_set_output(conv, 0, norm->outputs[0]);
}

/* Kernels of blocked tensors want s and t: they are not to compute with the parameters when they pack them. */
static void simplify(Graph *graph, const Builder *b, Node *norm) {
  Affine affine = affine_of(b, norm);
  int64_t channels = dim_value(norm->inputs[NORM_SCALE]->shape[0]);
  norm->inputs[NORM_SCALE] = affine.s;
  norm->inputs[NORM_SHIFT] = affine.t;
  norm->inputs[NORM_MEAN] = vector_of(b, channels, 0);
  norm->inputs[NORM_VARIANCE] = vector_of(b, channels, 1);
  norm->n_attributes = 0;
  set_attribute(graph, norm, attribute_float(ATTR_epsilon, 0));
}

bool fold_by_nodes(Graph *graph, const UseList *uses, Node *node) {
  bool any = false, any_of_conv = false;
  if (!graph->mutables || !is_op(node, OP_BatchNormalization) || node->n_outputs > 1) return false;
  for (int i = NORM_SCALE; i < NORM_INPUTS; i++)
    if (!is_of_weights(node->inputs[i], &any, 0)) return false;
  Builder builder = {graph, node->name, node->where};
  Node *conv = convolution_before(uses, node, &any_of_conv);
  if (conv && (any || any_of_conv)) {
    move_into(graph, &builder, conv, node);
    return true;
  }
  if (any) simplify(graph, &builder, node);
  return false;
}
