/* SPDX-License-Identifier: MIT */
/*
 * Normalisations of rows that exporters write as arithmetic become one op, whose kernel reads memory twice in all:
 *
 *   d = x - ReduceMean(x);   d / Sqrt(ReduceMean(d * d) + epsilon) * scale + bias       LayerNormalization
 *                            x / Sqrt(ReduceMean(x * x) + epsilon) * scale              RMSNormalization
 *
 * Means are over the last axes. The quotient may be a product with the reciprocal; scale and bias may be absent. A
 * pattern with an inner value that has other readers is kept.
 */
#include "ir/tensor.h"
#include "passes.h"
#include "shapes/build.h"
#include "shapes/shape.h"

typedef struct Match {
  Value *x;
  int axis; /* a row's first */
  double epsilon;
  bool centred;
} Match;

static const Node *sole(const UseList *uses, const Value *value, OpKind op) {
  return value && is_op(value->producer, op) && uses->single[value->id] ? value->producer : NULL;
}

/* ---- means ---- */

/* The first of the axes that the node takes a mean of, which are the last ones and stay with length 1; -1: it takes
 * another. */
static int mean_axis(Graph *graph, const Node *node) {
  IntList axes;
  bool marked[MAX_RANK] = {false};
  if (!is_op(node, OP_ReduceMean) || !node_int(node, ATTR_keepdims)) return -1;
  int rank = node->inputs[0]->rank, axis = rank;
  if (!operand_ints(graph, node, ATTR_axes, 1, &axes) || !operand_axes(node, &axes, rank, marked)) return -1;
  while (axis > 0 && marked[axis - 1]) axis--;
  return axes.n && axis == rank - axes.n ? axis : -1;
}

/* x of x - ReduceMean(x) over axes from `axis` on, of whose means there are `readers`; else NULL. */
static Value *centred_by(Graph *graph, const UseList *uses, const Value *value, int axis, int readers) {
  const Node *sub = value->producer;
  if (!is_op(sub, OP_Sub)) return NULL;
  const Value *mean = sub->inputs[1];
  if (uses->count[mean->id] != readers || mean_axis(graph, mean->producer) != axis) return NULL;
  return mean->producer->inputs[0] == sub->inputs[0] ? sub->inputs[0] : NULL;
}

/* Fills in x, of which `squared` and `numerator` are the deviations: one value, or the same difference twice. Else they
 * must be x itself. */
static bool find_rows(Graph *graph, const UseList *uses, const Value *squared, Value *numerator, Match *match) {
  bool same = squared == numerator;
  int readers = same ? 1 : 2;
  Value *x = uses->count[squared->id] == (same ? 3 : 2) ? centred_by(graph, uses, squared, match->axis, readers) : NULL;
  match->centred =
      x && (same || (uses->count[numerator->id] == 1 && centred_by(graph, uses, numerator, match->axis, readers) == x &&
                     squared->producer->inputs[1] == numerator->producer->inputs[1]));
  match->x = match->centred ? x : numerator;
  return match->centred || same;
}

/* ---- the quotient ---- */

static bool is_number(const Value *value, double number) {
  double found;
  return value_number(value, &found) && found == number;
}

/* v of Sqrt(v), or of v ^ 0.5. */
static const Value *under_root(const UseList *uses, const Value *value) {
  const Node *root = sole(uses, value, OP_Sqrt), *power = sole(uses, value, OP_Pow);
  if (root) return root->inputs[0];
  return power && is_number(power->inputs[1], 0.5) ? power->inputs[0] : NULL;
}

/* v of 1 / Sqrt(v), or of v ^ -0.5. */
static const Value *under_inverse_root(const UseList *uses, const Value *value) {
  const Node *inverse = sole(uses, value, OP_Reciprocal), *quotient = sole(uses, value, OP_Div);
  const Node *power = sole(uses, value, OP_Pow);
  if (inverse) return under_root(uses, inverse->inputs[0]);
  if (quotient && is_number(quotient->inputs[0], 1)) return under_root(uses, quotient->inputs[1]);
  return power && is_number(power->inputs[1], -0.5) ? power->inputs[0] : NULL;
}

