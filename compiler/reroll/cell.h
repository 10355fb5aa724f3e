/* SPDX-License-Identifier: MIT */
/*
 * One step of a recurrent network, as it was found in the graph: h' = cell(x, h) or (h', c') = cell(x, h, c), where
 * every gate is a sum over the same inputs, one of which is h and the others together x.
 */
#ifndef RNNCC_REROLL_CELL_H
#define RNNCC_REROLL_CELL_H

#include "ir/cell.h"
#include "reroll/affine.h"

enum { MAX_CELL_INPUTS = 8, NO_INPUT = -1 };

typedef struct Cell Cell;
struct Cell {
  const CellKind *kind;
  bool relu;         /* RNN: Relu, not Tanh */
  bool reset_after;  /* GRU: linear_before_reset */
  bool input_forget; /* LSTM: f = 1 - i, and gate f is empty */
  int64_t units;     /* H */

  Value *h_next, *c_next; /* c: of LSTM only */
  Strip h, c;             /* of GRU: h is set by the formula; of LSTM: c is. Others follow from `hidden` */
  int n_inputs;
  Strip inputs[MAX_CELL_INPUTS];
  /* Which input is h. NO_INPUT: none so far, or none at all in a first step, whose h is zero and was folded away. */
  int hidden;

  Affine gates[MAX_GATES]; /* products: of `inputs` only, all of them in every gate */
  Affine reset_bias;       /* of GRU with reset_after: the addends of what r multiplies */

  int n_nodes;
  Node **nodes; /* those that compute it from its inputs */

  Cell *previous, *next; /* the steps before and after it that have its weights */
};

/* The cell of this operator whose h' is `value`, its nodes those of the trail then; NULL if there is none. An RNN is
 * any Tanh or Relu of a sum of products. */
Cell *match_cell(Graph *graph, Trail *trail, Value *value, OpKind op);

/* The product's place among the cell's inputs. */
int cell_input(const Cell *cell, const Product *product);
/* Could this input be h? */
bool cell_may_be_hidden(const Cell *cell, int input);
/* The columns of x. */
int64_t cell_columns(const Cell *cell);

#endif
