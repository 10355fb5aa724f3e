/* SPDX-License-Identifier: MIT */
/* Element-wise ops of one input, Clip and Cast. NaN propagates wherever ONNX Runtime lets it. */
#include <math.h>

#include "reference/kernels.h"

/* An op's attributes, read once: their meaning is the op's. */
typedef struct UnaryParameters {
  double alpha, beta;      /* Selu: beta is gamma */
  double lambd, bias;      /* Shrink */
  bool approximate;        /* Gelu by tanh */
  bool negative, positive; /* the infinities of IsInf */
} UnaryParameters;

typedef double UnaryFloat(double x, const UnaryParameters *parameters);
typedef Wide UnaryInt(Wide x);

#define UNARY(name, expression)                                                                                        \
  static double name(double x, const UnaryParameters *p) {                                                             \
    (void)p;                                                                                                           \
    return expression;                                                                                                 \
  }
UNARY(float_abs, fabs(x))
UNARY(float_neg, -x)
UNARY(float_sign, isnan(x) ? x : (x > 0) - (x < 0))
UNARY(float_floor, floor(x))
UNARY(float_ceil, ceil(x))
UNARY(float_round, nearbyint(x)) /* halves to even, in the default rounding mode */
UNARY(float_reciprocal, 1 / x)
UNARY(float_sqrt, sqrt(x))
UNARY(float_exp, exp(x))
UNARY(float_log, log(x))
UNARY(float_erf, erf(x))
UNARY(float_sigmoid, 1 / (1 + exp(-x)))
UNARY(float_tanh, tanh(x))
UNARY(float_relu, x < 0 ? 0 : x)
UNARY(float_leaky_relu, x < 0 ? p->alpha * x : x)
UNARY(float_thresholded_relu, x > p->alpha ? x : 0) /* NaN gives 0, as in ONNX Runtime */
UNARY(float_elu, x < 0 ? p->alpha * expm1(x) : x)
UNARY(float_selu, p->beta *(x <= 0 ? p->alpha * expm1(x) : x))
UNARY(float_celu, x < 0 ? p->alpha * expm1(x / p->alpha) : x)
UNARY(float_mish, x *tanh(x > 0 ? x + log1p(exp(-x)) : log1p(exp(x))))
UNARY(float_hard_sigmoid, isnan(x) ? x : fmax(0, fmin(1, p->alpha *x + p->beta)))
UNARY(float_hard_swish, isnan(x) ? x : x *fmax(0, fmin(1, x / 6 + 0.5)))
UNARY(float_softplus, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))
UNARY(float_softsign, x / (1 + fabs(x)))
UNARY(float_sin, sin(x))
UNARY(float_cos, cos(x))
UNARY(float_tan, tan(x))
UNARY(float_asin, asin(x))
UNARY(float_acos, acos(x))
UNARY(float_atan, atan(x))
UNARY(float_sinh, sinh(x))
UNARY(float_cosh, cosh(x))
UNARY(float_asinh, asinh(x))
UNARY(float_acosh, acosh(x))
UNARY(float_atanh, atanh(x))
UNARY(float_shrink, x<-p->lambd ? x + p->bias : x> p->lambd ? x - p->bias : 0)
UNARY(float_is_nan, isnan(x) != 0)
UNARY(float_is_inf, isinf(x) && (x < 0 ? p->negative : p->positive))
UNARY(float_swish, x / (1 + exp(-p->alpha * x)))
#undef UNARY

static double float_gelu(double x, const UnaryParameters *p) {
  if (!p->approximate) return 0.5 * x * (1 + erf(x * M_SQRT1_2));
  return 0.5 * x * (1 + tanh(M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x)));
}

static Wide int_abs(Wide x) { return x < 0 ? -x : x; }
static Wide int_neg(Wide x) { return -x; }
static Wide int_sign(Wide x) { return (x > 0) - (x < 0); }
static Wide int_relu(Wide x) { return x < 0 ? 0 : x; }
static Wide int_not(Wide x) { return !x; }
static Wide int_bitwise_not(Wide x) { return ~x; }

