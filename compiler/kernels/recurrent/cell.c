/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/cell.h"

#include "kernels/gemm/gemm.h"
#include "machine/targets.h"
#include "support/numbers.h"

static const CellInfo cells[] = {
    /* name, product_gates, phases, functions, buffers, widest, widest_few, widest_alone */
    [CELL_RNN] = {"rnn", 1, 1, 1, 2, 4, 2, 4},
    [CELL_GRU_AFTER] = {"gru_after", 3, 1, 3, 2, 1, 1, 2},
    [CELL_GRU_BEFORE] = {"gru_before", 2, 2, 3, 4, 2, 1, 2},
    [CELL_LSTM] = {"lstm", 4, 1, 5, 3, 1, 1, 2},
};

const CellInfo *cell_info(Cell cell) { return &cells[cell]; }

Cell cell_of(const Node *node) {
  OpKind kind = layer_cell(node->op->kind)->op;
  if (kind == OP_RNN) return CELL_RNN;
  if (kind == OP_LSTM) return CELL_LSTM;
  return node_int(node, ATTR_linear_before_reset) ? CELL_GRU_AFTER : CELL_GRU_BEFORE;
}

int cell_unit_vectors(Cell cell, const Target *target, int64_t hidden) {
  int vectors = target_has_few_registers(target) ? cells[cell].widest_few : cells[cell].widest;
  while (ceil_div(hidden, target->lanes) % vectors) vectors /= 2;
  return vectors;
}

/* One row needs no registers for the sums of others. The wider its panel, the fewer elements it loads beside the
 * weights: while these are in L1, loads take longest. Two workers should not have to share a panel for it. */
int cell_unit_vectors_alone(Cell cell, const Target *target, int64_t hidden, int workers) {
  int vectors = cell_unit_vectors(cell, target, hidden), wide = cells[cell].widest_alone;
  if (!target_has_few_registers(target)) return vectors;
  int64_t all = ceil_div(hidden, target->lanes);
  while (wide > vectors && (all % wide || (workers > 1 && all > wide && all / wide % 2))) wide /= 2;
  return max_int(wide, vectors);
}

/* Rows that feed enough multiply-adds with each load of a panel's vector. */
enum { MANY_ROWS = 4 };
int cell_panel_parts(const Target *target, int product_vectors, int64_t batch) {
  bool splits = product_vectors % 2 == 0 && batch > register_rows(target, product_vectors);
  return splits && register_rows(target, product_vectors) < MANY_ROWS ? 2 : 1;
}

int cell_partial_sums(const Target *target, int product_vectors) {
  int sums = target_has_few_registers(target) ? 12 : 16, parts = 1;
  while (2 * parts * product_vectors <= sums && parts < 8) parts *= 2;
  return parts;
}
