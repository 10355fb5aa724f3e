/* SPDX-License-Identifier: MIT */
/* The layout transform that insert_layout_transforms adds. */
#include "ir/family.h"
#include "kernels/move/channel_copy.h"

static void lower_node(Program *program, Node *node) {
  const Value *x = node->inputs[0], *y = node->outputs[0];
  lower_channel_copy(program, node, (ChannelRange){x, 0}, (ChannelRange){y, 0}, dim_value(x->shape[1]));
}

const KernelFamily family_layout = {.lower = lower_node};
