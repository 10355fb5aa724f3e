/* SPDX-License-Identifier: MIT */
/*
 * Frameworks stack the gates of LSTM and GRU in different orders. The IR has ONNX's order only, so the rows of constant
 * W [D, G*H, I], R [D, G*H, H] and B [D, 2*G*H] are permuted here. Peepholes P are always in ONNX's order i, o, f: no
 * other framework has them.
 *
 *              LSTM   GRU
 *   ONNX       iofc   zrh
 *   PyTorch    ifgo   rzn
 *   Keras      ifco   zrh
 */
#include <string.h>

#include "ir/cell.h"
#include "ir/mutable.h"
#include "load/model.h"

/* from[g]: where ONNX's gate g stands in `order`. False if it is no permutation of the letters. */
static bool read_permutation(const CellKind *cell, const char *order, int from[MAX_GATES]) {
  if (strlen(order) != (size_t)cell->gates) return false;
  for (int g = 0; g < cell->gates; g++) {
    const char *found = strchr(order, cell->letters[g]);
    if (!found && g == cell->gates - 1) found = strchr(order, cell->candidate);
    if (!found) return false;
    from[g] = (int)(found - order);
  }
  return true;
}

/* `blocks` groups of `n` gates of `bytes` each. */
static void permute(const char *given, char *permuted, int64_t blocks, int n, size_t bytes, const int *from) {
  for (int64_t block = 0; block < blocks; block++, given += (size_t)n * bytes)
    for (int g = 0; g < n; g++, permuted += bytes) memcpy(permuted, given + (size_t)from[g] * bytes, bytes);
}

/* The same by rows. */
static const Reordered *reordering(Arena *arena, Value *given, int n, const int *from, bool bias) {
  int64_t rows = dim_value(given->shape[1]), gate_rows = rows / n / (bias ? 2 : 1);
  int64_t *list = ARENA_ARRAY(arena, int64_t, rows);
  for (int64_t row = 0; row < rows; row++) {
    int64_t gate = row / gate_rows, half = gate / n * n;
    list[row] = (half + from[gate - half]) * gate_rows + row % gate_rows;
  }
  Reordered *reordered = ARENA_NEW(arena, Reordered);
  *reordered = (Reordered){given, rows, list};
  return reordered;
}

/* The constant with its gates permuted; the shape rule reports shapes that do not fit. */
static Value *permuted_constant(ModelReader *reader, Value *value, bool bias, int n, const int *from) {
  if (value->rank != (bias ? 2 : 3)) return NULL;
  int64_t shape[3] = {0};
  for (int axis = 0; axis < value->rank; axis++) shape[axis] = dim_value(value->shape[axis]);
  int64_t stacks = shape[0] * (bias ? 2 : 1), rows = bias ? shape[1] / 2 : shape[1];
  if (rows % n != 0 || (bias && shape[1] % 2 != 0)) return NULL;
  size_t gate_bytes = (size_t)(rows / n * (bias ? 1 : shape[2])) * dtype_size(value->dtype);
  char *data = arena_array(reader->arena, (size_t)(stacks * n), gate_bytes);
  permute(value->data, data, stacks, n, gate_bytes, from);
  Value *permuted = graph_constant(reader->graph, value->name, value->dtype, value->rank, shape, data);
  permuted->where = value->where;
  permuted->is_weight = value->is_weight;
  permuted->reordered = reordering(reader->arena, value, n, from, bias);
  return permuted;
}

bool normalise_gate_order(ModelReader *reader, Node *node, Json order) {
  static const char *const NAMES[] = {[INPUT_W] = "W", [INPUT_R] = "R", [INPUT_B] = "B"};
  const CellKind *cell = cell_kind(node->op->kind);
  int from[MAX_GATES];
  if (!cell || cell->gates == 1) {
    error_at(json_where(order), EXIT_INVALID, "%s has no gate order; LSTM and GRU have", node->op->name);
    return false;
  }
  if (!read_permutation(cell, json_text(order), from)) {
    error_at(json_where(order), EXIT_INVALID,
             "expected an order of %s's gates \"%s\" (also written %c for %c), found \"%s\"", node->op->name,
             cell->letters, cell->candidate, cell->letters[cell->gates - 1],
             short_name(reader->arena, json_text(order)));
    return false;
  }
  if (!strcmp(json_text(order), cell->letters)) return true;
  bool good = true;
  for (int i = INPUT_W; i <= INPUT_B && i < node->n_inputs; i++) {
    if (!node->inputs[i]) continue;
    if (!value_is_constant(node->inputs[i])) {
      error_at(json_where(order), EXIT_UNSUPPORTED, "a gate order needs constant weights; %s is computed", NAMES[i]);
      good = false;
      continue;
    }
    Value *permuted = permuted_constant(reader, node->inputs[i], i == INPUT_B, cell->gates, from);
    if (permuted) node->inputs[i] = permuted;
  }
  return good;
}
