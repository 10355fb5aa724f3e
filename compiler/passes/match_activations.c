/* SPDX-License-Identifier: MIT */
/*
 * Activations that exporters write as arithmetic become one op, which can be an epilogue of the kernel that writes x:
 *
 *   x * Sigmoid(x)            Swish(x)         x * HardSigmoid(x)        HardSwish(x)
 *   x * Tanh(Softplus(x))     Mish(x)          Clip(x + 3, 0, 6) / 6     HardSigmoid(x)
 *   x ^ 2                     x * x
 *
 * A pattern with an inner value that has other readers is kept.
 */
#include <math.h>

#include "ir/tensor.h"
#include "passes.h"
#include "shapes/build.h"

/* Constants are rounded to f32, and exporters compute 1/6 in different ways. */
static const double TOLERANCE = 1e-6;

static bool near(double a, double b) { return fabs(a - b) <= TOLERANCE; }

/* The value's producer, if it is an `op` and `reader` is the only reader. */
static Node *made_by(const UseList *uses, const Value *value, OpKind op, const Node *reader) {
  return value && is_op(value->producer, op) && uses->single[value->id] == reader ? value->producer : NULL;
}

/* Is the value a constant of this number that does not extend the shape of `beside`? */
static bool is_number(const Value *value, double number, const Value *beside) {
  double found;
  return value && value->dtype == RNNCC_F32 && value_number(value, &found) && value->rank <= beside->rank &&
         near(found, number);
}

/* The other operand of a node with the constant `number`; NULL if there is none. */
static Value *beside_number(const Node *node, double number) {
  for (int i = 0; i < 2; i++)
    if (is_number(node->inputs[i], number, node->inputs[1 - i])) return node->inputs[1 - i];
  return NULL;
}

/* x of Clip(x + 3, 0, 6). */
static Value *shifted_relu6(const UseList *uses, const Value *value, const Node *reader) {
  const Node *clip = made_by(uses, value, OP_Clip, reader);
  if (!clip || clip->n_inputs < 3) return NULL;
  if (!is_number(clip->inputs[1], 0, value) || !is_number(clip->inputs[2], 6, value)) return NULL;
  const Node *sum = made_by(uses, clip->inputs[0], OP_Add, clip);
  return sum ? beside_number(sum, 3) : NULL;
}

static void become(Graph *graph, Node *node, OpKind op, Value *x, double alpha, double beta) {
  node->op = op_info(op);
  node->inputs = ARENA_ARRAY(graph->arena, Value *, 1);
  node->inputs[0] = x;
  node->n_inputs = 1;
  node->n_attributes = 0;
  if (op != OP_HardSigmoid) return;
  set_attribute(graph, node, attribute_float(ATTR_alpha, alpha));
  set_attribute(graph, node, attribute_float(ATTR_beta, beta));
}

/* Clip(x + 3, 0, 6) / 6, or x times it: the node divides by 6. */
static void match_sixth(Graph *graph, const UseList *uses, Node *node) {
  Value *divided = is_op(node, OP_Mul) ? beside_number(node, 1.0 / 6) : NULL;
  if (is_op(node, OP_Div) && is_number(node->inputs[1], 6, node->inputs[0])) divided = node->inputs[0];
  if (!divided) return;
  Value *x = shifted_relu6(uses, divided, node);
  if (x) become(graph, node, OP_HardSigmoid, x, 1.0 / 6, 0.5);
  const Node *product = made_by(uses, divided, OP_Mul, node);
  for (int i = 0; product && i < 2; i++)
    if (shifted_relu6(uses, product->inputs[i], product) == product->inputs[1 - i]) {
      become(graph, node, OP_HardSwish, product->inputs[1 - i], 0, 0);
      return;
    }
}

/* The op that computes x * gate; Mul if there is none. */
static OpKind gated(const UseList *uses, const Value *x, const Value *gate, const Node *product) {
  const Node *sigmoid = made_by(uses, gate, OP_Sigmoid, product), *hard = made_by(uses, gate, OP_HardSigmoid, product);
  const Node *tanh = made_by(uses, gate, OP_Tanh, product);
  const Node *softplus = tanh ? made_by(uses, tanh->inputs[0], OP_Softplus, tanh) : NULL;
  if (sigmoid && sigmoid->inputs[0] == x) return OP_Swish;
  if (softplus && softplus->inputs[0] == x) return OP_Mish;
  bool sixth = hard && near(node_float(hard, ATTR_alpha), 1.0 / 6) && near(node_float(hard, ATTR_beta), 0.5);
  return sixth && hard->inputs[0] == x ? OP_HardSwish : OP_Mul;
}

static void match_gate(Graph *graph, const UseList *uses, Node *node) {
  if (!is_op(node, OP_Mul)) return;
  for (int i = 0; i < 2; i++) {
    Value *x = node->inputs[i];
    OpKind op = gated(uses, x, node->inputs[1 - i], node);
    if (op == OP_Mul) continue;
    become(graph, node, op, x, 0, 0);
    return;
  }
}

/* The number 2, exactly, of any type that a power may have. */
static bool is_two(const Value *value, const Value *beside) {
  double number;
  return value_number(value, &number) && number == 2 && value->rank <= beside->rank;
}

/* A square, as in exported layer normalisations: one multiplication is faster and correctly rounded. */
static void match_square(Graph *graph, Node *node) {
  if (!is_op(node, OP_Pow) || !is_two(node->inputs[1], node->inputs[0])) return;
  Value *x = node->inputs[0];
  node->op = op_info(OP_Mul);
  node->inputs = ARENA_ARRAY(graph->arena, Value *, 2);
  node->inputs[0] = node->inputs[1] = x;
}

/* needs: infer_shapes; no epilogues yet. keeps: types and shapes; results but for rounding. Removes the patterns' inner
 * nodes. */
void match_activations(Graph *graph) {
  UseList uses = graph_uses(graph);
  for (int n = 0; n < graph->n_nodes; n++) {
    if (graph->nodes[n]->n_outputs != 1 || graph->nodes[n]->outputs[0]->dtype != RNNCC_F32) continue;
    match_sixth(graph, &uses, graph->nodes[n]);
    match_gate(graph, &uses, graph->nodes[n]);
    match_square(graph, graph->nodes[n]);
  }
  graph_remove_dead(graph);
}
