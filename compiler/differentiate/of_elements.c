/* SPDX-License-Identifier: MIT */
/* Gradients of element-wise operators. */
#include <math.h>

#include "differentiate/rule.h"
#include "ir/op.h"

/* ---- one input: d times a slope, written with the result where that is known anyhow ---- */

typedef Value *Slope(const Formula *f, const Node *node, Value *x, Value *y);

#define N(number_) number(f, x, number_)
#define SLOPE(name, formula)                                                                                           \
  static Value *slope_of_##name(const Formula *f, const Node *node, Value *x, Value *y) {                              \
    (void)f, (void)node, (void)x, (void)y;                                                                             \
    return formula;                                                                                                    \
  }

static Value *squared(const Formula *f, Value *x) { return times(f, x, x); }
static Value *inverse(const Formula *f, Value *x) { return apply(f, OP_Reciprocal, x); }
static Value *root(const Formula *f, Value *x) { return apply(f, OP_Sqrt, x); }

SLOPE(abs, apply(f, OP_Sign, x))
SLOPE(neg, N(-1))
SLOPE(reciprocal, times(f, N(-1), squared(f, y)))
SLOPE(sqrt, over(f, N(0.5), y))
SLOPE(exp, y)
SLOPE(log, inverse(f, x))
SLOPE(erf, times(f, N(1.12837916709551257390) /* 2 / sqrt(pi) */, apply(f, OP_Exp, times(f, N(-1), squared(f, x)))))
SLOPE(sigmoid, times(f, y, minus(f, N(1), y)))
SLOPE(tanh, minus(f, N(1), squared(f, y)))
SLOPE(softplus, apply(f, OP_Sigmoid, x))
SLOPE(softsign, inverse(f, squared(f, plus(f, N(1), apply(f, OP_Abs, x)))))
SLOPE(sin, apply(f, OP_Cos, x))
SLOPE(cos, times(f, N(-1), apply(f, OP_Sin, x)))
SLOPE(tan, plus(f, N(1), squared(f, y)))
SLOPE(asin, inverse(f, root(f, minus(f, N(1), squared(f, x)))))
SLOPE(acos, times(f, N(-1), inverse(f, root(f, minus(f, N(1), squared(f, x))))))
SLOPE(atan, inverse(f, plus(f, N(1), squared(f, x))))
SLOPE(sinh, apply(f, OP_Cosh, x))
SLOPE(cosh, apply(f, OP_Sinh, x))
SLOPE(asinh, inverse(f, root(f, plus(f, squared(f, x), N(1)))))
SLOPE(acosh, inverse(f, root(f, minus(f, squared(f, x), N(1)))))
SLOPE(atanh, inverse(f, minus(f, N(1), squared(f, x))))

/* y = x s(alpha x): s + alpha y (1 - s). */
static Value *slope_of_swish(const Formula *f, const Node *node, Value *x, Value *y) {
  Value *alpha = N(node_float(node, ATTR_alpha)), *s = apply(f, OP_Sigmoid, times(f, alpha, x));
  return plus(f, s, times(f, times(f, alpha, y), minus(f, N(1), s)));
}

/* y = x t, t = tanh(softplus(x)): t + x (1 - t^2) sigmoid(x). */
static Value *slope_of_mish(const Formula *f, const Node *node, Value *x, Value *y) {
  (void)node, (void)y;
  Value *t = apply(f, OP_Tanh, apply(f, OP_Softplus, x));
  return plus(f, t, times(f, times(f, x, apply(f, OP_Sigmoid, x)), minus(f, N(1), squared(f, t))));
}

/* y = x F(x), F the normal distribution: F + x F', F' its density. */
static Value *slope_of_exact_gelu(const Formula *f, Value *x) {
  Value *distribution = times(f, N(0.5), plus(f, N(1), apply(f, OP_Erf, times(f, N(M_SQRT1_2), x))));
  Value *density =
      times(f, N(0.39894228040143267794) /* 1 / sqrt(2 pi) */, apply(f, OP_Exp, times(f, N(-0.5), squared(f, x))));
  return plus(f, distribution, times(f, x, density));
}

/* y = x (1 + t) / 2, t = tanh(u), u = sqrt(2 / pi) (x + .044715 x^3). */
static Value *slope_of_gelu(const Formula *f, const Node *node, Value *x, Value *y) {
  (void)y;
  if (node_word(node, ATTR_approximate) == GELU_none) return slope_of_exact_gelu(f, x);
  const double scale = 0.79788456080286535588 /* sqrt(2 / pi) */, cubic = 0.044715;
  Value *square = squared(f, x);
  Value *u = times(f, times(f, N(scale), x), plus(f, N(1), times(f, N(cubic), square)));
  Value *t = apply(f, OP_Tanh, u), *du = times(f, N(scale), plus(f, N(1), times(f, N(3 * cubic), square)));
  Value *bend = times(f, times(f, x, du), minus(f, N(1), squared(f, t)));
  return times(f, N(0.5), plus(f, plus(f, N(1), t), bend));
}

