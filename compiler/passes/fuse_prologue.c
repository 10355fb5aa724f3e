/* SPDX-License-Identifier: MIT */
/*
 * Batch normalisation by constants, and the element-wise nodes after it, move into the kernel that reads their result,
 * if its family takes them and nothing else reads them. For networks that normalise before the convolution (DenseNet),
 * where each reader of a tensor normalises it differently.
 */
#include "ir/family.h"
#include "passes.h"
#include "passes/channel_affine.h"

/* Each reader repeats the work of the chain, so it must be short. */
enum { MAX_PROLOGUE = 4 };

typedef struct Chain {
  int n;
  Node *nodes[MAX_PROLOGUE]; /* the last first */
} Chain;

static bool is_constant_norm(Graph *graph, const Node *node) {
  ChannelAffine affine;
  return is_op(node, OP_BatchNormalization) && channel_affine_of(graph, node, &affine);
}

/* Is the node element-wise, with constants as its other inputs? */
static bool is_step(const Node *node) {
  for (int i = 1; i < node->n_inputs; i++)
    if (node->inputs[i] && !value_is_constant(node->inputs[i])) return false;
  return node->op->layout == LAYOUT_OBLIVIOUS && node->n_outputs == 1;
}

/* The nodes from a batch normalisation to the host's first input. False if there are none. */
static bool find_chain(Graph *graph, const UseList *uses, const Node *host, Chain *chain) {
  const Node *reader = host;
  const Value *value = host->inputs[0];
  for (chain->n = 0; chain->n < MAX_PROLOGUE; reader = chain->nodes[chain->n++]) {
    Node *node = value ? value->producer : NULL;
    if (!node || uses->single[value->id] != reader || node->n_epilogue) return false;
    if (!host->op->family->takes_prologue(graph, host, node)) return false;
    chain->nodes[chain->n] = node;
    if (is_constant_norm(graph, node)) {
      chain->n++;
      return true;
    }
    if (!is_step(node)) return false;
    value = node->inputs[0];
  }
  return false;
}

static void fuse(Graph *graph, Node *host, const Chain *chain) {
  host->n_prologue = chain->n;
  host->prologue = ARENA_ARRAY(graph->arena, Node *, chain->n);
  for (int i = 0; i < chain->n; i++) {
    Node *node = chain->nodes[chain->n - 1 - i];
    host->prologue[i] = node;
    graph->nodes[node->id] = NULL;
    node->outputs[0]->producer = NULL;
  }
  host->inputs[0] = host->prologue[0]->inputs[0];
}

/* needs: simplify, dense ids; before fuse_epilogue. keeps: types and shapes of what remains. */
void fuse_prologue(Graph *graph) {
  UseList uses = graph_uses(graph);
  for (int n = 0; n < graph->n_nodes; n++) {
    Chain chain;
    Node *host = graph->nodes[n];
    bool able = host->op->family && host->op->family->takes_prologue && host->n_inputs > 0;
    if (able && find_chain(graph, &uses, host, &chain)) fuse(graph, host, &chain);
  }
  graph_close_gaps(graph);
}
