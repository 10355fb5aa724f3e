/* SPDX-License-Identifier: MIT */
/*
 * Gelu written as arithmetic becomes one op, which can be an epilogue of the kernel that writes x:
 *
 *   x / 2 * (1 + Erf(x / sqrt 2))                               Gelu(x)
 *   x / 2 * (1 + Tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))       Gelu(x), approximate
 *   x * Sigmoid(alpha x)                                        Swish(x)
 *
 * Factors may stand in any order and any nesting, and so may those of the polynomials: what is compared are their
 * coefficients. A pattern with an inner value that has other readers is kept.
 */
#include <math.h>

#include "ir/tensor.h"
#include "passes.h"
#include "shapes/build.h"
#include "shapes/shape.h"

/* Constants are rounded to f32, some by exporters to few digits. */
static const double TOLERANCE = 1e-6;
enum { MAX_NESTING = 8, DEGREE = 3 };

static bool near(double a, double b) { return fabs(a - b) <= TOLERANCE; }

static const Node *sole(const UseList *uses, const Value *value, OpKind op) {
  return is_op(value->producer, op) && uses->single[value->id] ? value->producer : NULL;
}

/* ---- polynomials of x ---- */

typedef struct Polynomial {
  double c[DEGREE + 1]; /* c[k] x^k */
} Polynomial;

static Polynomial sum_of(Polynomial a, Polynomial b) {
  for (int k = 0; k <= DEGREE; k++) a.c[k] += b.c[k];
  return a;
}

/* False if its degree is too high. */
static bool product_of(Polynomial a, Polynomial b, Polynomial *product) {
  *product = (Polynomial){{0}};
  for (int i = 0; i <= DEGREE; i++)
    for (int k = 0; k <= DEGREE; k++) {
      if (a.c[i] == 0 || b.c[k] == 0) continue;
      if (i + k > DEGREE) return false;
      product->c[i + k] += a.c[i] * b.c[k];
    }
  return true;
}

static bool polynomial_of(const UseList *uses, const Value *value, const Value *x, int nesting, Polynomial *found);

/* Of the node's inputs. */
static bool operands_of(const UseList *uses, const Node *node, const Value *x, int nesting, Polynomial operands[2]) {
  for (int i = 0; i < 2; i++)
    if (!polynomial_of(uses, node->inputs[i], x, nesting - 1, &operands[i])) return false;
  return true;
}

static bool power_of(Polynomial base, double exponent, Polynomial *power) {
  *power = (Polynomial){{1}};
  if (exponent != 2 && exponent != 3) return false;
  for (int i = 0; i < exponent; i++)
    if (!product_of(*power, base, power)) return false;
  return true;
}

static bool polynomial_of(const UseList *uses, const Value *value, const Value *x, int nesting, Polynomial *found) {
  Polynomial operands[2];
  double number;
  bool known = value_number(value, &number);
  *found = value == x ? (Polynomial){{0, 1}} : (Polynomial){{known ? number : 0}};
  if (value == x || known) return true;
  const Node *node = uses->single[value->id] ? value->producer : NULL;
  bool arithmetic = is_op(node, OP_Add) || is_op(node, OP_Mul) || is_op(node, OP_Div) || is_op(node, OP_Pow);
  if (nesting == 0 || !arithmetic || !operands_of(uses, node, x, nesting, operands)) return false;
  double right = value_number(node->inputs[1], &number) ? number : 0;
  if (is_op(node, OP_Pow)) return power_of(operands[0], right, found);
  if (is_op(node, OP_Div)) return right != 0 && product_of(operands[0], (Polynomial){{1 / right}}, found);
  if (is_op(node, OP_Mul)) return product_of(operands[0], operands[1], found);
  *found = sum_of(operands[0], operands[1]);
  return true;
}

/* ---- the product ---- */

/* A product of numbers and of two values. */
typedef struct Factors {
  double coefficient;
  int n;
  Value *values[2];
} Factors;

static bool factors_of(const UseList *uses, const Node *node, int nesting, Factors *factors);

