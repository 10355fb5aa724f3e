/* SPDX-License-Identifier: MIT */
/* Channels on the last axis, where ONNX Runtime puts those of quantised images, and devices all: [N, ..., C] as
 * [N, C, ...]. */
#include <string.h>

#include "ir/op.h"
#include "load/onnx/contrib.h"

/* The order of axes in which the channels go to the last place, or come from it. */
static Attribute order_of(OnnxReader *reader, int rank, bool to_last) {
  int64_t *perm = ARENA_ARRAY(reader->arena, int64_t, rank);
  for (int axis = 1; axis < rank; axis++)
    perm[axis] = to_last ? 1 + axis % (rank - 1) : 1 + (axis + rank - 3) % (rank - 1);
  return (Attribute){.name = "perm", .kind = ATTRIBUTE_INTS, .count = (size_t)rank, .ints = perm};
}

/* x with its channels on axis 1: what they were taken from to the last axis, if that was the step before. */
static Value *channels_first(OnnxReader *reader, const Draft *draft, Value *x, int rank) {
  const Node *before = x->producer;
  const Attribute *perm = before && is_op(before, OP_Transpose) ? node_attribute(before, ATTR_perm) : NULL;
  Attribute to_first = order_of(reader, rank, false), to_last = order_of(reader, rank, true);
  bool undone =
      perm && perm->count == (size_t)rank && memcmp(perm->ints, to_last.ints, (size_t)rank * sizeof *perm->ints) == 0;
  if (undone) return before->inputs[0];
  return draft_node_with(reader, draft, "Transpose", 1, &x, 1, &to_first, NULL);
}

/* The node with its channels on axis 1, between two transposes. */
static bool with_channels_first(OnnxReader *reader, Draft *draft, int rank) {
  if (rank < 3) return contrib_refuse(reader, draft, "channels on the last axis of images of unknown rank");
  if (!draft_input(draft, 0) || draft->n_outputs != 1 || !draft->outputs[0]) return true; /* the row's check tells */
  Attribute to_last = order_of(reader, rank, true);
  draft_set_input(reader, draft, 0, channels_first(reader, draft, draft->inputs[0], rank));
  Value *output = draft_take_output(draft, 0);
  draft_node_with(reader, draft, "Transpose", 1, draft->outputs, 1, &to_last, output);
  return true;
}

static bool channels_last(Draft *draft) {
  bool last = draft_int(draft, "channels_last", 0) != 0;
  draft_drop(draft, "channels_last");
  return last;
}

/* The weights are [M, ..., C], too. */
bool adapt_nhwc_conv(OnnxReader *reader, Draft *draft) {
  int rank = draft_input(draft, 1) ? draft_rank(reader, draft, draft->inputs[1]) : -1;
  if (!with_channels_first(reader, draft, rank)) return false;
  draft_set_input(reader, draft, 1, channels_first(reader, draft, draft->inputs[1], rank));
  return true;
}

/* The weights are [M, C, ...]; what is added has its channels last. */
bool adapt_nhwc_fused_conv(OnnxReader *reader, Draft *draft) {
  int rank = draft_input(draft, 1) ? draft_rank(reader, draft, draft->inputs[1]) : -1;
  if (!with_channels_first(reader, draft, rank)) return false;
  if (draft_input(draft, 3)) draft_set_input(reader, draft, 3, channels_first(reader, draft, draft->inputs[3], rank));
  return true;
}

/* With x sigmoid(x) behind it, if `activation` is 1. */
bool adapt_nhwc_group_norm(OnnxReader *reader, Draft *draft) {
  const Value *x = draft_input(draft, 0);
  int64_t activation = draft_int(draft, "activation", 0), groups = draft_int(draft, "groups", 0);
  bool last = draft_int(draft, "channels_last", 1) != 0;
  static const char *const old[] = {"activation", "channels_last", "groups"};
  if (activation != 0 && activation != 1) return contrib_refuse(reader, draft, "an `activation` other than 0 and 1");
  if (!x || draft->n_outputs != 1 || !draft->outputs[0]) return true; /* the row's check tells */
  for (size_t i = 0; i < sizeof old / sizeof *old; i++) draft_drop(draft, old[i]);
  draft_set_int(reader, draft, "num_groups", groups);
  if (activation) {
    Value *output = draft_take_output(draft, 0);
    draft_node_onto(reader, draft, "Swish", 1, draft->outputs, output);
  }
  return !last || with_channels_first(reader, draft, draft_rank(reader, draft, x));
}

/* The weights are [M, C, ...] nevertheless. */
bool adapt_nhwc_qlinear_conv(OnnxReader *reader, Draft *draft) {
  const Value *weights = draft_input(draft, 3);
  if (!channels_last(draft) || !weights) return true;
  return with_channels_first(reader, draft, draft_rank(reader, draft, weights));
}

static int rank_of_windows(const Draft *draft) {
  const Attribute *kernel = draft_attribute(draft, "kernel_shape");
  return kernel && kernel->kind == ATTRIBUTE_INTS ? 2 + (int)kernel->count : -1;
}

bool adapt_nhwc_max_pool(OnnxReader *reader, Draft *draft) {
  return with_channels_first(reader, draft, rank_of_windows(draft));
}

bool adapt_nhwc_average_pool(OnnxReader *reader, Draft *draft) {
  return !channels_last(draft) || with_channels_first(reader, draft, rank_of_windows(draft));
}
