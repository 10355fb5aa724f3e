/* SPDX-License-Identifier: MIT */
/* A recurrent node as its reference kernels see it, forward and backward: tensors, extents, and where rows stand. */
#ifndef RNNCC_REFERENCE_RECURRENT_H
#define RNNCC_REFERENCE_RECURRENT_H

#include "ir/cell.h"
#include "reference/kernels.h"

typedef struct Network {
  const CellKind *cell;
  const Tensor *x, *w, *r, *b, *lengths, *h0, *c0, *p; /* NULL: absent */
  Tensor *y, *y_h, *y_c, *saved;                       /* of the layer itself; NULL: absent */
  int64_t T, B, I, H;
  int directions;
  bool reverse; /* the only direction is the reverse one */
  bool batch_first, linear_before_reset, input_forget;
  double clip; /* infinity: none */
  Activation activations[2 * MAX_ACTIVATIONS];
} Network;

/* Reads the layer's own inputs and attributes; returns NULL or what is wrong with them. */
const char *read_network(const Node *node, const Tensor *const *inputs, Network *net);

double activation_apply(const Activation *activation, double x);

int64_t sequence_length(const Network *net, int64_t batch);

/* The time of a step of a sequence. */
int64_t step_time(const Network *net, int64_t d, int64_t length, int64_t step);

/* Offsets of a row: of a state, [D, B, H], or [B, D, H] where the batch comes first; of Y, [T, D, B, H] or
 * [B, T, D, H]; of S, [T, B, D, n*H] or
 * [B, T, D, n*H]; of X, [T, B, I] or [B, T, I]. */
int64_t state_row(const Network *net, int64_t d, int64_t batch);
int64_t output_row(const Network *net, int64_t d, int64_t batch, int64_t t);
int64_t saved_row(const Network *net, int64_t d, int64_t batch, int64_t t);
int64_t input_row(const Network *net, int64_t batch, int64_t t);

#endif