static Slope *const slopes[N_OPS] = {
    [OP_Abs] = slope_of_abs,           [OP_Neg] = slope_of_neg,         [OP_Reciprocal] = slope_of_reciprocal,
    [OP_Sqrt] = slope_of_sqrt,         [OP_Exp] = slope_of_exp,         [OP_Log] = slope_of_log,
    [OP_Erf] = slope_of_erf,           [OP_Sigmoid] = slope_of_sigmoid, [OP_Tanh] = slope_of_tanh,
    [OP_Gelu] = slope_of_gelu,         [OP_Mish] = slope_of_mish,       [OP_Softplus] = slope_of_softplus,
    [OP_Softsign] = slope_of_softsign, [OP_Swish] = slope_of_swish,     [OP_Sin] = slope_of_sin,
    [OP_Cos] = slope_of_cos,           [OP_Tan] = slope_of_tan,         [OP_Asin] = slope_of_asin,
    [OP_Acos] = slope_of_acos,         [OP_Atan] = slope_of_atan,       [OP_Sinh] = slope_of_sinh,
    [OP_Cosh] = slope_of_cosh,         [OP_Asinh] = slope_of_asinh,     [OP_Acosh] = slope_of_acosh,
    [OP_Atanh] = slope_of_atanh,
};

const char *of_slope(const Gradient *g) {
  const Node *node = g->node;
  Value *slope = slopes[node->op->kind](g->f, node, node->inputs[0], node->outputs[0]);
  g->dx[0] = times(g->f, gradient_in(g), slope);
  return NULL;
}

/* ---- one input: pieces. At a corner the slope is PyTorch's ---- */

typedef struct Pieces {
  Value *condition;        /* where it holds the slope is `inside`, else `outside` */
  Value *inside, *outside; /* NULL: 1, and 0 */
} Pieces;

typedef Pieces PiecesOf(const Formula *f, const Node *node, Value *x, Value *y);

static Value *above(const Formula *f, Value *x, double bound) { return apply2(f, OP_Greater, x, N(bound)); }
static Value *between(const Formula *f, Value *x, double low, double high) {
  return apply2(f, OP_And, above(f, x, low), apply2(f, OP_Less, x, N(high)));
}

#define PIECES(name, ...)                                                                                              \
  static Pieces pieces_of_##name(const Formula *f, const Node *node, Value *x, Value *y) {                             \
    (void)node, (void)x, (void)y;                                                                                      \
    return (Pieces){__VA_ARGS__};                                                                                      \
  }
#define ALPHA node_float(node, ATTR_alpha)
#define GAMMA node_float(node, ATTR_gamma)

PIECES(relu, .condition = above(f, y, 0))
PIECES(leaky_relu, .condition = above(f, x, 0), .outside = N(ALPHA))
PIECES(thresholded_relu, .condition = above(f, x, ALPHA))
PIECES(elu, .condition = above(f, x, 0), .outside = plus(f, y, N(ALPHA)))
PIECES(selu, .condition = above(f, x, 0), .inside = N(GAMMA), .outside = plus(f, y, N(ALPHA *GAMMA)))
PIECES(celu, .condition = above(f, x, 0), .outside = apply(f, OP_Exp, times(f, x, N(1 / ALPHA))))
PIECES(hard_sigmoid, .condition = between(f, y, 0, 1), .inside = N(ALPHA))
PIECES(shrink, .condition = above(f, apply(f, OP_Abs, x), node_float(node, ATTR_lambd)))

/* y = x min(max(x / 6 + 1/2, 0), 1). */
static Pieces pieces_of_hard_swish(const Formula *f, const Node *node, Value *x, Value *y) {
  (void)node, (void)y;
  Value *slope = plus(f, times(f, x, N(1.0 / 3)), N(0.5));
  return (Pieces){between(f, x, -3, 3), slope, cast(f, above(f, x, 0), x->dtype)};
}

static PiecesOf *const pieces[N_OPS] = {
    [OP_Relu] = pieces_of_relu,
    [OP_LeakyRelu] = pieces_of_leaky_relu,
    [OP_ThresholdedRelu] = pieces_of_thresholded_relu,
    [OP_Elu] = pieces_of_elu,
    [OP_Selu] = pieces_of_selu,
    [OP_Celu] = pieces_of_celu,
    [OP_HardSigmoid] = pieces_of_hard_sigmoid,
    [OP_HardSwish] = pieces_of_hard_swish,
    [OP_Shrink] = pieces_of_shrink,
};

const char *of_pieces(const Gradient *g) {
  const Formula *f = g->f;
  const Node *node = g->node;
  if (node->inputs[0]->dtype != RNNCC_F32) return "elements other than f32";
  Value *d = gradient_in(g);
  Pieces p = pieces[node->op->kind](f, node, node->inputs[0], node->outputs[0]);
  Value *inside = p.inside ? times(f, d, p.inside) : d;
  g->dx[0] =
      p.outside ? apply3(f, OP_Where, p.condition, inside, times(f, d, p.outside)) : where_true(f, p.condition, inside);
  return NULL;
}

