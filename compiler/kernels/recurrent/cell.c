/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/cell.h"

#include "ir/op.h"
#include "machine/targets.h"
#include "support/numbers.h"

static const CellInfo cells[] = {
    [CELL_RNN] = {.name = "rnn",
                  .letters = "h",
                  .gates = 1,
                  .activations = 1,
                  .defaults = {"Tanh"},
                  .product_gates = 1,
                  .phases = 1,
                  .functions = 1,
                  .buffers = 2,
                  .widest = 4,
                  .widest_few = 2},
    [CELL_GRU_AFTER] = {.name = "gru_after",
                        .letters = "zrh",
                        .gates = 3,
                        .activations = 2,
                        .defaults = {"Sigmoid", "Tanh"},
                        .product_gates = 3,
                        .phases = 1,
                        .functions = 3,
                        .buffers = 2,
                        .widest = 1,
                        .widest_few = 1},
    [CELL_GRU_BEFORE] = {.name = "gru_before",
                         .letters = "zrh",
                         .gates = 3,
                         .activations = 2,
                         .defaults = {"Sigmoid", "Tanh"},
                         .product_gates = 2,
                         .phases = 2,
                         .functions = 3,
                         .buffers = 4,
                         .widest = 2,
                         .widest_few = 1},
    [CELL_LSTM] = {.name = "lstm",
                   .letters = "iofc",
                   .gates = 4,
                   .activations = 3,
                   .defaults = {"Sigmoid", "Tanh", "Tanh"},
                   .product_gates = 4,
                   .phases = 1,
                   .functions = 5,
                   .buffers = 3,
                   .widest = 1,
                   .widest_few = 1},
};

const CellInfo *cell_info(Cell cell) { return &cells[cell]; }

Cell cell_of(const Node *node) {
  if (is_op(node, OP_RNN)) return CELL_RNN;
  if (is_op(node, OP_LSTM)) return CELL_LSTM;
  return node_int(node, ATTR_linear_before_reset) ? CELL_GRU_AFTER : CELL_GRU_BEFORE;
}

int cell_unit_vectors(Cell cell, const Target *target, int64_t hidden) {
  enum { MANY_REGISTERS = 32 };
  int vectors = target->vector_registers >= MANY_REGISTERS ? cells[cell].widest : cells[cell].widest_few;
  while (ceil_div(hidden, target->lanes) % vectors) vectors /= 2;
  return vectors;
}
