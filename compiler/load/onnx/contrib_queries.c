/* SPDX-License-Identifier: MIT */
/*
 * GroupQueryAttention of com.microsoft as ONNX's Attention. Of each sample, the first keys are those of the past that
 * its length leaves, then come the S new ones; ONNX's operator takes [B, heads, T, D] with a length of each sample.
 */
#include "load/onnx/contrib.h"

enum {
  KEY = 1,
  VALUE,
  PAST_KEY,
  PAST_VALUE,
  LENGTHS, /* of each sample, less 1 */
  COSINES = 7,
  SINES,
  POSITIONS,
  BIAS,
  SINK,
  K_SCALE,
  Q_NORM = 14,
  K_NORM
};

static Value *node1(OnnxReader *reader, const Draft *draft, const char *op, Value *x) {
  return draft_node(reader, draft, op, 1, &x);
}

static Value *node2(OnnxReader *reader, const Draft *draft, const char *op, Value *a, Value *b) {
  return draft_node(reader, draft, op, 2, (Value *[]){a, b});
}

static Value *one_int(OnnxReader *reader, const Draft *draft, int64_t i) { return draft_ints(reader, draft, 1, &i); }

Value *contrib_extent(OnnxReader *reader, const Draft *draft, Value *x, int64_t axis) {
  return node2(reader, draft, "Gather", node1(reader, draft, "Shape", x), one_int(reader, draft, axis));
}

Value *contrib_count(OnnxReader *reader, const Draft *draft, Value *n) {
  Value *end = node2(reader, draft, "Reshape", n, draft_ints(reader, draft, 0, NULL));
  Value *inputs[] = {draft_number(reader, draft, RNNCC_I64, 0), end, draft_number(reader, draft, RNNCC_I64, 1)};
  return draft_node(reader, draft, "Range", 3, inputs);
}

Value *contrib_positions(OnnxReader *reader, const Draft *draft, Value *first, Value *x, int64_t axis) {
  Value *steps = contrib_count(reader, draft, contrib_extent(reader, draft, x, axis));
  Value *column = node2(reader, draft, "Reshape", first, draft_ints(reader, draft, 2, (const int64_t[]){-1, 1}));
  return node2(reader, draft, "Add", column, steps);
}

static int64_t TURNED[] = {0, 2, 1, 3}; /* heads and steps change places */

/* [B, S, heads * D] as [B, heads, S, D]. */
static Value *by_heads(OnnxReader *reader, const Draft *draft, Value *x, int64_t heads) {
  const Attribute turned = {.name = "perm", .kind = ATTRIBUTE_INTS, .count = 4, .ints = TURNED};
  const int64_t shape[] = {0, 0, heads, -1};
  Value *apart = node2(reader, draft, "Reshape", x, draft_ints(reader, draft, 4, shape));
  return draft_node_with(reader, draft, "Transpose", 1, &apart, 1, &turned, NULL);
}

/* Queries or keys by heads, normalised by the weights at `norm`, if there are some. */
static Value *normalised(OnnxReader *reader, const Draft *draft, Value *x, int norm) {
  const Attribute epsilon = {
      .name = "epsilon", .kind = ATTRIBUTE_FLOAT, .f = draft_float(draft, "qk_norm_epsilon", 1e-6F)};
  if (!draft_input(draft, norm)) return x;
  return draft_node_with(reader, draft, "RMSNormalization", 2, (Value *[]){x, draft->inputs[norm]}, 1, &epsilon, NULL);
}

static Value *turned(OnnxReader *reader, const Draft *draft, Value *x, Value *positions, int64_t elements) {
  const Attribute attributes[] = {
      {.name = "interleaved", .kind = ATTRIBUTE_INT, .i = draft_int(draft, "rotary_interleaved", 0)},
      {.name = "rotary_embedding_dim", .kind = ATTRIBUTE_INT, .i = elements}};
  Value *inputs[] = {x, draft->inputs[COSINES], draft->inputs[SINES], positions};
  return draft_node_with(reader, draft, "RotaryEmbedding", 4, inputs, 2, attributes, NULL);
}

/* Turns queries and keys by their places, from `first` on if none are given. */
static bool turn(OnnxReader *reader, const Draft *draft, Value *first, Value **q, Value **k) {
  Value *places = draft_input(draft, POSITIONS);
  int64_t half;
  if (!draft_int(draft, "do_rotary", 0)) return true;
  if (!draft_input(draft, COSINES) || !draft_input(draft, SINES) ||
      !draft_last_extent(reader, draft, draft->inputs[COSINES], &half))
    return contrib_refuse(reader, draft, "absent cosines or sines, or ones of unknown shape,");
  if (!places) places = contrib_positions(reader, draft, first, *k, 2);
  *q = turned(reader, draft, *q, places, 2 * half);
  *k = turned(reader, draft, *k, places, 2 * half);
  return true;
}

