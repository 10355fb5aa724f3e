/* SPDX-License-Identifier: MIT */
/*
 * Element-wise ops of two and more inputs, broadcast. Integers wrap around; a division by zero is reported. f32 results
 * are computed in double and rounded once, which for + - * / gives exactly the f32 operation's result.
 */
#include <math.h>

#include "reference/kernels.h"

typedef double BinaryFloat(double a, double b);
typedef Wide BinaryInt(Wide a, Wide b);

static double float_add(double a, double b) { return a + b; }
static double float_sub(double a, double b) { return a - b; }
static double float_mul(double a, double b) { return a * b; }
static double float_div(double a, double b) { return a / b; }
static double float_prelu(double x, double slope) { return x < 0 ? slope * x : x; }
static double float_equal(double a, double b) { return a == b; }
static double float_less(double a, double b) { return a < b; }
static double float_less_equal(double a, double b) { return a <= b; }
static double float_greater(double a, double b) { return a > b; }
static double float_greater_equal(double a, double b) { return a >= b; }
/* NaN propagates from either side, as in ONNX Runtime. */
static double float_max(double a, double b) { return isnan(a) || isnan(b) ? a + b : a > b ? a : b; }
static double float_min(double a, double b) { return isnan(a) || isnan(b) ? a + b : a < b ? a : b; }

