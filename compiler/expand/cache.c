/* SPDX-License-Identifier: MIT */
/* A cache of keys or values, into which a block is written: TensorScatter. */
#include "expand/expansion.h"

void expand_tensor_scatter(const Formula *f, const Node *node, Value **results) {
  Value *past = node->inputs[0], *block = node->inputs[1], *first = node_input(node, 2);
  int axis = normal_axis(node_int(node, ATTR_axis), past->rank);
  Value *places = places_along(f, block, axis);
  if (first) places = plus(f, with_axis(f, counted_from_start(f, first), 1), places);
  if (node_word(node, ATTR_mode) == CACHE_circular) places = apply2(f, OP_Mod, places, build_extent(f, past, axis));
  if (!first) places = with_axis(f, places, 0);
  for (int k = 1; k < axis; k++) places = with_axis(f, places, 1);
  for (int k = axis + 1; k < past->rank; k++) places = with_axis(f, places, k);
  Value *inputs[] = {past, apply2(f, OP_Expand, places, apply(f, OP_Shape, block)), block};
  const Attribute attribute = attribute_int(ATTR_axis, axis);
  results[0] = build_op(f, OP_ScatterElements, 3, inputs, 1, 1, &attribute)->outputs[0];
}