/* The past, cut at `first` of each sample, and then the new ones: row j is that of the past, or new row j - first. */
static Value *with_past(OnnxReader *reader, const Draft *draft, Value *past, Value *x, Value *first) {
  const Attribute axis = {.name = "axis", .kind = ATTRIBUTE_INT, .i = 2};
  if (!past) return x;
  Value *all = draft_node_with(reader, draft, "Concat", 2, (Value *[]){past, x}, 1, &axis, NULL);
  Value *n = contrib_extent(reader, draft, all, 2), *kept = contrib_extent(reader, draft, past, 2);
  Value *rows = contrib_count(reader, draft, n), *last = node2(reader, draft, "Sub", n, one_int(reader, draft, 1));
  Value *start = node2(reader, draft, "Reshape", first, draft_ints(reader, draft, 2, (const int64_t[]){-1, 1}));
  Value *behind = node2(reader, draft, "Add", node2(reader, draft, "Sub", rows, start), kept);
  Value *from = draft_node(
      reader, draft, "Where", 3,
      (Value *[]){node2(reader, draft, "Less", rows, start), rows, node2(reader, draft, "Min", behind, last)});
  from = node2(reader, draft, "Unsqueeze", from, draft_ints(reader, draft, 2, (const int64_t[]){1, 3}));
  Value *each = node2(reader, draft, "Expand", from, node1(reader, draft, "Shape", all));
  return draft_node_with(reader, draft, "GatherElements", 2, (Value *[]){all, each}, 1, &axis, NULL);
}

Value *contrib_heads_together(OnnxReader *reader, const Draft *draft, Value *x) {
  static const int64_t shape[] = {0, 0, -1};
  const Attribute turned_back = {.name = "perm", .kind = ATTRIBUTE_INTS, .count = 4, .ints = TURNED};
  Value *apart = draft_node_with(reader, draft, "Transpose", 1, &x, 1, &turned_back, NULL);
  return node2(reader, draft, "Reshape", apart, draft_ints(reader, draft, 3, shape));
}

/* What the operator computes otherwise than ONNX's. */
static bool refuse_others(OnnxReader *reader, const Draft *draft) {
  if (!draft_input(draft, 0) || !draft_input(draft, LENGTHS))
    return contrib_refuse(reader, draft, "absent queries or lengths");
  if (!draft_input(draft, KEY) != !draft_input(draft, VALUE) ||
      !draft_input(draft, PAST_KEY) != !draft_input(draft, PAST_VALUE))
    return contrib_refuse(reader, draft, "keys without values, or values without keys,");
  for (int i = K_SCALE; i < Q_NORM; i++)
    if (draft_input(draft, i)) return contrib_refuse(reader, draft, "a quantised cache");
  if (draft_int(draft, "sliding_window_cache", 0)) return contrib_refuse(reader, draft, "`sliding_window_cache`");
  if (draft_int(draft, "qk_output", 0)) return contrib_refuse(reader, draft, "`qk_output`");
  if (contrib_any_from(draft->outputs, draft->n_outputs, 3)) return contrib_refuse(reader, draft, "output 3");
  return true;
}

/* Gives the draft ONNX's attributes. */
static void rename_attributes(OnnxReader *reader, Draft *draft) {
  static const char *const old[] = {"num_heads",          "kv_num_heads",       "causal",       "local_window_size",
                                    "do_rotary",          "rotary_interleaved", "qk_output",    "smooth_softmax",
                                    "kv_cache_bit_width", "k_quant_type",       "v_quant_type", "sliding_window_cache",
                                    "qk_norm_epsilon"};
  int64_t causal = draft_int(draft, "causal", 1), window = draft_int(draft, "local_window_size", -1);
  if (draft_float(draft, "scale", 0) == 0) draft_drop(draft, "scale");
  for (size_t i = 0; i < sizeof old / sizeof *old; i++) draft_drop(draft, old[i]);
  draft_set_int(reader, draft, "is_causal", causal);
  if (window > 0) draft_set_int(reader, draft, "left_window_size", window - 1); /* which counts the query's own key */
}

/* What a key of each head without a value leaves of results y [B, heads, S, D]: the share of e^scores in their sum with
 * e^sink. sink: its scores, [heads]; NULL: they are 0. */
