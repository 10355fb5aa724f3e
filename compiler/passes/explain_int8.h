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

/* Finds which of them are left to kernels of integers. needs: decompose; simplify removes more. */
void int8_settle(const Graph *graph, Int8Rows *rows);

/* The table, and what part of the multiply-adds is of 8 bits. needs: int8_settle, and choose_precision, which says so
 * of recurrent layers. */
Text int8_table(Graph *graph, const Int8Rows *rows);

#endif
