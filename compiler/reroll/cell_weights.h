/* SPDX-License-Identifier: MIT */
/* A cell's weights as the recurrent op takes them. */
#ifndef RNNCC_CELL_WEIGHTS_H
#define RNNCC_CELL_WEIGHTS_H

#include "reroll/cell.h"

/* Gates in ONNX's order; G of them, H units, I columns of x. */
typedef struct CellWeights {
  float *input;  /* W [G*H, I] */
  float *hidden; /* R [G*H, H]; zeros where the cell has no h */
  float *bias;   /* B [2*G*H], Wb then Rb: all in Wb, except the terms that r multiplies in a GRU */
} CellWeights;

CellWeights cell_weights(Arena *arena, const Cell *cell);

/* Could the two be steps of one network? Where one has no h, the rest must agree. */
bool cells_share_weights(const Cell *a, const Cell *b);

#endif
