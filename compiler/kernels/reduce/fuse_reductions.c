/* SPDX-License-Identifier: MIT */
/*
 * A reduction of what element-wise nodes compute becomes one node with them: the elements are combined as they are
 * computed, and never stored. So v . tanh(q + k) has no tensor of queries, keys and units, and a distance none of
 * differences.
 */
#include "ir/family.h"
#include "kernels/elementwise/chain_groups.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/reduce/reduce.h"
#include "layout/blocked.h"
#include "machine/machine.h"
#include "machine/targets.h"
#include "passes.h"
#include "shapes/shape.h"

/* A worker alone takes less time for so many elements than two take to meet. */
enum { FEW_ELEMENTS = 2048 };

/* ---- one node of two ---- */

typedef struct Operands {
  int n;
  Value *list[MAX_REDUCED_OPERANDS];
  bool fit;
} Operands;

static void add_operands(Operands *operands, const Node *node, int n, const Value *without) {
  for (int k = 0; k < n; k++) {
    Value *value = node->inputs[k];
    bool known = !value || value == without || elementwise_is_literal(value);
    for (int i = 0; i < operands->n; i++) known |= operands->list[i] == value;
    if (known) continue;
    operands->fit &= operands->n < MAX_REDUCED_OPERANDS;
    if (operands->fit) operands->list[operands->n++] = value;
  }
}

static bool is_reduced_chain(const Node *node) { return node->op == &op_reduced_chain; }

/* The operands of the kernel, then the literals of its epilogue. */
static void set_inputs(Graph *graph, Node *node, const Operands *operands) {
  int own = is_reduced_chain(node) ? node_own_inputs(node) : node->n_inputs, more = node->n_inputs - own;
  Value **inputs = ARENA_ARRAY(graph->arena, Value *, operands->n + more);
  for (int k = 0; k < operands->n; k++) inputs[k] = operands->list[k];
  for (int k = 0; k < more; k++) inputs[operands->n + k] = node->inputs[own + k];
  node->inputs = inputs;
  node->n_inputs = operands->n + more;
}

bool fuse_into_reduction(Graph *graph, Node *node, const Node *maker) {
  int own = is_reduced_chain(node) ? node_own_inputs(node) : 0;
  int made = maker->n_members ? maker->n_members : 1 + maker->n_epilogue;
  Operands operands = {.fit = made + node->n_members <= MAX_CHAIN_MEMBERS};
  add_operands(&operands, node, own, maker->outputs[0]);
  add_operands(&operands, maker, maker->n_inputs, NULL);
  if (!operands.fit || operands.n == 0) return false;
  Node chain = {.members = ARENA_ARRAY(graph->arena, Node *, made + node->n_members)};
  chain_add_members(graph, &chain, maker);
  for (int m = 0; m < node->n_members; m++) chain.members[chain.n_members++] = node->members[m];
  if (!is_reduced_chain(node)) node->reduction = arena_copy(graph->arena, node, sizeof *node);
  set_inputs(graph, node, &operands);
  node->op = &op_reduced_chain;
  node->n_attributes = 0;
  node->members = chain.members;
  node->n_members = chain.n_members;
  return true;
}

/* ---- where it gains ---- */

/* Workers share results, not the elements of one: where there are few, all must compute their elements before. */
static bool has_work_for_all(const Graph *graph, const Node *reduction, const Value *result) {
  const Value *x = reduction->inputs[0];
  bool rows = x->rank == 0 || result->rank == 0 || !same_dim(x->shape[x->rank - 1], result->shape[result->rank - 1]);
  double results = value_optimum(result), shares = rows ? results : results / graph->config->target->lanes;
  return value_optimum(x) <= FEW_ELEMENTS || shares >= graph->config->machine->cores;
}

/* A kernel of element-wise nodes that computes the value for the reader alone; NULL: there is none. */
static const Node *maker_of(const UseList *uses, const Node *reader, const Value *value) {
  const Node *node = value->producer;
  if (!node || node->n_outputs != 1 || uses->single[value->id] != reader) return NULL;
  return node->op == &op_chain || may_chain(node) ? node : NULL;
}

static bool gains(const Graph *graph, bool blocks, const Node *reduction, const Node *reader, const Node *maker) {
  const Value *made = maker->outputs[0];
  if (!shapes_agree(made, reduction->inputs[0]))
    return false; /* else rows would be computed once for each repetition */
  if (blocks && chain_runs_blocked(made, node_own_inputs(maker), maker->inputs)) return false;
  return is_square(maker) || has_work_for_all(graph, reduction, reader->outputs[0]);
}

static void fuse_inputs(Graph *graph, const UseList *uses, bool blocks, Node *reader) {
  const Node *reduction = is_reduced_chain(reader) ? reader->reduction : reader;
  int own = is_reduced_chain(reader) ? node_own_inputs(reader) : 1;
  for (int k = 0; k < own; k++) {
    const Node *maker = maker_of(uses, reader, reader->inputs[k]);
    if (!maker || !gains(graph, blocks, reduction, reader, maker)) continue;
    if (!fuse_into_reduction(graph, reader, maker)) continue;
    graph->nodes[maker->id] = NULL;
    fuse_inputs(graph, uses, blocks, reader);
    return;
  }
}

/* needs: fuse_chains; dense ids. keeps: types and shapes of what remains; results but for the order of sums. breaks:
 * that every reduction is one of ops.def. */
void fuse_reductions(Graph *graph) {
  UseList uses = graph_uses(graph);
  bool blocks = graph_seeks_blocks(graph);
  for (int n = 0; n < graph->n_nodes; n++) {
    Node *node = graph->nodes[n];
    if (node && (is_reduced_chain(node) || reduces_elements(node))) fuse_inputs(graph, &uses, blocks, node);
  }
  graph_close_gaps(graph);
}
