/* SPDX-License-Identifier: MIT */
#include "expand/expansion.h"

void expand_cast_like(const Formula *f, const Node *node, Value **results) {
  results[0] = cast(f, node->inputs[0], node->outputs[0]->dtype);
}
