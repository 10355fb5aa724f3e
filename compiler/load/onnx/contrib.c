/* SPDX-License-Identifier: MIT */
/*
 * Operators of other domains. Of ONNX Runtime's, com.microsoft, those that its optimiser leaves in files: rows of their
 * own in ops.def, others that have the name and meaning of ONNX's, and attention, which becomes ONNX's.
 */
#include <string.h>

#include "load/onnx/adapt.h"

static Adaptation adapt_attention, adapt_multi_head;

/* NULL: as it is. */
static const struct {
  const char *domain, *op;
  Adaptation *adapt;
} OPERATORS[] = {
#define CONTRIB(name, ...) {"com.microsoft", #name, NULL},
#include "ir/ops.def"
    {"com.microsoft", "Gelu", NULL},
    {"com.microsoft", "Attention", adapt_attention},
    {"com.microsoft", "MultiHeadAttention", adapt_multi_head},
    {"ai.onnx.preview", "FlexAttention", adapt_flex_attention},
};
enum { N_OPERATORS = sizeof OPERATORS / sizeof *OPERATORS };

/* The place in the table; -1: none. */
static int find(const char *domain, const char *op) {
  for (int i = 0; i < N_OPERATORS; i++)
    if (strcmp(OPERATORS[i].domain, domain) == 0 && strcmp(OPERATORS[i].op, op) == 0) return i;
  return -1;
}

bool contrib_knows(const char *domain, const char *op) { return find(domain, op) >= 0; }

bool contrib_adapt(OnnxReader *reader, Draft *draft, const char *domain) {
  Adaptation *adaptation = OPERATORS[find(domain, draft->op)].adapt;
  return !adaptation || adaptation(reader, draft);
}

/* ---- attention ---- */

static bool refuse(OnnxReader *reader, const Draft *draft, const char *what) {
  unsupported_add(&reader->unsupported, draft->name, "%s of com.microsoft's %s", what, draft->op);
  return false;
}

/* Is there any from `first` on? */
static bool any_from(Value *const *values, int n, int first) {
  for (int i = first; i < n; i++)
    if (values[i]) return true;
  return false;
}

/* Elements [begin, end) of the last axis. */
static Value *part(OnnxReader *reader, const Draft *draft, Value *x, int64_t begin, int64_t end) {
  const int64_t last = -1;
  Value *inputs[] = {x, draft_ints(reader, draft, 1, &begin), draft_ints(reader, draft, 1, &end),
                     draft_ints(reader, draft, 1, &last)};
  return draft_node(reader, draft, "Slice", 4, inputs);
}

static Value *sum(OnnxReader *reader, const Draft *draft, Value *a, Value *b) {
  return draft_node(reader, draft, "Add", 2, (Value *[]){a, b});
}

/* 0 where the mask is not 0, else a number far below 0, which is added to the scores: [B, T] or [B, S, T] as
 * [B, 1, S or 1, T]. NULL, and reports it, for other ranks. */
static Value *bias_of_mask(OnnxReader *reader, const Draft *draft, Value *mask, double filter) {
  static const int64_t axes[] = {1, 2};
  int rank = draft_rank(reader, draft, mask);
  if (rank != 2 && rank != 3) {
    refuse(reader, draft, "a mask that has not 2 or 3 axes");
    return NULL;
  }
  Value *zero = draft_number(reader, draft, mask->dtype, 0);
  Value *masked = draft_node(reader, draft, "Equal", 2, (Value *[]){mask, zero});
  Value *bias = draft_node(
      reader, draft, "Where", 3,
      (Value *[]){masked, draft_number(reader, draft, RNNCC_F32, filter), draft_number(reader, draft, RNNCC_F32, 0)});
  return draft_node(reader, draft, "Unsqueeze", 2,
                    (Value *[]){bias, draft_ints(reader, draft, rank == 2 ? 2 : 1, axes)});
}

/* What ONNX's operator takes. */
typedef struct Parts {
  Value *q, *k, *v, *mask, *bias, *lengths, *past_key, *past_value;
} Parts;

