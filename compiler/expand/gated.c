/* SPDX-License-Identifier: MIT */
/* Gated activations, and causal convolutions whose past is a state. */
#include "expand/expansion.h"
#include "shapes/shape.h"

static Value *swish(const Formula *f, Value *x, double alpha) {
  const Attribute attribute = attribute_float(ATTR_alpha, alpha);
  return build_op(f, OP_Swish, 1, &x, 1, 1, &attribute)->outputs[0];
}

void expand_swiglu(const Formula *f, const Node *node, Value **results) {
  results[0] = times(f, swish(f, node->inputs[0], node_float(node, ATTR_alpha)), node->inputs[1]);
}

/* Zeros stand before a first block. */
static Value *with_past(const Formula *f, Value *x, Value *past, int64_t taps) {
  if (past) return build_concat(f, 2, (Value *const[]){past, x}, 2);
  const int64_t pads[] = {0, 0, taps - 1, 0, 0, 0};
  const Attribute attribute = attribute_ints(f->graph->arena, ATTR_pads, 6, pads);
  return build_op(f, OP_Pad, 1, &x, 1, 1, &attribute)->outputs[0];
}

/* The last taps - 1 elements; none of one tap. */
static Value *last_elements(const Formula *f, Value *x, int64_t taps) {
  const Range last = {2, 1 - taps, INT64_MAX}, none = {2, 0, 0};
  return build_slice(f, x, 1, taps > 1 ? &last : &none);
}

void expand_causal_conv(const Formula *f, const Node *node, Value **results) {
  Value *x = node->inputs[0], *w = node->inputs[1], *bias = node_input(node, 2);
  int64_t taps = dim_value(w->shape[2]);
  Value *whole = with_past(f, x, node_input(node, 3), taps);
  const Attribute channels = attribute_int(ATTR_group, dim_value(x->shape[1]));
  Value *y = build_op(f, OP_Conv, bias ? 3 : 2, (Value *const[]){whole, w, bias}, 1, 1, &channels)->outputs[0];
  results[0] = node_word(node, ATTR_activation) == CAUSAL_none ? y : swish(f, y, 1);
  if (node_output(node, 1)) results[1] = last_elements(f, whole, taps);
}
