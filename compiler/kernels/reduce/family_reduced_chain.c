/* SPDX-License-Identifier: MIT */
/* Reductions of what element-wise nodes compute: templates/reduce.c, whose elements are never stored. */
#include "ir/family.h"
#include "kernels/elementwise/chain.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/reduce/reduce.h"

const OpInfo op_reduced_chain = {
    .kind = OP_ReducedChain,
    .name = "ReducedChain",
    .min_inputs = 1,
    .max_inputs = -1,
    .min_outputs = 1,
    .max_outputs = 1,
    .attributes = (const AttributeSpec[]){{0}},
    .layout = LAYOUT_DEPENDENT,
    .family = &family_reduced_chain,
};

static const char *load(Graph *graph, const Node *node, int k) {
  Broadcast nest = reduction_nest(graph, node->reduction, node_own_inputs(node), node->inputs);
  return chain_row_load(graph, node->inputs[k], k, nest.moves[k][nest.rank - 1]);
}

static void lower_reduced_chain(Program *program, Node *node) {
  Text body = text_new(program->arena);
  chain_compute(program->graph, &body, node, load);
  text_add(&body, "return v%d;", node->n_members - 1);
  const char *epilogue = node->n_epilogue ? elementwise_epilogue_body(program->arena, node) : NULL;
  lower_reduction(program, node, node->reduction, node_own_inputs(node), node->inputs, body.data, epilogue);
}

const KernelFamily family_reduced_chain = {.takes_epilogue = elementwise_follows, .lower = lower_reduced_chain};