/* The sign of the divisor, as Python. Only integers may ask for it in ONNX, but it is as well defined here. */
static double float_mod(double a, double b) {
  double rest = fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static Wide int_add(Wide a, Wide b) { return a + b; }
static Wide int_sub(Wide a, Wide b) { return a - b; }
static Wide int_mul(Wide a, Wide b) { return wrap_mul((int64_t)a, (int64_t)b); }
static Wide int_div(Wide a, Wide b) { return a / b; }
static Wide int_fmod(Wide a, Wide b) { return a % b; }
static Wide int_mod(Wide a, Wide b) {
  Wide rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* Modulo 2^64; a negative exponent gives the quotient towards zero, so only 1 and -1 leave anything. */
static Wide int_pow(Wide base, Wide exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    return base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  }
  int64_t power = 1, square = (int64_t)base;
  for (; exponent; exponent >>= 1, square = wrap_mul(square, square))
    if (exponent & 1) power = wrap_mul(power, square);
  return power;
}

static Wide int_and(Wide a, Wide b) { return a && b; }
static Wide int_or(Wide a, Wide b) { return a || b; }
static Wide int_xor(Wide a, Wide b) { return !a != !b; }
static Wide int_bitwise_and(Wide a, Wide b) { return a & b; }
static Wide int_bitwise_or(Wide a, Wide b) { return a | b; }
static Wide int_bitwise_xor(Wide a, Wide b) { return a ^ b; }
static Wide int_equal(Wide a, Wide b) { return a == b; }
static Wide int_less(Wide a, Wide b) { return a < b; }
static Wide int_less_equal(Wide a, Wide b) { return a <= b; }
static Wide int_greater(Wide a, Wide b) { return a > b; }
static Wide int_greater_equal(Wide a, Wide b) { return a >= b; }
static Wide int_max(Wide a, Wide b) { return a > b ? a : b; }
static Wide int_min(Wide a, Wide b) { return a < b ? a : b; }
/* Past the type's width nothing is left: no operand has more than 64 bits. */
static Wide int_shift_left(Wide a, Wide b) { return b < 64 ? (Wide)((uint64_t)a << b) : 0; }
static Wide int_shift_right(Wide a, Wide b) { return b < 64 ? a >> b : 0; }

typedef struct BinaryOp {
  BinaryFloat *on_float;
  BinaryInt *on_int;
  bool divides; /* integers: the second operand must not be zero */
} BinaryOp;

static const BinaryOp BINARY_OPS[N_OPS] = {
    [OP_Add] = {float_add, int_add, false},
    [OP_Sub] = {float_sub, int_sub, false},
    [OP_Mul] = {float_mul, int_mul, false},
    [OP_Div] = {float_div, int_div, true},
    [OP_Mod] = {float_mod, int_mod, true},
    [OP_Pow] = {pow, int_pow, false},
    [OP_PRelu] = {float_prelu, NULL, false},
    [OP_And] = {NULL, int_and, false},
    [OP_Or] = {NULL, int_or, false},
    [OP_Xor] = {NULL, int_xor, false},
    [OP_BitwiseAnd] = {NULL, int_bitwise_and, false},
    [OP_BitwiseOr] = {NULL, int_bitwise_or, false},
    [OP_BitwiseXor] = {NULL, int_bitwise_xor, false},
    [OP_BitShift] = {NULL, int_shift_right, false},
    [OP_Equal] = {float_equal, int_equal, false},
    [OP_Less] = {float_less, int_less, false},
    [OP_LessOrEqual] = {float_less_equal, int_less_equal, false},
    [OP_Greater] = {float_greater, int_greater, false},
    [OP_GreaterOrEqual] = {float_greater_equal, int_greater_equal, false},
    [OP_Max] = {float_max, int_max, false},
    [OP_Min] = {float_min, int_min, false},
    [OP_Sum] = {float_add, NULL, false},
};

/* Mod with fmod = 1: the sign of the dividend. */
static const BinaryOp FMOD = {fmod, int_fmod, true};
static const BinaryOp LEFT = {NULL, int_shift_left, false};

static const BinaryOp *binary_op(const Node *node, DType dtype) {
  if (is_op(node, OP_Mod) && node_int(node, ATTR_fmod)) return &FMOD;
  if (is_op(node, OP_BitShift) && node_word(node, ATTR_direction) == SHIFT_LEFT) return &LEFT;
  const BinaryOp *op = &BINARY_OPS[node->op->kind];
  if (dtype_is_float(dtype) ? op->on_float != NULL : op->on_int != NULL) return op;
  bug("no reference for %s of %s", node->op->name, dtype_name(dtype));
}

static void store(Tensor *to, int64_t index, bool floating, double as_float, Wide as_int) {
  if (floating && dtype_is_float(to->dtype))
    tensor_set(to, index, as_float);
  else
    tensor_set_int(to, index, floating ? as_float != 0 : wrap_int(to->dtype, (int64_t)as_int));
}

/* An integer to the power of a float, by way of f64 and towards zero. */
static void pow_to_float(const Tensor *a, int64_t a_index, const Tensor *b, int64_t b_index, Tensor *out, int64_t i) {
  double power = pow((double)tensor_get_wide(a, a_index), tensor_get(b, b_index));
  bool fits = power >= -0x1p63 && power < 0x1p63;
  tensor_set_int(out, i, wrap_int(out->dtype, fits ? (int64_t)power : INT64_MIN));
}

/* out = op(a, b); out may be a itself where their shapes agree. */
static const char *apply(const BinaryOp *op, const Tensor *a, const Tensor *b, Tensor *out) {
  bool floating = dtype_is_float(a->dtype);
  Walk walk = walk_over(out->rank, out->shape);
  if (!walk_add_broadcast(&walk, a) || !walk_add_broadcast(&walk, b)) return "operands do not broadcast";
  int64_t i = 0;
  for (bool on = walk_begin(&walk); on; on = walk_next(&walk), i++) {
    if (floating) {
      store(out, i, true, op->on_float(tensor_get(a, walk.offset[0]), tensor_get(b, walk.offset[1])), 0);
      continue;
    }
    if (dtype_is_float(b->dtype)) {
      pow_to_float(a, walk.offset[0], b, walk.offset[1], out, i);
      continue;
    }
    Wide left = tensor_get_wide(a, walk.offset[0]), right = tensor_get_wide(b, walk.offset[1]);
    if (op->divides && right == 0) return "integer division by zero";
    store(out, i, false, 0, op->on_int(left, right));
  }
  return NULL;
}

const char *ref_binary(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  return apply(binary_op(node, inputs[0]->dtype), inputs[0], inputs[1], outputs[0]);
}

/* Operand by operand into the output, as ONNX Runtime does: Sum rounds to f32 after each. */
const char *ref_variadic(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  Tensor *out = outputs[0];
  Walk walk = walk_over(out->rank, out->shape);
  if (!walk_add_broadcast(&walk, inputs[0])) return "operands do not broadcast";
  int64_t i = 0;
  for (bool on = walk_begin(&walk); on; on = walk_next(&walk)) copy_element(out, i++, inputs[0], walk.offset[0]);
  const BinaryOp *op = binary_op(node, out->dtype);
  const char *wrong = NULL;
  for (int k = 1; k < node->n_inputs && !wrong; k++) wrong = apply(op, out, inputs[k], out);
  return wrong;
}

const char *ref_where(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  (void)node;
  Walk walk = walk_over(outputs[0]->rank, outputs[0]->shape);
  for (int k = 0; k < 3; k++)
    if (!walk_add_broadcast(&walk, inputs[k])) return "operands do not broadcast";
  int64_t i = 0;
  for (bool on = walk_begin(&walk); on; on = walk_next(&walk), i++) {
    int from = tensor_get_int(inputs[0], walk.offset[0]) ? 1 : 2;
    copy_element(outputs[0], i, inputs[from], walk.offset[from]);
  }
  return NULL;
}
