/* SPDX-License-Identifier: MIT */
/* The C text of a chain: operands are i0, i1, ..., results of members v0, v1, ..., all vectors or masks. */
#include "kernels/elementwise/chain.h"
#include "kernels/elementwise/elementwise.h"
#include "support/diagnostics.h"

static const char *type_of(const Value *value) { return value->dtype == RNNCC_BOOL ? "vmask" : "vec"; }

/* The name or literal of the value, which is a result of the first `n` members or an input of the chain. */
static const char *name_of(Graph *graph, const Node *chain, int n, const Value *value) {
  for (int m = 0; m < n; m++)
    if (chain->members[m]->outputs[0] == value) return arena_format(graph->arena, "v%d", m);
  if (elementwise_is_literal(value)) return elementwise_literal(graph->arena, value);
  for (int k = 0; k < chain->n_inputs; k++)
    if (chain->inputs[k] == value) return arena_format(graph->arena, "i%d", k);
  bug("a chain has no such operand");
}

static void add_member(Graph *graph, Text *body, const Node *chain, int m) {
  const Node *member = chain->members[m];
  const char *inputs[3] = {NULL, NULL, NULL};
  for (int k = 0; k < member->n_inputs && k < 3; k++)
    if (member->inputs[k]) inputs[k] = name_of(graph, chain, m, member->inputs[k]);
  text_add(body, "%s v%d = %s;\n  ", type_of(member->outputs[0]), m, elementwise_chained(graph->arena, member, inputs));
}

const char *chain_body(Graph *graph, const Node *chain, const ChainAccess *access) {
  Text body = text_new(graph->arena);
  for (int k = 0; k < chain->n_inputs; k++)
    text_add(&body, "%s i%d = %s;\n  ", type_of(chain->inputs[k]), k, access->load(graph, chain, k));
  for (int m = 0; m < chain->n_members; m++) add_member(graph, &body, chain, m);
  for (int k = 0; k < chain->n_outputs; k++)
    text_add(&body, "%s%s", k ? "\n  " : "",
             access->store(graph, chain, k, name_of(graph, chain, chain->n_members, chain->outputs[k])));
  return body.data;
}