static double float_attribute(const Draft *draft, const char *name, double otherwise) {
  const Attribute *given = draft_attribute(draft, name);
  return given && given->kind == ATTRIBUTE_FLOAT ? given->f : otherwise;
}

/* The attributes in ONNX's names; a scale of 0 is the usual one. */
static void rename_attributes(OnnxReader *reader, Draft *draft) {
  int64_t heads = draft_int(draft, "num_heads", 0), causal = draft_int(draft, "unidirectional", 0);
  static const char *const old[] = {
      "num_heads",        "unidirectional",      "mask_filter_value", "do_rotary", "past_present_share_buffer",
      "qkv_hidden_sizes", "rotary_embedding_dim"};
  if (float_attribute(draft, "scale", 0) == 0) draft_drop(draft, "scale");
  for (size_t i = 0; i < sizeof old / sizeof *old; i++) draft_drop(draft, old[i]);
  draft_set_int(reader, draft, "q_num_heads", heads);
  draft_set_int(reader, draft, "kv_num_heads", heads);
  draft_set_int(reader, draft, "is_causal", causal);
}

/* Gives the draft these inputs and ONNX's attributes. */
static bool become_onnx(OnnxReader *reader, Draft *draft, const Parts *p) {
  Value *mask =
      p->mask ? bias_of_mask(reader, draft, p->mask, float_attribute(draft, "mask_filter_value", -10000)) : NULL;
  if (p->mask && !mask) return false;
  if (mask && p->bias) mask = sum(reader, draft, mask, p->bias);
  Value *const inputs[] = {p->q, p->k, p->v, mask ? mask : p->bias, p->past_key, p->past_value, p->lengths};
  draft->n_inputs = sizeof inputs / sizeof *inputs;
  draft->inputs = arena_copy(reader->arena, inputs, sizeof inputs);
  rename_attributes(reader, draft);
  draft->op = "Attention";
  return true;
}

/* The extent of the last axis, if it is known. */
static bool last_extent(OnnxReader *reader, const Draft *draft, const Value *x, int64_t *extent) {
  int rank = draft_rank(reader, draft, x);
  bool known = rank > 0 && dim_is_const(x->shape[rank - 1]);
  if (known) *extent = dim_value(x->shape[rank - 1]);
  return known;
}

static bool adapt_multi_head(OnnxReader *reader, Draft *draft) {
  Value *query = draft_input(draft, 0), *key = draft_input(draft, 1), *value = draft_input(draft, 2);
  Value *bias = draft_input(draft, 3);
  int64_t H;
  if (!query || !key || !value) return refuse(reader, draft, "packed queries, keys and values");
  if (draft_rank(reader, draft, key) != 3) return refuse(reader, draft, "keys that have not 3 axes");
  if (any_from(draft->inputs, draft->n_inputs, 8)) return refuse(reader, draft, "a shared cache");
  if (any_from(draft->outputs, draft->n_outputs, 3)) return refuse(reader, draft, "output 3");
  Parts parts = {.q = query, .k = key, .v = value, .mask = draft_input(draft, 4), .bias = draft_input(draft, 5)};
  parts.past_key = draft_input(draft, 6);
  parts.past_value = draft_input(draft, 7);
  if (bias && !last_extent(reader, draft, query, &H)) return refuse(reader, draft, "a bias of unknown shape");
  if (bias) {
    parts.q = sum(reader, draft, query, part(reader, draft, bias, 0, H));
    parts.k = sum(reader, draft, key, part(reader, draft, bias, H, 2 * H));
    parts.v = sum(reader, draft, value, part(reader, draft, bias, 2 * H, INT64_MAX));
  }
  return become_onnx(reader, draft, &parts);
}

/* Widths of queries, keys and values in the merged weights. */
static bool read_widths(OnnxReader *reader, const Draft *draft, const Value *weights, int64_t *q, int64_t *k) {
  const Attribute *given = draft_attribute(draft, "qkv_hidden_sizes");
  int64_t all;
  if (given && given->kind == ATTRIBUTE_INTS && given->count == 3) {
    *q = given->ints[0];
    *k = given->ints[1];
    return true;
  }
  if (given || !last_extent(reader, draft, weights, &all)) return false;
  *q = *k = all / 3;
  return true;
}

