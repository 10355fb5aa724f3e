/* SPDX-License-Identifier: MIT */
/*
 * To and from quantised numbers: y = saturate(round(x / scale) + zero point), x = (y - zero point) * scale, the scale
 * and the zero point of the whole tensor or of an axis. All of it in f32, which holds every number of 16 bits.
 */
#include "expand/quantised.h"

Value *along_axis(const Formula *f, Value *parameters, int64_t axis, int rank) {
  const Dim *shape[MAX_RANK];
  if (!parameters) return NULL;
  if (parameters->rank != 1) return parameters;
  int own = value_max_count(parameters) == 1 ? 0 : rank - normal_axis(axis, rank);
  for (int i = 0; i < own; i++) shape[i] = i ? dim_const(f->graph->dims, 1) : parameters->shape[0];
  return build_reshape(f, parameters, own, shape);
}

Value *less_zero_point(const Formula *f, Value *x, Value *zero) {
  Value *number = cast(f, x, RNNCC_F32);
  return zero ? minus(f, number, cast(f, zero, RNNCC_F32)) : number;
}

Value *quantised(const Formula *f, Value *x, Value *zero, DType to) {
  Value *y = apply(f, OP_Round, x);
  if (zero) y = plus(f, y, cast(f, zero, RNNCC_F32));
  return cast(f, apply3(f, OP_Clip, y, number(f, y, (double)dtype_min(to)), number(f, y, (double)dtype_max(to))), to);
}

Value *repeated(const Formula *f, Value *parameters, const Value *x, int64_t axis, int64_t block) {
  int along = normal_axis(axis, x->rank);
  int64_t length = dim_value(x->shape[along]), *at = ARENA_ARRAY(f->graph->arena, int64_t, length);
  for (int64_t i = 0; i < length; i++) at[i] = i / block;
  return gathered(f, parameters, integers(f, (int)length, at), along);
}

/* Scales or zero points of a QuantizeLinear or DequantizeLinear. NULL: there are none. */
static Value *parameters_of(const Formula *f, const Node *node, int input) {
  Value *parameters = node_input(node, input);
  const Value *x = node->inputs[0];
  int64_t axis = node_int(node, ATTR_axis), block = node_int(node, ATTR_block_size);
  return parameters && block ? repeated(f, parameters, x, axis, block) : along_axis(f, parameters, axis, x->rank);
}

/* To a float of 4 or 8 bits: Cast rounds it, and saturates. */
static Value *quantised_float(const Formula *f, const Node *node, Value *x, Value *zero) {
  Value *y = zero ? plus(f, x, cast(f, zero, RNNCC_F32)) : x;
  const Attribute attributes[] = {attribute_type(ATTR_to, node->outputs[0]->dtype),
                                  attribute_int(ATTR_saturate, node_int(node, ATTR_saturate))};
  return build_op(f, OP_Cast, 1, &y, 1, 2, attributes)->outputs[0];
}

void expand_quantize(const Formula *f, const Node *node, Value **results) {
  DType to = node->outputs[0]->dtype, precision = node_dtype(node, ATTR_precision);
  Value *scale = cast(f, parameters_of(f, node, 1), RNNCC_F32), *zero = parameters_of(f, node, 2);
  Value *y = over(f, cast(f, node->inputs[0], RNNCC_F32), scale);
  if (precision != RNNCC_NONE) y = cast(f, cast(f, y, precision), RNNCC_F32);
  results[0] = dtype_is_float(to) ? quantised_float(f, node, y, zero) : quantised(f, y, zero, to);
}

/* A difference of i32 may need more bits than f32 has: it is taken in i32. */
void expand_dequantize(const Formula *f, const Node *node, Value **results) {
  Value *x = node->inputs[0], *scale = cast(f, parameters_of(f, node, 1), RNNCC_F32);
  Value *zero = parameters_of(f, node, 2);
  if (x->dtype == RNNCC_I32 && zero) {
    x = minus(f, x, zero);
    zero = NULL;
  }
  results[0] = cast(f, times(f, less_zero_point(f, x, zero), scale), node->outputs[0]->dtype);
}

void dynamically_quantised(const Formula *f, Value *x, Value *results[3]) {
  const Node *node = build_op(f, OP_DynamicQuantizeLinear, 1, &x, 3, 0, NULL);
  for (int i = 0; i < 3; i++) results[i] = node->outputs[i];
}