static bool factor(const UseList *uses, Value *value, int nesting, Factors *factors) {
  double number;
  const Node *node = sole(uses, value, OP_Mul);
  if (!node) node = sole(uses, value, OP_Div);
  if (value_number(value, &number)) {
    factors->coefficient *= number;
    return true;
  }
  if (node && nesting && factors_of(uses, node, nesting - 1, factors)) return true;
  if (factors->n == 2) return false;
  factors->values[factors->n++] = value;
  return true;
}

static bool factors_of(const UseList *uses, const Node *node, int nesting, Factors *factors) {
  Factors all = *factors;
  double number;
  if (!factor(uses, node->inputs[0], nesting, &all)) return false;
  if (is_op(node, OP_Mul)) {
    if (!factor(uses, node->inputs[1], nesting, &all)) return false;
  } else {
    if (!value_number(node->inputs[1], &number) || number == 0) return false;
    all.coefficient /= number;
  }
  *factors = all;
  return true;
}

/* ---- the gates ---- */

typedef struct Gate {
  OpKind function;
  bool plus_one;      /* 1 + function(...) */
  double coefficient; /* of the whole product */
  OpKind becomes;
  int form; /* of Gelu */
} Gate;

static const Gate gates[] = {
    {OP_Erf, true, 0.5, OP_Gelu, GELU_none},
    {OP_Tanh, true, 0.5, OP_Gelu, GELU_tanh},
    {OP_Sigmoid, false, 1, OP_Swish, 0},
};

/* What is added to 1, or NULL. */
static const Value *beyond_one(const UseList *uses, const Value *value) {
  const Node *sum = sole(uses, value, OP_Add);
  double number;
  for (int i = 0; sum && i < 2; i++)
    if (value_number(sum->inputs[i], &number) && near(number, 1)) return sum->inputs[1 - i];
  return NULL;
}

static bool is_argument(const Gate *gate, const Polynomial *p) {
  const double root = 0.79788456080286536; /* sqrt(2 / pi) */
  if (p->c[0] != 0 || p->c[2] != 0) return false;
  if (gate->function == OP_Tanh) return near(p->c[1], root) && near(p->c[3], 0.044715 * root);
  return p->c[3] == 0 && (gate->function == OP_Sigmoid || near(p->c[1], M_SQRT1_2));
}

static void become(Graph *graph, Node *node, const Gate *gate, Value *x, double alpha) {
  node->op = op_info(gate->becomes);
  node->inputs = ARENA_ARRAY(graph->arena, Value *, 1);
  node->inputs[0] = x;
  node->n_inputs = 1;
  node->n_attributes = 0;
  bool gelu = gate->becomes == OP_Gelu;
  set_attribute(graph, node,
                gelu ? attribute_one_of(ATTR_approximate, gate->form) : attribute_float(ATTR_alpha, alpha));
}

/* Is the product x times the gate? */
static bool match_gate(Graph *graph, const UseList *uses, Node *node, const Gate *gate, Value *x, const Value *value) {
  Polynomial argument;
  if (gate->plus_one) value = beyond_one(uses, value);
  const Node *function = value ? sole(uses, value, gate->function) : NULL;
  if (!function || !shapes_agree(x, node->outputs[0])) return false;
  if (!polynomial_of(uses, function->inputs[0], x, MAX_NESTING, &argument) || !is_argument(gate, &argument))
    return false;
  become(graph, node, gate, x, argument.c[1]);
  return true;
}

static void match(Graph *graph, const UseList *uses, Node *node) {
  Factors factors = {.coefficient = 1};
  if (!is_op(node, OP_Mul) && !is_op(node, OP_Div)) return;
  if (node->outputs[0]->dtype != RNNCC_F32 || !factors_of(uses, node, MAX_NESTING, &factors) || factors.n < 2) return;
  for (size_t k = 0; k < sizeof gates / sizeof *gates; k++)
    for (int i = 0; i < 2; i++)
      if (near(factors.coefficient, gates[k].coefficient) &&
          match_gate(graph, uses, node, &gates[k], factors.values[i], factors.values[1 - i]))
        return;
}

/* needs: infer_shapes, match_activations; no epilogues yet. keeps: types and shapes; results but for rounding. Removes
 * the patterns' inner nodes. */
void match_gelu(Graph *graph) {
  UseList uses = graph_uses(graph);
  for (int n = 0; n < graph->n_nodes; n++) match(graph, &uses, graph->nodes[n]);
  graph_remove_dead(graph);
}