/* Lengths of the samples, [B]; their mask is that of ONNX's nonpad_kv_seqlen. */
static bool take_lengths(OnnxReader *reader, Draft *draft, Parts *parts) {
  Value *input = draft_input(draft, 0), *lengths = parts->mask;
  if (!lengths || draft_rank(reader, draft, lengths) != 1) return true;
  bool one_each = draft_rank(reader, draft, input) > 0 && lengths->shape[0] == input->shape[0];
  if (!one_each || draft_int(draft, "unidirectional", 0) || draft_input(draft, 4))
    return refuse(reader, draft, "a mask of lengths that is not one a sample, causal, or with a past");
  parts->lengths = draft_cast(reader, draft, lengths, RNNCC_I64);
  parts->mask = NULL;
  return true;
}

/* Keys (0) or values (1) of the past [2, B, heads, P, D]. */
static Value *past_part(OnnxReader *reader, const Draft *draft, int64_t which) {
  Value *index = draft_number(reader, draft, RNNCC_I64, (double)which);
  return draft_input(draft, 4) ? draft_node(reader, draft, "Gather", 2, (Value *[]){draft->inputs[4], index}) : NULL;
}

/* Output 1 is keys and values in one. */
static void join_present(OnnxReader *reader, Draft *draft) {
  static const int64_t front = 0;
  if (draft->n_outputs < 2 || !draft->outputs[1]) return;
  Value *present = draft->outputs[1], *parts[2], **outputs = ARENA_ARRAY(reader->arena, Value *, 3);
  outputs[0] = draft->outputs[0];
  for (int i = 0; i < 2; i++) {
    outputs[i + 1] = graph_value(draft->scope->graph, draft->name, draft->where);
    parts[i] =
        draft_node(reader, draft, "Unsqueeze", 2, (Value *[]){outputs[i + 1], draft_ints(reader, draft, 1, &front)});
  }
  Draft concat = {.op = "Concat", .name = draft->name, .where = draft->where, .scope = draft->scope, .n_inputs = 2};
  concat.inputs = arena_copy(reader->arena, parts, sizeof parts);
  concat.outputs = arena_copy(reader->arena, &present, sizeof(Value *));
  concat.n_outputs = 1;
  draft_set_int(reader, &concat, "axis", 0);
  onnx_commit(reader, &concat);
  draft->outputs = outputs;
  draft->n_outputs = 3;
}

static bool adapt_attention(OnnxReader *reader, Draft *draft) {
  Value *input = draft_input(draft, 0), *weights = draft_input(draft, 1), *bias = draft_input(draft, 2);
  int64_t q, k;
  if (!input || !weights) return refuse(reader, draft, "absent weights or input");
  if (any_from(draft->inputs, draft->n_inputs, 6) || draft_int(draft, "past_present_share_buffer", 0))
    return refuse(reader, draft, "a shared cache");
  if (any_from(draft->outputs, draft->n_outputs, 2)) return refuse(reader, draft, "output 2");
  if (draft_int(draft, "do_rotary", 0)) return refuse(reader, draft, "`do_rotary`");
  if (!read_widths(reader, draft, weights, &q, &k)) return refuse(reader, draft, "weights of unknown shape");
  Parts parts = {.mask = draft_input(draft, 3), .bias = draft_input(draft, 5)};
  if (!take_lengths(reader, draft, &parts)) return false;
  Value *all = draft_node(reader, draft, "MatMul", 2, (Value *[]){input, weights});
  if (bias) all = sum(reader, draft, all, bias);
  parts.q = part(reader, draft, all, 0, q);
  parts.k = part(reader, draft, all, q, q + k);
  parts.v = part(reader, draft, all, q + k, INT64_MAX);
  parts.past_key = past_part(reader, draft, 0);
  parts.past_value = past_part(reader, draft, 1);
  join_present(reader, draft);
  return become_onnx(reader, draft, &parts);
}