/* x has the gradient where it is a bound itself. Where bounds cross all is the upper one. */
const char *of_clip(const Gradient *g) {
  const Formula *f = g->f;
  Value *x = g->node->inputs[0], *low = node_input(g->node, 1), *high = node_input(g->node, 2), *d = gradient_in(g);
  if (high && g->wanted[2]) {
    Value *raised = low ? apply2(f, OP_Max, x, low) : x;
    g->dx[2] = sum_to(f, where_true(f, apply2(f, OP_Greater, raised, high), d), high);
  }
  if (low && g->wanted[1]) {
    Value *below = where_true(f, apply2(f, OP_Less, x, low), d);
    if (high) below = where_true(f, apply2(f, OP_LessOrEqual, low, high), below);
    g->dx[1] = sum_to(f, below, low);
  }
  if (low) d = where_true(f, apply2(f, OP_GreaterOrEqual, x, low), d);
  if (high) d = where_true(f, apply2(f, OP_LessOrEqual, x, high), d);
  g->dx[0] = d;
  return NULL;
}

const char *of_cast(const Gradient *g) {
  g->dx[0] = cast(g->f, gradient_in(g), g->node->inputs[0]->dtype);
  return NULL;
}

/* ---- several inputs ---- */

/* Hands d, of the result's shape, to an input. */
static void hand(const Gradient *g, int input, Value *d) {
  if (g->wanted[input]) g->dx[input] = sum_to(g->f, d, g->node->inputs[input]);
}

const char *of_sum(const Gradient *g) {
  for (int i = 0; i < g->node->n_inputs; i++) hand(g, i, gradient_in(g));
  return NULL;
}

const char *of_difference(const Gradient *g) {
  hand(g, 0, gradient_in(g));
  if (g->wanted[1]) hand(g, 1, apply(g->f, OP_Neg, gradient_in(g)));
  return NULL;
}

const char *of_product(const Gradient *g) {
  Value **in = g->node->inputs, *d = gradient_in(g);
  if (g->wanted[0]) hand(g, 0, times(g->f, d, in[1]));
  if (g->wanted[1]) hand(g, 1, times(g->f, d, in[0]));
  return NULL;
}

const char *of_quotient(const Gradient *g) {
  Value *b = g->node->inputs[1], *y = g->node->outputs[0], *d = over(g->f, gradient_in(g), b);
  hand(g, 0, d);
  if (g->wanted[1]) hand(g, 1, apply(g->f, OP_Neg, times(g->f, d, y)));
  return NULL;
}

/* da = e a^(e - 1), de = y log(a); where a is 0, y is the limit of the latter. */
const char *of_power(const Gradient *g) {
  const Formula *f = g->f;
  Value *a = g->node->inputs[0], *e = g->node->inputs[1], *y = g->node->outputs[0], *d = gradient_in(g);
  if (e->dtype != a->dtype && g->wanted[1]) return "an exponent of another type than the base";
  if (g->wanted[0]) {
    Value *slope = times(f, cast(f, e, a->dtype), apply2(f, OP_Pow, a, minus(f, e, number(f, e, 1))));
    Value *is_one = apply2(f, OP_Equal, e, number(f, e, 0)); /* a^0, also of 0 */
    hand(g, 0, times(f, d, where_true(f, apply(f, OP_Not, is_one), slope)));
  }
  if (g->wanted[1]) {
    Value *x = a, *slope = where_true(f, apply2(f, OP_Greater, a, N(0)), times(f, y, apply(f, OP_Log, a)));
    hand(g, 1, times(f, d, slope));
  }
  return NULL;
}

const char *of_prelu(const Gradient *g) {
  const Formula *f = g->f;
  Value *x = g->node->inputs[0], *slope = g->node->inputs[1], *d = gradient_in(g), *positive = above(f, x, 0);
  if (g->wanted[0]) hand(g, 0, apply3(f, OP_Where, positive, d, times(f, d, slope)));
  if (g->wanted[1]) hand(g, 1, apply3(f, OP_Where, positive, N(0), times(f, d, x)));
  return NULL;
}

/* Inputs that equal the extreme share the gradient. */
const char *of_extreme(const Gradient *g) {
  const Formula *f = g->f;
  const Node *node = g->node;
  Value *y = node->outputs[0], **equal = ARENA_ARRAY(f->graph->arena, Value *, node->n_inputs), *count = NULL;
  for (int i = 0; i < node->n_inputs; i++) {
    equal[i] = cast(f, apply2(f, OP_Equal, node->inputs[i], y), y->dtype);
    count = count ? plus(f, count, equal[i]) : equal[i];
  }
  Value *share = over(f, gradient_in(g), count);
  for (int i = 0; i < node->n_inputs; i++)
    if (g->wanted[i]) hand(g, i, times(f, share, equal[i]));
  return NULL;
}

const char *of_where(const Gradient *g) {
  const Formula *f = g->f;
  Value *condition = g->node->inputs[0], *d = gradient_in(g);
  if (g->wanted[1]) hand(g, 1, where_true(f, condition, d));
  if (g->wanted[2]) hand(g, 2, apply3(f, OP_Where, condition, number(f, d, 0), d));
  return NULL;
}
