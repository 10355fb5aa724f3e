/* SPDX-License-Identifier: MIT */
/* Channels on the last axis, in which ONNX Runtime's optimiser puts quantised images: [N, ..., C] as [N, C, ...]. */
#include "load/onnx/contrib.h"

/* The order of axes in which the channels go to the last place, or come from it. */
static Attribute order_of(OnnxReader *reader, int rank, bool to_last) {
  int64_t *perm = ARENA_ARRAY(reader->arena, int64_t, rank);
  for (int axis = 1; axis < rank; axis++)
    perm[axis] = to_last ? 1 + axis % (rank - 1) : 1 + (axis + rank - 3) % (rank - 1);
  return (Attribute){.name = "perm", .kind = ATTRIBUTE_INTS, .count = (size_t)rank, .ints = perm};
}

/* The node with its channels on axis 1, between two transposes. */
static bool with_channels_first(OnnxReader *reader, Draft *draft, int rank) {
  if (rank < 3) return contrib_refuse(reader, draft, "channels on the last axis of images of unknown rank");
  if (!draft_input(draft, 0) || draft->n_outputs != 1 || !draft->outputs[0]) return true; /* the row's check tells */
  Attribute to_first = order_of(reader, rank, false), to_last = order_of(reader, rank, true);
  draft_set_input(reader, draft, 0, draft_node_with(reader, draft, "Transpose", 1, draft->inputs, 1, &to_first, NULL));
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
  Attribute to_first = order_of(reader, rank, false);
  Value *weights = draft_node_with(reader, draft, "Transpose", 1, &draft->inputs[1], 1, &to_first, NULL);
  draft_set_input(reader, draft, 1, weights);
  return true;
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
