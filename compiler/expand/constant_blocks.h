/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_CONSTANT_BLOCKS_H
#define RNNCC_CONSTANT_BLOCKS_H

#include "ir/graph.h"

/* The matrix B of a MatMulNBits, [K, N] in f32, which says what integers its numbers are (ir/narrow.h), if those have 4
 * or 8 bits less their zero points. NULL: it is no constant. */
Value *constant_blocks(Graph *graph, const Node *node);

#endif