/* The squared value of ReduceMean(value * value) + epsilon, or NULL. */
static const Value *mean_square_of(Graph *graph, const UseList *uses, const Value *value, Match *match) {
  const Node *sum = sole(uses, value, OP_Add);
  for (int i = 0; sum && i < 2; i++) {
    const Node *mean = sole(uses, sum->inputs[1 - i], OP_ReduceMean);
    if (!mean || !value_number(sum->inputs[i], &match->epsilon) || match->epsilon < 0) continue;
    const Node *square = sole(uses, mean->inputs[0], OP_Mul);
    match->axis = mean_axis(graph, mean);
    return square && match->axis >= 0 && square->inputs[0] == square->inputs[1] ? square->inputs[0] : NULL;
  }
  return NULL;
}

static bool is_quotient(Graph *graph, const UseList *uses, Value *numerator, const Value *variance, Match *match) {
  const Value *squared = variance ? mean_square_of(graph, uses, variance, match) : NULL;
  return squared && find_rows(graph, uses, squared, numerator, match);
}

static bool find(Graph *graph, const UseList *uses, const Node *node, Match *match) {
  Value *const *in = node->inputs;
  bool divides = is_op(node, OP_Div);
  if (!(divides || is_op(node, OP_Mul)) || node->outputs[0]->dtype != RNNCC_F32) return false;
  bool found = divides && is_quotient(graph, uses, in[0], under_root(uses, in[1]), match);
  for (int i = 0; !divides && !found && i < 2; i++)
    found = is_quotient(graph, uses, in[i], under_inverse_root(uses, in[1 - i]), match);
  return found && shapes_agree(match->x, node->outputs[0]);
}

/* ---- scale and bias ---- */

/* One number, or one for each element of a row, which gives x no further axes? */
static bool is_parameter(const Value *value, const Match *match) {
  const Value *x = match->x;
  int extra = value->rank - (x->rank - match->axis);
  bool one = true, each = extra >= 0;
  for (int k = 0; k < value->rank; k++) {
    one &= dim_equals(value->shape[k], 1);
    each &= k < extra ? dim_equals(value->shape[k], 1) : same_dim(value->shape[k], x->shape[match->axis + k - extra]);
  }
  return (one || each) && value->rank <= x->rank;
}

/* If the only reader of *node's result is an `op` with a parameter, that reader becomes *node; else NULL. */
static Value *parameter(const UseList *uses, OpKind op, const Match *match, Node **node) {
  Value *result = (*node)->outputs[0];
  Node *reader = uses->single[result->id];
  if (!is_op(reader, op)) return NULL;
  Value *beside = reader->inputs[reader->inputs[0] == result];
  if (!is_parameter(beside, match)) return NULL;
  *node = reader;
  return beside;
}

static void replace(Graph *graph, const UseList *uses, const Match *match, Node *node) {
  static const float one = 1;
  Value *scale = parameter(uses, OP_Mul, match, &node);
  Value *bias = match->centred ? parameter(uses, OP_Add, match, &node) : NULL;
  node->op = op_info(match->centred ? OP_LayerNormalization : OP_RMSNormalization);
  node->inputs = ARENA_ARRAY(graph->arena, Value *, 3);
  node->inputs[0] = match->x;
  node->inputs[1] = scale ? scale : graph_constant(graph, "one", RNNCC_F32, 1, (const int64_t[]){1}, &one);
  node->inputs[2] = bias;
  node->n_inputs = bias ? 3 : 2;
  node->n_attributes = 0;
  set_attribute(graph, node, attribute_int(ATTR_axis, match->axis));
  set_attribute(graph, node, attribute_float(ATTR_epsilon, match->epsilon));
}

/* needs: infer_shapes, match_activations, which makes squares products; no epilogues yet. keeps: types and shapes;
 * results but for rounding. Removes the patterns' inner nodes. */
void match_normalisations(Graph *graph) {
  UseList uses = graph_uses(graph);
  int n_nodes = graph->n_nodes;
  for (int n = 0; n < n_nodes; n++) {
    Match match = {0};
    if (find(graph, &uses, graph->nodes[n], &match)) replace(graph, &uses, &match, graph->nodes[n]);
  }
  graph_remove_dead(graph);
}
