/* SPDX-License-Identifier: MIT */
/* Element-wise ops of one input, Clip and Cast. NaN propagates wherever ONNX Runtime lets it. */
#include <math.h>

#include "reference/kernels.h"
#include "small_float.h"

/* An op's attributes, read once: their meaning is the op's. */
typedef struct UnaryParameters {
  double alpha, beta;      /* Selu: beta is gamma */
  double lambd, bias;      /* Shrink */
  bool approximate;        /* Gelu by tanh */
  bool negative, positive; /* the infinities of IsInf */
} UnaryParameters;

typedef double UnaryFloat(double x, const UnaryParameters *parameters);
typedef Wide UnaryInt(Wide x);

static double gelu(double x, bool by_tanh) {
  if (!by_tanh) return 0.5 * x * (1 + erf(x * M_SQRT1_2));
  return 0.5 * x * (1 + tanh(M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x)));
}

#define UNARY_FLOAT(op, expression)                                                                                    \
  static double float_##op(double x, const UnaryParameters *p) {                                                       \
    (void)p;                                                                                                           \
    return expression;                                                                                                 \
  }
#define UNARY_INT(op, expression)                                                                                      \
  static Wide int_##op(Wide x) { return expression; }
#include "reference/elementwise.def"

static UnaryFloat *const on_float[N_OPS] = {
#define UNARY_FLOAT(op, expression) [OP_##op] = float_##op,
#include "reference/elementwise.def"
};
static UnaryInt *const on_int[N_OPS] = {
#define UNARY_INT(op, expression) [OP_##op] = int_##op,
#include "reference/elementwise.def"
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
  UnaryFloat *float_op = on_float[node->op->kind];
  UnaryInt *int_op = on_int[node->op->kind];
  bool floating = dtype_is_float(x->dtype);
  if (floating ? !float_op : !int_op) bug("no reference for %s of %s", node->op->name, dtype_name(x->dtype));
  for (int64_t i = 0, n = tensor_count(x); i < n; i++) {
    if (floating)
      tensor_set(y, i, float_op(tensor_get(x, i), &parameters));
    else
      tensor_set_int(y, i, wrap_int(y->dtype, (int64_t)int_op(tensor_get_wide(x, i))));
  }
  return NULL;
}

/* min(max(x, low), high): where the bounds cross, the upper one wins, as in ONNX and ONNX Runtime. */
const char *ref_clip(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *low = optional_input(node, inputs, 1);
  const Tensor *high = optional_input(node, inputs, 2);
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

static void set_coded(const Node *node, Tensor *y, int64_t i, double value) {
  static const int ROUNDING[] = {[POWERS_up] = POWER_UP, [POWERS_down] = POWER_DOWN, [POWERS_nearest] = POWER_NEAREST};
  f64_to_coded(y->dtype, y->data, i, value, node_int(node, ATTR_saturate) != 0,
               ROUNDING[node_word(node, ATTR_round_mode)]);
}

/* Rounded once: not by way of double. */
static void int_to_float(Tensor *y, int64_t i, Wide value) {
  if (y->dtype == RNNCC_F32)
    tensor_set(y, i, (double)(float)value);
  else
    tensor_set(y, i, (double)value);
}

const char *ref_cast(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  Tensor *y = outputs[0];
  bool from_float = dtype_is_float(x->dtype), to_float = dtype_is_float(y->dtype);
  for (int64_t i = 0, n = tensor_count(x); i < n; i++) {
    if (x->dtype == y->dtype)
      copy_element(y, i, x, i);
    else if (dtype_is_coded(y->dtype))
      set_coded(node, y, i, from_float ? tensor_get(x, i) : (double)tensor_get_wide(x, i));
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
