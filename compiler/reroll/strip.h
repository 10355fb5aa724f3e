/* SPDX-License-Identifier: MIT */
/*
 * A strip is what one gate, or one input of a product, is of a value: some neighbouring columns (the last axis), of
 * all rows or of one time step. Whether an exporter cut before or after the sum, the product or the activation, the
 * strip of the result leads back to strips of the operands, so that the matcher sees one shape of cell.
 *
 * Rows are the axes but the last. Those of constant extent 1 count for nothing: [1, B, H] has the rows of [B, H].
 */
#ifndef RNNCC_STRIP_H
#define RNNCC_STRIP_H

#include "ir/graph.h"

typedef struct Strip {
  Value *value;
  int64_t first, count; /* columns */
  int axis;             /* the leading axis of which only `step` is meant; -1: all of it */
  int64_t step;
} Strip;

/* The nodes that a match has passed, except those that work on all time steps at once: they are no part of one cell. A
 * failed attempt cuts it back to where it began. */
typedef struct Trail {
  Arena *arena;
  int n, capacity;
  Node **nodes;
} Trail;
/* The match goes from the strip to the operands of the node that made it. */
void strip_passed(const Strip *strip, Trail *trail);

/* All columns and rows. False for a value without columns of a known number. */
bool strip_whole(Value *value, Strip *strip);
bool strip_is_whole(const Strip *strip);
bool strip_same(const Strip *a, const Strip *b);

/* The number of rows; NULL if they are more than one axis that is not 1. */
const Dim *strip_rows(Graph *graph, const Strip *strip);
/* The columns of a constant whose rows are all equal; NULL if it is not one. A single number stands for any `count`. */
const float *strip_numbers(const Strip *strip);
bool strip_is_zero(const Strip *strip);

/* Where the strip's elements come from: back through Slice, Split, Concat, Gather, views, and from a recurrent op's
 * last state to the last step of its Y. `trail` may be NULL. */
Strip strip_origin(Graph *graph, Strip strip, Trail *trail);

/* The strips, at their origin, whose columns side by side are the strip's: what lies behind every Concat of columns.
 * Returns how many, at most `most`; 0 if there are more. The trail gets the ways to those Concats, not those beyond. */
int strip_parts(Graph *graph, Strip strip, Trail *trail, int most, Strip *parts);

/* The part of an element-wise node's operand that makes this part of its output. False where the operand's rows are
 * repeated, unless it is constant. */
bool strip_operand(Graph *graph, const Strip *strip, Value *operand, Strip *part);

#endif
