/* SPDX-License-Identifier: MIT */
/*
 * Element-wise ops of two and more inputs, broadcast. Integers wrap around; a division by zero is reported. f32 results
 * are computed in double and rounded once, which for + - * / gives exactly the f32 operation's result.
 */
#include <math.h>

#include "reference/kernels.h"

typedef double BinaryFloat(double a, double b);
typedef Wide BinaryInt(Wide a, Wide b);

/* The sign of the divisor, as Python. Only integers may ask for it in ONNX, but it is as well defined here. */
static double float_modulo(double a, double b) {
  double rest = fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static Wide int_modulo(Wide a, Wide b) {
  Wide rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* Modulo 2^64; a negative exponent gives the quotient towards zero, so only 1 and -1 leave anything. */
static Wide int_power(Wide base, Wide exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    return base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  }
  int64_t power = 1, square = (int64_t)base;
  for (; exponent; exponent >>= 1, square = wrap_mul(square, square))
    if (exponent & 1) power = wrap_mul(power, square);
  return power;
}

static Wide int_remainder(Wide a, Wide b) { return a % b; }
static Wide int_shift_left(Wide a, Wide b) { return b >= 0 && b < 64 ? (Wide)((uint64_t)a << b) : 0; }

#define BINARY_FLOAT(op, expression)                                                                                   \
  static double float_##op(double a, double b) { return expression; }
#define BINARY_INT(op, expression)                                                                                     \
  static Wide int_##op(Wide a, Wide b) { return expression; }
#include "reference/elementwise.def"

static BinaryFloat *const on_float[N_OPS] = {
#define BINARY_FLOAT(op, expression) [OP_##op] = float_##op,
#include "reference/elementwise.def"
};
static BinaryInt *const on_int[N_OPS] = {
#define BINARY_INT(op, expression) [OP_##op] = int_##op,
#include "reference/elementwise.def"
};

typedef struct BinaryOp {
  BinaryFloat *on_float;
  BinaryInt *on_int;
  bool divides; /* integers: the second operand must not be zero */
} BinaryOp;

/* Mod with fmod = 1 has the sign of the dividend. */
static BinaryOp binary_op(const Node *node, DType dtype) {
  OpKind kind = node->op->kind;
  BinaryOp op = {on_float[kind], on_int[kind], kind == OP_Div || kind == OP_Mod};
  if (kind == OP_Mod && node_int(node, ATTR_fmod)) op = (BinaryOp){fmod, int_remainder, true};
  if (kind == OP_BitShift && node_word(node, ATTR_direction) == SHIFT_LEFT) op.on_int = int_shift_left;
  if (dtype_is_float(dtype) ? op.on_float != NULL : op.on_int != NULL) return op;
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
  BinaryOp op = binary_op(node, inputs[0]->dtype);
  return apply(&op, inputs[0], inputs[1], outputs[0]);
}

/* Operand by operand into the output, as ONNX Runtime does: Sum rounds to f32 after each. */
const char *ref_variadic(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  Tensor *out = outputs[0];
  Walk walk = walk_over(out->rank, out->shape);
  if (!walk_add_broadcast(&walk, inputs[0])) return "operands do not broadcast";
  int64_t i = 0;
  for (bool on = walk_begin(&walk); on; on = walk_next(&walk)) copy_element(out, i++, inputs[0], walk.offset[0]);
  BinaryOp op = binary_op(node, out->dtype);
  const char *wrong = NULL;
  for (int k = 1; k < node->n_inputs && !wrong; k++) wrong = apply(&op, out, inputs[k], out);
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
