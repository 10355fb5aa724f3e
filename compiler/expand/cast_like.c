/* SPDX-License-Identifier: MIT */
#include "expand/expansion.h"

void expand_cast_like(const Formula *f, const Node *node, Value **results) {
  Value *x = node->inputs[0];
  const Attribute attributes[] = {attribute_type(ATTR_to, node->outputs[0]->dtype),
                                  attribute_one_of(ATTR_round_mode, node_word(node, ATTR_round_mode)),
                                  attribute_int(ATTR_saturate, node_int(node, ATTR_saturate))};
  results[0] = x->dtype == node->outputs[0]->dtype ? x : build_op(f, OP_Cast, 1, &x, 1, 3, attributes)->outputs[0];
}