static const struct UnaryOp {
  UnaryFloat *on_float;
  UnaryInt *on_int;
} UNARY_OPS[N_OPS] = {
    [OP_Abs] = {float_abs, int_abs},
    [OP_Neg] = {float_neg, int_neg},
    [OP_Sign] = {float_sign, int_sign},
    [OP_Floor] = {float_floor, NULL},
    [OP_Ceil] = {float_ceil, NULL},
    [OP_Round] = {float_round, NULL},
    [OP_Reciprocal] = {float_reciprocal, NULL},
    [OP_Sqrt] = {float_sqrt, NULL},
    [OP_Exp] = {float_exp, NULL},
    [OP_Log] = {float_log, NULL},
    [OP_Erf] = {float_erf, NULL},
    [OP_Sigmoid] = {float_sigmoid, NULL},
    [OP_Tanh] = {float_tanh, NULL},
    [OP_Relu] = {float_relu, int_relu},
    [OP_LeakyRelu] = {float_leaky_relu, NULL},
    [OP_ThresholdedRelu] = {float_thresholded_relu, NULL},
    [OP_Elu] = {float_elu, NULL},
    [OP_Selu] = {float_selu, NULL},
    [OP_Celu] = {float_celu, NULL},
    [OP_Gelu] = {float_gelu, NULL},
    [OP_Mish] = {float_mish, NULL},
    [OP_HardSigmoid] = {float_hard_sigmoid, NULL},
    [OP_HardSwish] = {float_hard_swish, NULL},
    [OP_Softplus] = {float_softplus, NULL},
    [OP_Softsign] = {float_softsign, NULL},
    [OP_Swish] = {float_swish, NULL},
    [OP_Sin] = {float_sin, NULL},
    [OP_Cos] = {float_cos, NULL},
    [OP_Tan] = {float_tan, NULL},
    [OP_Asin] = {float_asin, NULL},
    [OP_Acos] = {float_acos, NULL},
    [OP_Atan] = {float_atan, NULL},
    [OP_Sinh] = {float_sinh, NULL},
    [OP_Cosh] = {float_cosh, NULL},
    [OP_Asinh] = {float_asinh, NULL},
    [OP_Acosh] = {float_acosh, NULL},
    [OP_Atanh] = {float_atanh, NULL},
    [OP_Shrink] = {float_shrink, NULL},
    [OP_IsNaN] = {float_is_nan, NULL},
    [OP_IsInf] = {float_is_inf, NULL},
    [OP_Not] = {NULL, int_not},
    [OP_BitwiseNot] = {NULL, int_bitwise_not},
};

static UnaryParameters unary_parameters(const Node *node) {
  UnaryParameters parameters = {0};
  if (op_has_attribute(node->op, ATTR_alpha)) parameters.alpha = node_float(node, ATTR_alpha);
  if (op_has_attribute(node->op, ATTR_beta)) parameters.beta = node_float(node, ATTR_beta);
  if (op_has_attribute(node->op, ATTR_gamma)) parameters.beta = node_float(node, ATTR_gamma);
  if (op_has_attribute(node->op, ATTR_lambd)) parameters.lambd = node_float(node, ATTR_lambd);
  if (op_has_attribute(node->op, ATTR_bias)) parameters.bias = node_float(node, ATTR_bias);
  if (op_has_attribute(node->op, ATTR_detect_negative)) {
    parameters.negative = node_int(node, ATTR_detect_negative) != 0;
    parameters.positive = node_int(node, ATTR_detect_positive) != 0;
  }
  if (op_has_attribute(node->op, ATTR_approximate))
    parameters.approximate = node_word(node, ATTR_approximate) == GELU_tanh;
  return parameters;
}