static Value *beside_sink(OnnxReader *reader, const Draft *draft, Value *y, Value *scores, Value *sink) {
  static const int64_t of_heads[] = {-1, 1, 1};
  Value *sum = node2(reader, draft, "ReduceLogSumExp", scores, one_int(reader, draft, -1));
  if (sink) {
    Value *of_keys = node2(reader, draft, "Reshape", sink, draft_ints(reader, draft, 3, of_heads));
    sum = node2(reader, draft, "Sub", sum, of_keys);
  }
  return node2(reader, draft, "Mul", y, node1(reader, draft, "Sigmoid", sum));
}

/* Queries, keys and values [B, S, heads * D]; they may stand side by side in the first input. */
static bool take_apart(OnnxReader *reader, const Draft *draft, int64_t heads, int64_t kv_heads, Value *parts[3]) {
  int64_t width;
  for (int i = 0; i < 3; i++) parts[i] = draft_input(draft, i);
  if (heads < 1 || kv_heads < 1) return contrib_refuse(reader, draft, "`num_heads` or `kv_num_heads` below 1");
  if (parts[KEY]) return true;
  if (!draft_last_extent(reader, draft, parts[0], &width) || width % (heads + 2 * kv_heads))
    return contrib_refuse(reader, draft, "packed queries, keys and values whose width is not that of the heads");
  int64_t head = width / (heads + 2 * kv_heads), ends[] = {0, heads * head, (heads + kv_heads) * head, INT64_MAX};
  for (int i = 2; i >= 0; i--) parts[i] = contrib_part(reader, draft, parts[0], ends[i], ends[i + 1]);
  return true;
}

bool adapt_group_query(OnnxReader *reader, Draft *draft) {
  int64_t heads = draft_int(draft, "num_heads", 0), kv_heads = draft_int(draft, "kv_num_heads", 0);
  Value *x[3];
  if (!refuse_others(reader, draft) || !take_apart(reader, draft, heads, kv_heads, x)) return false;
  for (int i = 0; i < 3; i++) x[i] = by_heads(reader, draft, x[i], i ? kv_heads : heads);
  for (int i = 0; i < 2; i++) x[i] = normalised(reader, draft, x[i], i ? K_NORM : Q_NORM);
  /* Samples that are filled up to S in the first call have less than S keys, and none before. */
  Value *flat = node2(reader, draft, "Reshape", draft->inputs[LENGTHS], one_int(reader, draft, -1));
  Value *last = draft_cast(reader, draft, flat, RNNCC_I64), *n = contrib_extent(reader, draft, x[KEY], 2);
  Value *lengths = node2(reader, draft, "Add", last, one_int(reader, draft, 1));
  Value *reached = node2(reader, draft, "Max", lengths, n), *first = node2(reader, draft, "Sub", reached, n);
  if (!turn(reader, draft, first, &x[0], &x[KEY])) return false;
  Value *past = draft_input(draft, PAST_KEY), *sink = draft_input(draft, SINK), *outputs[] = {NULL, NULL, NULL, NULL};
  bool has_sink = sink || draft_int(draft, "smooth_softmax", -1) == 1;
  for (int i = KEY; i <= VALUE; i++) {
    x[i] = with_past(reader, draft, draft_input(draft, i + 2), x[i], first);
    if (i < draft->n_outputs && draft->outputs[i])
      draft_node_onto(reader, draft, "Identity", 1, &x[i], draft->outputs[i]);
  }
  bool causal = draft_int(draft, "causal", 1) != 0;
  Value *const inputs[] = {
      x[0], x[KEY], x[VALUE], draft_input(draft, BIAS), NULL, NULL, past && causal ? reached : causal ? NULL : lengths};
  outputs[0] = draft->outputs[0];
  draft->inputs = arena_copy(reader->arena, inputs, sizeof inputs);
  draft->n_inputs = sizeof inputs / sizeof *inputs;
  draft->outputs = arena_copy(reader->arena, outputs, sizeof outputs);
  draft->n_outputs = has_sink ? 4 : 1;
  Value *output = draft_take_output(draft, 0), *y = draft->outputs[0];
  if (has_sink) {
    enum { SCORES = 3, WITH_BIAS = 2 };
    Value *scores = graph_value(draft->scope->graph, draft->name, draft->where);
    draft->outputs[SCORES] = scores;
    draft_set_int(reader, draft, "qk_matmul_output_mode", WITH_BIAS);
    y = beside_sink(reader, draft, y, scores, sink);
  }
  Value *apart = contrib_heads_together(reader, draft, y);
  draft_node_onto(reader, draft, "Identity", 1, &apart, output);
  rename_attributes(reader, draft);
  return true;
}
