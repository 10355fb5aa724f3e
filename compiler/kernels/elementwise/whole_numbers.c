/* SPDX-License-Identifier: MIT */
#include "kernels/elementwise/whole_numbers.h"

#include <math.h>

#include "ir/op.h"
#include "ir/tensor.h"

enum { MAX_DEPTH = 8, MAX_COUNT = 1 << 14 };

static bool constant_is_whole(const Value *value) {
  if (value_count(value) > MAX_COUNT) return false;
  for (int64_t i = 0; i < value_count(value); i++) {
    double number = value_element(value, i);
    if (number < rint(number) || number > rint(number) || isnan(number)) return false;
  }
  return true;
}

static bool is_whole_number(const Value *value, int depth);

/* Of the node's result after some steps of its epilogue, of which each reads the one before. */
static bool result_is_whole(const Node *host, int steps, int depth) {
  static const bool rounds[N_OPS] = {[OP_Ceil] = true, [OP_Floor] = true, [OP_Round] = true};
  static const bool keeps[N_OPS] = {
      [OP_Add] = true, [OP_Clip] = true, [OP_Max] = true, [OP_Min] = true, [OP_Relu] = true, [OP_Sub] = true};
  const Node *node = steps ? host->epilogue[steps - 1] : host;
  if (rounds[node->op->kind]) return true;
  if (is_op(node, OP_Cast) && dtype_is_integer(node->inputs[0]->dtype)) return true;
  if (!keeps[node->op->kind] || depth == MAX_DEPTH) return false;
  for (int k = steps ? 1 : 0; k < node_own_inputs(node); k++)
    if (node->inputs[k] && !is_whole_number(node->inputs[k], depth + 1)) return false;
  return !steps || result_is_whole(host, steps - 1, depth + 1);
}

static bool is_whole_number(const Value *value, int depth) {
  if (value->data) return value_is_known(value) && constant_is_whole(value);
  return value->producer && result_is_whole(value->producer, value->producer->n_epilogue, depth);
}

/* Is it between two numbers of the type? */
static bool is_bounded(const Node *clip, DType dtype) {
  double low, high;
  if (!is_op(clip, OP_Clip) || !node_input(clip, 1) || !node_input(clip, 2)) return false;
  if (!value_number(clip->inputs[1], &low) || !value_number(clip->inputs[2], &high)) return false;
  return low >= (double)dtype_min(dtype) && high <= (double)dtype_max(dtype) && low <= high;
}

bool fits_byte(const Node *cast) {
  const Node *host = cast->inputs[0]->producer;
  if (!host) return false;
  const Node *last = host->n_epilogue ? host->epilogue[host->n_epilogue - 1] : host;
  return is_bounded(last, cast->outputs[0]->dtype) && is_whole_number(cast->inputs[0], 0);
}
