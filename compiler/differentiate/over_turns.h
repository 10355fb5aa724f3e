/* SPDX-License-Identifier: MIT */
/*
 * A weight that a loop's body reads has a gradient in each turn, and their sum is its own. Where that of a turn is a
 * sum over its rows, the whole sum is one over the rows of all turns: of a matrix product A' D, with the rows of A
 * [M,K] and of D [M,N] of all turns one below the other; of a recurrent layer, with the turns' samples as one batch.
 * That has many rows where each turn has few, and no turn reads and writes the sum. For that all turns' rows are kept,
 * where a turn's are no larger than its gradients.
 */
#ifndef RNNCC_OVER_TURNS_H
#define RNNCC_OVER_TURNS_H

#include "differentiate/rule.h"
#include "ir/cell.h"

/* A value of the body, whose slices of all turns are rows of one. */
typedef struct TurnRows {
  Value *value; /* NULL: none */
  int output;   /* of the loop back, which collects it; -1: it is an input that is scanned */
} TurnRows;

enum {
  MAX_TURN_ROWS = INPUT_P + 1 + (int)GRADIENT_DY_C + 1, /* LSTMGradient has the most inputs */
  MAX_TURN_GRADIENTS = GRADIENT_P + 1,
};

/* A product of two matrices, or what a layer's gradient computes for its weights. */
typedef struct TurnPart {
  const Node *layer;                 /* RNNGradient, ...; NULL: a product */
  double alpha;                      /* of the product */
  TurnRows rows[MAX_TURN_ROWS];      /* A and D, or by input of the layer; none where every turn has the same */
  int gradients[MAX_TURN_GRADIENTS]; /* by output: of which input of the loop it is a part of the gradient; -1: none */
} TurnPart;

typedef struct TurnParts {
  int count, capacity;
  TurnPart *list;
} TurnParts;

/* How the turns of a value can be kept. */
typedef enum Kept {
  KEPT_BY_COLLECTING,
  KEPT_ANYWAY,  /* the loop scans them */
  KEPT_OUTSIDE, /* every turn has the same */
  KEPT_NEVER,   /* turns have other shapes */
} Kept;

typedef Kept HowKept(const Value *value, const void *context);

/* Takes such parts of the gradient d, of this input of the loop, to the list. Returns what is left of d; NULL: nothing.
 */
Value *take_turn_parts(const Formula *body, TurnParts *parts, int input, Value *d, HowKept *how, const void *context);

/* The gradients over all turns, by output. all: by the part's rows, the slices of all turns; of a layer also its inputs
 * of which every turn has the same, from outside. */
Value **turn_part_gradients(const Formula *f, const TurnPart *part, Value *const *all);

#endif
