/* SPDX-License-Identifier: MIT */
/* The cells that the kernels tell apart, and their constants. */
#ifndef RNNCC_RECURRENT_CELL_H
#define RNNCC_RECURRENT_CELL_H

#include "ir/cell.h"
#include "knobs.h"

typedef int Cell; /* CELL_RNN, ... of templates/knobs.h */

typedef struct CellInfo {
  const char *name;       /* "gru_after" */
  int product_gates;      /* gates of a step's first product with R; the others depend on its result */
  int phases;             /* products with R of a step, one after the other */
  int functions;          /* exp, tanh or sigmoid of a unit and step */
  int buffers;            /* BUFFERS of the template */
  int widest, widest_few; /* most UNIT_VECTORS on a target with many registers, and with few */
  int widest_alone;       /* of one sample, with few registers */
} CellInfo;

Cell cell_of(const Node *node);
const CellInfo *cell_info(Cell cell);

/* The most vectors of units in a panel that divide the layer's without padding. */
int cell_unit_vectors(Cell cell, const Target *target, int64_t hidden);
/* The same of one sample, by at most so many workers. */
int cell_unit_vectors_alone(Cell cell, const Target *target, int64_t hidden, int workers);

/* In how many parts a panel of so many vectors is multiplied by a batch, at most `batch` samples: 2 where a whole panel
 * leaves registers for the sums of few rows. */
int cell_panel_parts(const Target *target, int product_vectors, int64_t batch);

/* Partial sums of one sample: enough independent ones to hide an addition's latency. */
int cell_partial_sums(const Target *target, int product_vectors);

#endif
