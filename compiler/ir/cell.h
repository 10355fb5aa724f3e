/* SPDX-License-Identifier: MIT */
/* What RNN, GRU and LSTM are: cells.def as a table. */
#ifndef RNNCC_CELL_H
#define RNNCC_CELL_H

#include "ir/op.h"

/* Inputs of the operators, in ONNX's order; C and P of LSTM alone. */
enum { INPUT_X, INPUT_W, INPUT_R, INPUT_B, INPUT_LENGTHS, INPUT_H, INPUT_C, INPUT_P };

/* Gates by their place: GRU_z, LSTM_c, ... */
#define GATE(op, letter) op##_##letter,
#define CELL(op, states, gates, ...) enum { gates op##_GATES };
#include "ir/cells.def"

enum { MAX_GATES = 4, MAX_ACTIVATIONS = 3 /* of a direction */ };

typedef enum ActivationKind {
#define ACTIVATION(name, ...) ACTIVATION_##name,
#include "ir/cells.def"
  N_ACTIVATIONS
} ActivationKind;

typedef struct CellKind {
  OpKind op;
  int states, gates;
  const char *letters; /* of the gates */
  char candidate;      /* PyTorch's letter for the last of them */
  int activations;     /* of a direction */
  ActivationKind defaults[MAX_ACTIVATIONS];
} CellKind;

const CellKind *cell_kind(OpKind op); /* NULL: it is not recurrent */

typedef struct Activation {
  ActivationKind kind;
  float alpha, beta; /* 0 where it takes none */
} Activation;

/* N_ACTIVATIONS: there is none of that name. Case does not matter, as in ONNX Runtime. */
ActivationKind activation_find(const char *name);

/* Those of all directions, forward first. needs: shape_rnn has checked the node. */
void read_activations(const Node *node, Activation activations[2 * MAX_ACTIVATIONS]);

#endif
