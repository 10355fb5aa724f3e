/* SPDX-License-Identifier: MIT */
/*
 * Which element-wise nodes become one kernel. Nodes of a group have one output shape, are connected, and no value
 * leaves the group and comes back through another node: so the group can be one node.
 */
#ifndef RNNCC_CHAIN_GROUPS_H
#define RNNCC_CHAIN_GROUPS_H

#include "ir/graph.h"
#include "kernels/elementwise/chain.h"

typedef struct ChainGroup {
  int n_nodes, n_members; /* a node is a member, and so is each one of its epilogue */
  Node *nodes[MAX_CHAIN_MEMBERS];
  int n_inputs; /* inputs from outside that are not literals */
  Value *inputs[MAX_CHAIN_OPERANDS];
} ChainGroup;

/* Groups of two nodes and more, or of one that reads or writes bytes. needs: dense ids. */
typedef struct ChainGroups {
  int n, capacity;
  ChainGroup **groups;
} ChainGroups;
ChainGroups find_chain_groups(Graph *graph);

/* Has it a node for whose sake tensors get a blocked layout? */
bool graph_seeks_blocks(const Graph *graph);

/* x * x and no more, which takes no longer than to read it. */
bool is_square(const Node *node);

/* Is it element-wise, and so is its epilogue, in ops that a chain can have? */
bool may_chain(const Node *node);

#endif
