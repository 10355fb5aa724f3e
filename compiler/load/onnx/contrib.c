/* SPDX-License-Identifier: MIT */
/*
 * Operators of other domains. Of ONNX Runtime's, com.microsoft, those that its optimiser and exporters leave in files:
 * rows of their own in ops.def, others that have the meaning of one of ONNX's, or become it.
 */
#include "load/onnx/contrib.h"

#include <string.h>

static Adaptation adapt_expand_dims, adapt_range;

/* The name in ops.def, or NULL: its own; what is to be rewritten, or NULL: nothing. Of two rows of a name the first
 * counts. */
static const struct {
  const char *domain, *op, *ours;
  Adaptation *adapt;
} OPERATORS[] = {
    {"com.microsoft", "Attention", NULL, adapt_contrib_attention},
    {"com.microsoft", "DequantizeLinear", NULL, NULL},
    {"com.microsoft", "DynamicQuantizeLSTM", "LSTM", adapt_dynamic_lstm},
    {"com.microsoft", "ExpandDims", "Unsqueeze", adapt_expand_dims},
    {"com.microsoft", "GatherND", NULL, NULL},
    {"com.microsoft", "Gelu", NULL, NULL},
    {"com.microsoft", "GridSample", NULL, adapt_grid_sample},
    {"com.microsoft", "GroupNorm", "GroupNormalization", adapt_nhwc_group_norm},
    {"com.microsoft", "GroupQueryAttention", "Attention", adapt_group_query},
    {"com.microsoft", "MultiHeadAttention", NULL, adapt_multi_head},
    {"com.microsoft", "NhwcConv", "Conv", adapt_nhwc_conv},
    {"com.microsoft", "NhwcFusedConv", "FusedConv", adapt_nhwc_fused_conv},
    {"com.microsoft", "NhwcMaxPool", "MaxPool", adapt_nhwc_max_pool},
    {"com.microsoft", "Pad", NULL, NULL},
    {"com.microsoft", "QAttention", "Attention", adapt_quantised_attention},
    {"com.microsoft", "QLinearAveragePool", NULL, adapt_nhwc_average_pool},
    {"com.microsoft", "QLinearConv", NULL, adapt_nhwc_qlinear_conv},
    {"com.microsoft", "QuantizeLinear", NULL, NULL},
    {"com.microsoft", "Range", NULL, adapt_range},
    {"com.microsoft", "RotaryEmbedding", NULL, adapt_contrib_rotary},
    {"com.microsoft", "TransposeMatMul", "FusedMatMul", NULL},
    {"com.microsoft", "Trilu", NULL, NULL},
    {"ai.onnx.preview", "FlexAttention", NULL, adapt_flex_attention},
#define CONTRIB(name, ...) {"com.microsoft", #name, NULL, NULL},
#define CONTRIB_CHOICE(name, ...) {"com.microsoft", #name, NULL, NULL},
#define OWN_FORMULA(name, ...) {"ai.rnncc", #name, NULL, NULL},
#include "ir/ops.def"
};
enum { N_OPERATORS = sizeof OPERATORS / sizeof *OPERATORS };

/* The place in the table; -1: none. */
static int find(const char *domain, const char *op) {
  for (int i = 0; i < N_OPERATORS; i++)
    if (strcmp(OPERATORS[i].domain, domain) == 0 && strcmp(OPERATORS[i].op, op) == 0) return i;
  return -1;
}

bool contrib_knows(const char *domain, const char *op) { return find(domain, op) >= 0; }

bool contrib_row(int index, const char **domain, const char **op, const char **ours) {
  if (index >= N_OPERATORS) return false;
  *domain = OPERATORS[index].domain;
  *op = OPERATORS[index].op;
  *ours = OPERATORS[index].ours ? OPERATORS[index].ours : *op;
  return true;
}

bool contrib_adapt(OnnxReader *reader, Draft *draft, const char *domain) {
  int i = find(domain, draft->op);
  if (OPERATORS[i].adapt && !OPERATORS[i].adapt(reader, draft)) return false;
  if (OPERATORS[i].ours) draft->op = OPERATORS[i].ours;
  return true;
}

void contrib_unknown(OnnxReader *reader, const Draft *draft, const char *domain) {
  if (strcmp(domain, "com.microsoft.nchwc") == 0)
    unsupported_add(&reader->unsupported, draft->name,
                    "the layout of %s, in which ONNX Runtime's highest level of optimisation saves models for one "
                    "machine (save it at ORT_ENABLE_EXTENDED)",
                    domain);
  else
    unsupported_add(&reader->unsupported, draft->name, "the operator %.80s of %.80s", draft->op, domain);
}

bool contrib_refuse(OnnxReader *reader, const Draft *draft, const char *what) {
  unsupported_add(&reader->unsupported, draft->name, "%s of com.microsoft's %s", what, draft->op);
  return false;
}

bool contrib_any_from(Value *const *values, int n, int first) {
  for (int i = first; i < n; i++)
    if (values[i]) return true;
  return false;
}

Value *contrib_part(OnnxReader *reader, const Draft *draft, Value *x, int64_t begin, int64_t end) {
  const int64_t last = -1;
  Value *inputs[] = {x, draft_ints(reader, draft, 1, &begin), draft_ints(reader, draft, 1, &end),
                     draft_ints(reader, draft, 1, &last)};
  return draft_node(reader, draft, "Slice", 4, inputs);
}

/* ---- those that differ little ---- */

/* The axis is one number of i32. */
static bool adapt_expand_dims(OnnxReader *reader, Draft *draft) {
  static const int64_t one = 1;
  Value *axis = draft_input(draft, 1);
  if (!axis) return true; /* the check against the row tells */
  Value *inputs[] = {draft_cast(reader, draft, axis, RNNCC_I64), draft_ints(reader, draft, 1, &one)};
  draft_set_input(reader, draft, 1, draft_node(reader, draft, "Reshape", 2, inputs));
  return true;
}

/* The step may be left out. */
static bool adapt_range(OnnxReader *reader, Draft *draft) {
  Value *start = draft_input(draft, 0);
  if (draft_input(draft, 2) || !start) return true;
  DType dtype = draft_dtype(reader, draft, start);
  if (dtype == RNNCC_NONE) return contrib_refuse(reader, draft, "a start of unknown type");
  draft_set_input(reader, draft, 2, draft_number(reader, draft, dtype, 1));
  return true;
}
