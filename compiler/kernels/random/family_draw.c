/* SPDX-License-Identifier: MIT */
/* Random numbers (expand/draw.h), each a function of its place. */
#include "expand/draw.h"
#include "ir/family.h"
#include "program/build.h"

/* Of a number: a quarter of a block of words, and what is made of it. */
enum { UNIFORM_OPERATIONS = 20, NORMAL_OPERATIONS = 60 };

static void lower_draw(Program *program, Node *node) {
  const Value *y = node->outputs[0];
  bool normal = node_word(node, ATTR_mode) == DRAW_normal;
  KernelSpec *spec = kernel_spec(program, "draw");
  kernel_type(spec, "T", y->dtype);
  kernel_knob(spec, "NORMAL", normal);
  Call *call = kernel_call(program, node, spec);
  operand_value(call, "nth", node->inputs[0], READ);
  operand_value(call, "key", node->inputs[1], READ);
  operand_float(call, "from", node_float(node, ATTR_start));
  operand_float(call, "step", node_float(node, ATTR_scale));
  operand_value(call, "y", y, WRITE);
  operand_dim(call, "n", value_count_dim(program->graph, y, 0, y->rank));
  call_flops_of(call, normal ? NORMAL_OPERATIONS : UNIFORM_OPERATIONS, y);
  call_touches(call, y);
}

const KernelFamily family_draw = {.lower = lower_draw};