const char *ref_unary(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  Tensor *y = outputs[0];
  UnaryParameters parameters = unary_parameters(node);
  const struct UnaryOp *op = &UNARY_OPS[node->op->kind];
  bool floating = dtype_is_float(x->dtype);
  if (floating ? !op->on_float : !op->on_int) bug("no reference for %s of %s", node->op->name, dtype_name(x->dtype));
  for (int64_t i = 0, n = tensor_count(x); i < n; i++) {
    if (floating)
      tensor_set(y, i, op->on_float(tensor_get(x, i), &parameters));
    else
      tensor_set_int(y, i, wrap_int(y->dtype, (int64_t)op->on_int(tensor_get_wide(x, i))));
  }
  return NULL;
}

/* min(max(x, low), high): where the bounds cross, the upper one wins, as in ONNX and ONNX Runtime. */
const char *ref_clip(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *low = node->n_inputs > 1 ? inputs[1] : NULL;
  const Tensor *high = node->n_inputs > 2 ? inputs[2] : NULL;
  if ((low && tensor_count(low) != 1) || (high && tensor_count(high) != 1)) return "the bounds of Clip must be scalars";
  bool floating = dtype_is_float(x->dtype);
  for (int64_t i = 0, n = tensor_count(x); i < n; i++) {
    if (floating) {
      double value = tensor_get(x, i);
      if (low && value < tensor_get(low, 0)) value = tensor_get(low, 0);
      if (high && value > tensor_get(high, 0)) value = tensor_get(high, 0);
      tensor_set(outputs[0], i, value);
    } else {
      Wide value = tensor_get_wide(x, i);
      if (low && value < tensor_get_wide(low, 0)) value = tensor_get_wide(low, 0);
      if (high && value > tensor_get_wide(high, 0)) value = tensor_get_wide(high, 0);
      tensor_set_int(outputs[0], i, (int64_t)value);
    }
  }
  return NULL;
}

/* Towards zero. ONNX leaves NaN and what does not fit undefined; ONNX Runtime gives what x86 converts to: the least
 * integer of i32 or i64, and for narrower types the lowest bytes of a conversion to those. An u64 from 2^63 on is
 * converted without its highest bit. */
static int64_t float_to_int(DType to, double value) {
  bool high = to == RNNCC_U64 && value >= 0x1p63, wide = to == RNNCC_I64 || to == RNNCC_U64 || to == RNNCC_U32;
  double limit = wide ? 0x1p63 : 0x1p31, rest = high ? value - 0x1p63 : value;
  bool fits = rest > (wide ? -0x1p63 - 0x1p11 : -0x1p31 - 1) && rest < limit;
  int64_t converted = fits ? (int64_t)rest : wide ? INT64_MIN : INT32_MIN;
  return wrap_int(to, high ? (int64_t)((uint64_t)converted ^ UINT64_C(1) << 63) : converted);
}

/* Rounded once: not by way of double. */
static void int_to_float(Tensor *y, int64_t i, Wide value) {
  if (y->dtype == RNNCC_F32)
    tensor_set(y, i, (double)(float)value);
  else
    tensor_set(y, i, (double)value);
}

const char *ref_cast(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  (void)node;
  const Tensor *x = inputs[0];
  Tensor *y = outputs[0];
  bool from_float = dtype_is_float(x->dtype), to_float = dtype_is_float(y->dtype);
  for (int64_t i = 0, n = tensor_count(x); i < n; i++) {
    if (x->dtype == y->dtype)
      copy_element(y, i, x, i);
    else if (from_float && to_float)
      tensor_set(y, i, tensor_get(x, i));
    else if (to_float)
      int_to_float(y, i, tensor_get_wide(x, i));
    else if (from_float && y->dtype == RNNCC_BOOL)
      tensor_set_int(y, i, tensor_get(x, i) != 0);
    else if (from_float)
      tensor_set_int(y, i, float_to_int(y->dtype, tensor_get(x, i)));
    else
      tensor_set_int(y, i, wrap_int(y->dtype, tensor_get_int(x, i)));
  }
  return NULL;
}
