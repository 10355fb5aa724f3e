/* SPDX-License-Identifier: MIT */
/*
 * A chain that makes bytes of bytes has 256 results. Where computing them takes longer than loads, it becomes a table
 * of them, and its kernel looks each byte up (templates/map_bytes.c).
 */
#ifndef RNNCC_BYTE_TABLE_H
#define RNNCC_BYTE_TABLE_H

#include "ir/graph.h"

/* From the node `first`, which reads bytes, to the last that writes bytes, each read by the next alone: that last node,
 * if they are to be a chain with a table; else NULL. Then no other node may be in their chain. */
const Node *table_end(const Graph *graph, const UseList *uses, const Node *first);

/* Has the chain one input and one output, of as many bytes, and does it take longer than loads of them? */
bool chain_is_table(const Graph *graph, const Node *chain);

/* u8 [256]: the result of each byte, by the reference kernels of the chain's members. */
Value *chain_table(Graph *graph, const Node *chain);

#endif
