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
  OpKind op, training, gradient;
  int states, gates;
  const char *letters; /* of the gates */
  char candidate;      /* PyTorch's letter for the last of them */
  int activations;     /* of a direction */
  ActivationKind defaults[MAX_ACTIVATIONS];
} CellKind;

const CellKind *cell_kind(OpKind op);  /* of RNN, GRU, LSTM; NULL: it is another operator */
const CellKind *layer_cell(OpKind op); /* also of RNNTraining, RNNGradient, ... */

/* Is it RNNTraining, ...? RNNGradient, ...? */
bool op_is_layer_training(OpKind op);
bool op_is_layer_gradient(OpKind op);

/* What S, the last output of GRUTraining and LSTMTraining, has for a step, a sample and a unit: the gates as activated,
 * in ONNX's order; then of LSTM the cell state; of GRU the reset gate times the hidden state before, or with
 * linear_before_reset the product that the reset gate multiplies, its bias included. Zeros beyond a sample's length. S
 * is [T, B, D, n*H], or of layout 1 [B, T, D, n*H]. RNN has none, n is 0: its gate is Y. */
static inline int cell_saved(const CellKind *kind) { return kind->gates > 1 ? kind->gates + 1 : 0; }

/* Inputs of RNNGradient, ... behind those of the layer, of which there are so many; S where the cell has one. */
typedef enum GradientInput { GRADIENT_Y, GRADIENT_S, GRADIENT_DY, GRADIENT_DY_H, GRADIENT_DY_C } GradientInput;
static inline int layer_inputs(const CellKind *kind) { return kind->states > 1 ? INPUT_P + 1 : INPUT_H + 1; }
static inline int gradient_input(const CellKind *kind, GradientInput input) {
  return layer_inputs(kind) + (int)input - (!cell_saved(kind) && input > GRADIENT_S);
}

/* Outputs of RNNGradient, ...: gradients of these inputs of the layer. */
enum { GRADIENT_X, GRADIENT_W, GRADIENT_R, GRADIENT_B, GRADIENT_H, GRADIENT_C, GRADIENT_P };

typedef struct Activation {
  ActivationKind kind;
  float alpha, beta; /* 0 where it takes none */
} Activation;

/* N_ACTIVATIONS: there is none of that name. Case does not matter, as in ONNX Runtime. */
ActivationKind activation_find(const char *name);

/* Those of all directions, forward first; returns how many. needs: shape_rnn has checked the node. */
int read_activations(const Node *node, Activation activations[2 * MAX_ACTIVATIONS]);

/* Does the value of the function tell its derivative? Not of an Elu of negative alpha, which is not monotonous. */
bool activation_has_slope(const Activation *activation);

#endif
