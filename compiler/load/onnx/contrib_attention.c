/* SPDX-License-Identifier: MIT */
/* The attention of com.microsoft, as ONNX's. */
#include "load/onnx/contrib.h"

static Value *sum(OnnxReader *reader, const Draft *draft, Value *a, Value *b) {
  return draft_node(reader, draft, "Add", 2, (Value *[]){a, b});
}

/* 0 where the mask is not 0, else a number far below 0, which is added to the scores: [B, T] or [B, S, T] as
 * [B, 1, S or 1, T]. NULL, and reports it, for other ranks. */
static Value *bias_of_mask(OnnxReader *reader, const Draft *draft, Value *mask, double filter) {
  static const int64_t axes[] = {1, 2};
  int rank = draft_rank(reader, draft, mask);
  if (rank != 2 && rank != 3) {
    contrib_refuse(reader, draft, "a mask that has not 2 or 3 axes");
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

/* Added to a score, this leaves nothing of its weight. */
static const double NEGLIGIBLE = -1000;

/* What is added to the scores of keys that are masked. */
static double filter_of(const Draft *draft) { return draft_float(draft, "mask_filter_value", -10000); }

/* What ONNX's operator takes. */
typedef struct Parts {
  Value *keys, *q, *k, *v, *mask, *bias, *lengths, *past, *past_key, *past_value;
} Parts;

/* The attributes in ONNX's names; a scale of 0 is the usual one. */
static void rename_attributes(OnnxReader *reader, Draft *draft) {
  int64_t heads = draft_int(draft, "num_heads", 0), causal = draft_int(draft, "unidirectional", 0);
  static const char *const old[] = {
      "num_heads",        "unidirectional",      "mask_filter_value", "do_rotary", "past_present_share_buffer",
      "qkv_hidden_sizes", "rotary_embedding_dim"};
  if (draft_float(draft, "scale", 0) == 0) draft_drop(draft, "scale");
  for (size_t i = 0; i < sizeof old / sizeof *old; i++) draft_drop(draft, old[i]);
  draft_set_int(reader, draft, "q_num_heads", heads);
  draft_set_int(reader, draft, "kv_num_heads", heads);
  draft_set_int(reader, draft, "is_causal", causal);
}

/* Gives the draft these inputs and ONNX's attributes. */
static bool become_onnx(OnnxReader *reader, Draft *draft, const Parts *p) {
  Value *mask = p->mask ? bias_of_mask(reader, draft, p->mask, filter_of(draft)) : NULL;
  if (p->mask && !mask) return false;
  if (mask && p->bias) mask = sum(reader, draft, mask, p->bias);
  Value *const inputs[] = {p->q, p->k, p->v, mask ? mask : p->bias, p->past_key, p->past_value, p->lengths};
  draft->n_inputs = sizeof inputs / sizeof *inputs;
  draft->inputs = arena_copy(reader->arena, inputs, sizeof inputs);
  rename_attributes(reader, draft);
  draft->op = "Attention";
  return true;
}

/* Which keys the lengths leave, [B, T]. The past's keys are counted on `past_axis`. */
static Value *mask_of_lengths(OnnxReader *reader, const Draft *draft, const Parts *parts, int64_t past_axis) {
  static const int64_t column[] = {-1, 1};
  Value *n = contrib_extent(reader, draft, parts->keys, 1);
  if (parts->past) n = sum(reader, draft, n, contrib_extent(reader, draft, parts->past, past_axis));
  Value *lengths = draft_cast(reader, draft, parts->mask, RNNCC_I64);
  lengths = draft_node(reader, draft, "Reshape", 2, (Value *[]){lengths, draft_ints(reader, draft, 2, column)});
  return draft_node(reader, draft, "Less", 2, (Value *[]){contrib_count(reader, draft, n), lengths});
}

/* Lengths of the samples, [B], in place of a mask: ONNX's nonpad_kv_seqlen, which says more where queries have places,
 * and leaves out what the filter only weakens. */
static bool take_lengths(OnnxReader *reader, const Draft *draft, Parts *parts, int64_t past_axis) {
  Value *lengths = parts->mask;
  if (!lengths || draft_rank(reader, draft, lengths) != 1) return true;
  if (draft_rank(reader, draft, parts->keys) < 1 || lengths->shape[0] != parts->keys->shape[0])
    return contrib_refuse(reader, draft, "a mask of lengths that is not one a sample");
  bool masked = draft_int(draft, "unidirectional", 0) || parts->past || filter_of(draft) > NEGLIGIBLE;
  parts->lengths = masked ? NULL : draft_cast(reader, draft, lengths, RNNCC_I64);
  parts->mask = masked ? mask_of_lengths(reader, draft, parts, past_axis) : NULL;
  return true;
}

bool adapt_multi_head(OnnxReader *reader, Draft *draft) {
  Value *query = draft_input(draft, 0), *key = draft_input(draft, 1), *value = draft_input(draft, 2);
  Value *bias = draft_input(draft, 3);
  int64_t H;
  if (!query || !key || !value) return contrib_refuse(reader, draft, "packed queries, keys and values");
  bool apart = draft_rank(reader, draft, key) == 4; /* [B, heads, T, D]: of a decoder, with their biases in them */
  if (!apart && draft_rank(reader, draft, key) != 3)
    return contrib_refuse(reader, draft, "keys that have not 3 or 4 axes");
  if (apart) key = contrib_heads_together(reader, draft, key);
  if (apart) value = contrib_heads_together(reader, draft, value);
  if (contrib_any_from(draft->inputs, draft->n_inputs, 8)) return contrib_refuse(reader, draft, "a shared cache");
  if (contrib_any_from(draft->outputs, draft->n_outputs, 3)) return contrib_refuse(reader, draft, "output 3");
  Parts parts = {
      .keys = key, .q = query, .k = key, .v = value, .mask = draft_input(draft, 4), .bias = draft_input(draft, 5)};
  parts.past = parts.past_key = draft_input(draft, 6);
  parts.past_value = draft_input(draft, 7);
  if (bias && !draft_last_extent(reader, draft, query, &H))
    return contrib_refuse(reader, draft, "a bias of unknown shape");
  if (bias) parts.q = sum(reader, draft, query, contrib_part(reader, draft, bias, 0, H));
  if (bias && !apart) {
    parts.k = sum(reader, draft, key, contrib_part(reader, draft, bias, H, 2 * H));
    parts.v = sum(reader, draft, value, contrib_part(reader, draft, bias, 2 * H, INT64_MAX));
  }
  return take_lengths(reader, draft, &parts, 2) && become_onnx(reader, draft, &parts);
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
  if (given || !draft_last_extent(reader, draft, weights, &all)) return false;
  *q = *k = all / 3;
  return true;
}

/* Keys (0) or values (1) of the past [2, B, heads, P, D]. */
static Value *past_part(OnnxReader *reader, const Draft *draft, Value *past, int64_t which) {
  Value *index = draft_number(reader, draft, RNNCC_I64, (double)which);
  return past ? draft_node(reader, draft, "Gather", 2, (Value *[]){past, index}) : NULL;
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
  const Attribute axis = {.name = "axis", .kind = ATTRIBUTE_INT, .i = 0};
  draft_node_with(reader, draft, "Concat", 2, parts, 1, &axis, present);
  draft->outputs = outputs;
  draft->n_outputs = 3;
}

static bool refuse_others(OnnxReader *reader, const Draft *draft) {
  if (draft_int(draft, "past_present_share_buffer", 0)) return contrib_refuse(reader, draft, "a shared cache");
  if (contrib_any_from(draft->outputs, draft->n_outputs, 2)) return contrib_refuse(reader, draft, "output 2");
  return !draft_int(draft, "do_rotary", 0) || contrib_refuse(reader, draft, "`do_rotary`");
}

/* Queries, keys and values are parts of `all`. */
static bool attend(OnnxReader *reader, Draft *draft, Parts *parts, Value *all, int64_t q, int64_t k) {
  parts->q = contrib_part(reader, draft, all, 0, q);
  parts->k = contrib_part(reader, draft, all, q, q + k);
  parts->v = contrib_part(reader, draft, all, q + k, INT64_MAX);
  parts->past_key = past_part(reader, draft, parts->past, 0);
  parts->past_value = past_part(reader, draft, parts->past, 1);
  join_present(reader, draft);
  return become_onnx(reader, draft, parts);
}

bool adapt_contrib_attention(OnnxReader *reader, Draft *draft) {
  Value *input = draft_input(draft, 0), *weights = draft_input(draft, 1), *bias = draft_input(draft, 2);
  int64_t q, k;
  if (!input || !weights) return contrib_refuse(reader, draft, "absent weights or input");
  if (contrib_any_from(draft->inputs, draft->n_inputs, 6)) return contrib_refuse(reader, draft, "a shared cache");
  if (!refuse_others(reader, draft)) return false;
  if (!read_widths(reader, draft, weights, &q, &k)) return contrib_refuse(reader, draft, "weights of unknown shape");
  Parts parts = {.keys = input, .mask = draft_input(draft, 3), .bias = draft_input(draft, 5)};
  parts.past = draft_input(draft, 4);
  if (!take_lengths(reader, draft, &parts, 3)) return false;
  Value *all = draft_node(reader, draft, "MatMul", 2, (Value *[]){input, weights});
  if (bias) all = sum(reader, draft, all, bias);
  return attend(reader, draft, &parts, all, q, k);
}

/* Its products are of integers, the rest is in f32. */
bool adapt_quantised_attention(OnnxReader *reader, Draft *draft) {
  enum { INPUT, WEIGHTS, BIAS, INPUT_SCALE, WEIGHTS_SCALE, MASK, INPUT_ZERO, WEIGHTS_ZERO, PAST };
  Value *all,
      *inputs[] = {draft_input(draft, INPUT),         draft_input(draft, WEIGHTS),    draft_input(draft, INPUT_SCALE),
                   draft_input(draft, WEIGHTS_SCALE), draft_input(draft, INPUT_ZERO), draft_input(draft, WEIGHTS_ZERO),
                   draft_input(draft, BIAS)};
  Parts parts = {.keys = inputs[0], .mask = draft_input(draft, MASK), .past = draft_input(draft, PAST)};
  int64_t q, k;
  for (int i = 0; i < 4; i++)
    if (!inputs[i]) return contrib_refuse(reader, draft, "absent weights, input or scales");
  if (!refuse_others(reader, draft)) return false;
  if (!read_widths(reader, draft, inputs[1], &q, &k)) return contrib_refuse(reader, draft, "weights of unknown shape");
  if (!take_lengths(reader, draft, &parts, 3)) return false;
  all = draft_node(reader, draft, "MatMulIntegerToFloat", inputs[6] ? 7 : 6, inputs);
  return attend(reader, draft, &parts, all, q, k);
}

/* Cosines and sines stand before the positions, which may be the first one alone. */
bool adapt_contrib_rotary(OnnxReader *reader, Draft *draft) {
  Value *x = draft_input(draft, 0), *places = draft_input(draft, 1), *cosines = draft_input(draft, 2);
  int64_t half, hidden;
  if (!x || !places || !cosines || !draft_input(draft, 3)) return true; /* the check against the row tells */
  if (draft_int(draft, "is_packed_batching", 0)) return contrib_refuse(reader, draft, "`is_packed_batching`");
  if (draft_float(draft, "scale", 1) != 1) return contrib_refuse(reader, draft, "a `scale` other than 1");
  int rank = draft_rank(reader, draft, x), of_places = draft_rank(reader, draft, places);
  if (rank < 3 || of_places < 1 || !draft_last_extent(reader, draft, cosines, &half) || half < 1)
    return contrib_refuse(reader, draft, "inputs of unknown shape");
  if (of_places == 1) {
    Value *batch = contrib_extent(reader, draft, x, 0),
          *first = draft_node(reader, draft, "Expand", 2, (Value *[]){places, batch});
    places = contrib_positions(reader, draft, first, x, rank - 2);
  }
  if (draft_int(draft, "num_heads", 0) == 0) draft_drop(draft, "num_heads");
  if (rank == 3 && !draft_attribute(draft, "num_heads") && draft_last_extent(reader, draft, x, &hidden))
    draft_set_int(reader, draft, "num_heads", hidden / (2 * half));
  draft_drop(draft, "is_packed_batching");
  draft_drop(draft, "scale");
  Value *const inputs[] = {x, cosines, draft->inputs[3], places};
  draft->inputs = arena_copy(reader->arena, inputs, sizeof inputs);
  return true;
}
