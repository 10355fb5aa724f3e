/* SPDX-License-Identifier: MIT */
/* Quantised recurrent layers of com.microsoft. */
#include "load/onnx/contrib.h"

/* One number a direction, or one for each column, so that it broadcasts to weights [D, K, 4 * H]. */
static Value *along_weights(OnnxReader *reader, const Draft *draft, Value *numbers) {
  static const int64_t whole[] = {1, 2}, columns[] = {1};
  int rank = draft_rank(reader, draft, numbers);
  const int64_t *axes = rank == 1 ? whole : columns;
  return draft_node(reader, draft, "Unsqueeze", 2,
                    (Value *[]){numbers, draft_ints(reader, draft, rank == 1 ? 2 : 1, axes)});
}

/* Weights [D, K, 4 * H] with their scale and zero point, as ONNX's in f32, [D, 4 * H, K]. */
static Value *in_floats(OnnxReader *reader, const Draft *draft, Value *weights, int scale) {
  static int64_t perm[] = {0, 2, 1};
  const Attribute turned = {.name = "perm", .kind = ATTRIBUTE_INTS, .count = 3, .ints = perm};
  Value *numbers = draft_cast(reader, draft, weights, RNNCC_F32), *zero = draft_input(draft, scale + 1);
  if (zero) {
    zero = draft_cast(reader, draft, along_weights(reader, draft, zero), RNNCC_F32);
    numbers = draft_node(reader, draft, "Sub", 2, (Value *[]){numbers, zero});
  }
  Value *steps = along_weights(reader, draft, draft->inputs[scale]);
  Value *product = draft_node(reader, draft, "Mul", 2, (Value *[]){numbers, steps});
  return draft_node_with(reader, draft, "Transpose", 1, &product, 1, &turned, NULL);
}

/* ONNX Runtime rounds inputs and hidden states to 8 bits in each step; here they stay in f32. */
bool adapt_dynamic_lstm(OnnxReader *reader, Draft *draft) {
  enum { W = 1, R = 2, W_SCALE = 8, R_SCALE = 10, N_OF_LSTM = 8 };
  for (int i = W; i <= R; i++) {
    int scale = i == W ? W_SCALE : R_SCALE;
    int rank = draft_input(draft, scale) ? draft_rank(reader, draft, draft->inputs[scale]) : -1;
    if (!draft_input(draft, i) || (rank != 1 && rank != 2))
      return contrib_refuse(reader, draft, "weights without a scale of each direction, or of each column,");
  }
  draft_set_input(reader, draft, W, in_floats(reader, draft, draft->inputs[W], W_SCALE));
  draft_set_input(reader, draft, R, in_floats(reader, draft, draft->inputs[R], R_SCALE));
  draft->n_inputs = N_OF_LSTM;
  return adapt_recurrent(reader, draft);
}
