/* SPDX-License-Identifier: MIT */
/* Rewriting that depends on an input's rank. */
#include <string.h>

#include "load/onnx/adapt.h"

/* Before opset 13 the axes from `axis` on were one: x as [M, N], over N, and back into x's shape. */
bool adapt_softmax(OnnxReader *reader, Draft *draft) {
  Value *input = draft_input(draft, 0);
  if (!input || draft->n_outputs < 1 || !draft->outputs[0]) return true; /* the check against the row tells */
  int64_t axis = draft_int(draft, "axis", 1);
  int rank = draft_rank(reader, draft, input);
  draft_set_int(reader, draft, "axis", -1);
  if (rank > 0 && (axis == rank - 1 || axis == -1)) return true;
  Draft flatten = *draft;
  Value *flat = graph_value(draft->scope->graph, draft->name, draft->where);
  flatten.op = "Flatten";
  flatten.outputs = &flat;
  flatten.n_outputs = 1;
  draft_set_int(reader, &flatten, "axis", axis);
  if (!onnx_commit(reader, &flatten)) return false;
  Value *output = draft_take_output(draft, 0);
  Value *back[] = {draft->outputs[0], draft_node(reader, draft, "Shape", 1, &input)};
  const Attribute allowzero = {.name = "allowzero", .kind = ATTRIBUTE_INT, .i = 1};
  draft_node_with(reader, draft, "Reshape", 2, back, 1, &allowzero, output);
  draft_set_input(reader, draft, 0, flat);
  return true;
}

/* The input with axes of length 1 after its own. */
static Value *widened(OnnxReader *reader, const Draft *draft, Value *value, int rank, int more) {
  int64_t axes[MAX_RANK];
  for (int i = 0; i < more; i++) axes[i] = rank + i;
  Value *inputs[] = {value, draft_ints(reader, draft, (size_t)more, axes)};
  return draft_node(reader, draft, "Unsqueeze", 2, inputs);
}

/* Before opset 7 the second input's first axis is axis `axis` of the first input. */
bool adapt_broadcast(OnnxReader *reader, Draft *draft) {
  bool aligned = draft_int(draft, "broadcast", 0) != 0 && draft_attribute(draft, "axis");
  int64_t axis = draft_int(draft, "axis", 0);
  draft_drop(draft, "broadcast");
  draft_drop(draft, "axis");
  Value *a = draft_input(draft, 0), *b = draft_input(draft, 1);
  if (!aligned || !a || !b) return true;
  int rank_a = draft_rank(reader, draft, a), rank_b = draft_rank(reader, draft, b);
  if (rank_a < 0 || rank_b < 0) {
    unsupported_add(&reader->unsupported, draft->name, "`axis` of %s, of tensors of unknown rank,", draft->op);
    return false;
  }
  int64_t more = rank_a - (axis < 0 ? axis + rank_a : axis) - rank_b;
  if (more > 0 && more <= MAX_RANK - rank_b)
    draft_set_input(reader, draft, 1, widened(reader, draft, b, rank_b, (int)more));
  return true;
}

/* Before opset 7 a slope of one axis is one number a channel, which is axis 1. */
bool adapt_prelu(OnnxReader *reader, Draft *draft) {
  Value *x = draft_input(draft, 0), *slope = draft_input(draft, 1);
  if (!x || !slope || draft_rank(reader, draft, slope) != 1) return true;
  int rank = draft_rank(reader, draft, x);
  if (rank > 2) draft_set_input(reader, draft, 1, widened(reader, draft, slope, 1, rank - 2));
  return true;
}
