/* SPDX-License-Identifier: MIT */
/* Einsum's parsed equation: the label of each axis of each operand and of the result. */
#ifndef RNNCC_EINSUM_H
#define RNNCC_EINSUM_H

#include "ir/graph.h"

/* A label is a letter, in ASCII's order, or an axis of the ellipsis, which align at their last. */
enum { EINSUM_LETTERS = 52, EINSUM_LABELS = EINSUM_LETTERS + MAX_RANK };

typedef struct EinsumTerm {
  int n;
  int labels[MAX_RANK];
} EinsumTerm;

typedef struct Einsum {
  int n_terms;
  EinsumTerm *terms;                 /* one an operand */
  EinsumTerm output;                 /* every label once */
  const Dim *extents[EINSUM_LABELS]; /* NULL: unused. An operand's own extent may be 1, which is broadcast. */
} Einsum;

/* False after an error. needs: the inputs' shapes. */
bool read_einsum(Graph *graph, const Node *node, Einsum *einsum);

#endif
