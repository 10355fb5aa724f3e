/* SPDX-License-Identifier: MIT */
/* `rnncc inspect --explain=int8`: which nodes multiply, add, move and compare integers of 8 bits, and why each other
 * does not. */
#ifndef RNNCC_EXPLAIN_INT8_H
#define RNNCC_EXPLAIN_INT8_H

#include "ir/graph.h"
#include "support/text.h"

typedef struct Int8Rows Int8Rows;

/* A row for each node of numbers, those of bodies behind their node. needs: fuse_quantised, before decompose. */
Int8Rows *int8_rows(Graph *graph);

/* The table, and what part of the multiply-adds is of 8 bits. needs: decompose, after int8_rows of the same graph. */
Text int8_table(Graph *graph, const Int8Rows *rows);

#endif
