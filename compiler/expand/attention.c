/* SPDX-License-Identifier: MIT */
/*
 * Attention in the form in which exporters write it: softmax(scale Q K' + bias) V. Queries that share a head of keys
 * are rows of one product, so that keys and values need not be repeated: [B, q_heads, S, D] is [B, kv_heads, group S,
 * D].
 */
#include "shapes/attention.h"

#include <math.h>

#include "expand/expansion.h"
#include "ir/tensor.h"
#include "shapes/shape.h"
#include "support/diagnostics.h"

enum { MAX_CONSTANT_BIAS = 1 << 20 }; /* elements of a causal mask that the module stores */

static const Dim *constant(const Formula *f, int64_t value) { return dim_const(f->graph->dims, value); }

/* [B, S, heads * D] as [B, S, heads, D]. */
static Value *apart(const Formula *f, Value *x, int64_t heads, int64_t head) {
  const Dim *shape[] = {x->shape[0], x->shape[1], constant(f, heads), constant(f, head)};
  return reshaped(f, x, 4, shape);
}

/* [B, heads, S, D] of a packed operand; others have that shape. */
static Value *by_heads(const Formula *f, const Attention *a, Value *x, int64_t heads, int64_t head) {
  static const int64_t perm[] = {0, 2, 1, 3};
  return a->packed ? build_transpose(f, apart(f, x, heads, head), perm) : x;
}

static Value *with_past(const Formula *f, Value *past, Value *x) {
  return past ? build_concat(f, 2, (Value *const[]){past, x}, 2) : x;
}

/* ---- the bias ---- */

static Value *both(const Formula *f, Value *a, Value *b) { return a ? apply2(f, OP_And, a, b) : b; }

/* How many keys of each sample count, [B, 1, 1, 1]; NULL: all do. One below 0, or of more keys than there are, is no
 * place of a list of all that it may be, so such a run fails. */
static Value *key_lengths(const Formula *f, const Node *node, Value *k) {
  Value *lengths = node_input(node, 6);
  if (!lengths) return NULL;
  Value *one = integers(f, 1, (const int64_t[]){1}), *none = integers(f, 1, (const int64_t[]){0});
  Value *all = apply3(f, OP_Range, none, plus(f, build_extent(f, k, 2), one), one);
  const Dim *shape[] = {lengths->shape[0], constant(f, 1), constant(f, 1), constant(f, 1)};
  return build_reshape(f, gathered(f, all, counted_from_start(f, lengths), 0), 4, shape);
}

/* Keys before a row's query, which are places of keys minus that of the query: [S, 1] or, by lengths, [B, 1, S, 1]. */
static Value *query_places(const Formula *f, const Node *node, Value *q, Value *lengths) {
  Value *places_of_queries = with_axis(f, places_along(f, q, 2), 1);
  if (node_input(node, 4)) return plus(f, places_of_queries, build_extent(f, node->inputs[4], 2));
  return lengths ? plus(f, places_of_queries, minus(f, lengths, build_extent(f, q, 2))) : places_of_queries;
}

/* Where a query may see a key, by their places; NULL: everywhere. */
static Value *allowed_places(const Formula *f, const Node *node, Value *q, Value *k) {
  int64_t left = node_int(node, ATTR_left_window_size), right = node_int(node, ATTR_right_window_size);
  bool causal = node_int(node, ATTR_is_causal) != 0;
  Value *allowed = NULL, *keys = places_along(f, k, 2), *lengths = key_lengths(f, node, k);
  if (causal || left >= 0 || right >= 0) {
    Value *queries = query_places(f, node, q, lengths);
    if (causal) allowed = apply2(f, OP_LessOrEqual, keys, queries);
    if (left >= 0)
      allowed =
          both(f, allowed, apply2(f, OP_GreaterOrEqual, keys, minus(f, queries, number(f, queries, (double)left))));
    if (right >= 0)
      allowed = both(f, allowed, apply2(f, OP_LessOrEqual, keys, plus(f, queries, number(f, queries, (double)right))));
  }
  return lengths ? both(f, allowed, apply2(f, OP_Less, keys, lengths)) : allowed;
}

/* The same of extents that are known, as a constant bias [S, T]. */
static Value *constant_places(const Formula *f, const Node *node, const Attention *a) {
  int64_t left = node_int(node, ATTR_left_window_size), right = node_int(node, ATTR_right_window_size);
  int64_t S = dim_value(a->queries), T = dim_value(a->keys), past = dim_value(a->past);
  if (node_int(node, ATTR_is_causal)) right = 0;
  float *bias = ARENA_ARRAY(f->graph->arena, float, S *T);
  for (int64_t s = 0; s < S; s++)
    for (int64_t t = 0; t < T; t++) {
      int64_t ahead = t - (s + past);
      bool allowed = (right < 0 || ahead <= right) && (left < 0 || -ahead <= left);
      bias[s * T + t] = allowed ? 0 : -INFINITY;
    }
  return floats(f, 2, (const int64_t[]){S, T}, bias);
}

static bool places_known(const Node *node, const Attention *a) {
  if (!dim_is_const(a->queries) || !dim_is_const(a->keys) || !dim_is_const(a->past) || node_input(node, 6))
    return false;
  return dim_value(a->keys) > 0 && dim_value(a->queries) <= MAX_CONSTANT_BIAS / dim_value(a->keys);
}

static Value *as_bias(const Formula *f, Value *allowed) {
  Value *none = floats(f, 0, NULL, (const float[]){0});
  return apply3(f, OP_Where, allowed, none, floats(f, 0, NULL, (const float[]){-INFINITY}));
}

static Value *bias_of_places(const Formula *f, const Node *node, const Attention *a, Value *q, Value *k) {
  bool windowed = node_int(node, ATTR_left_window_size) >= 0 || node_int(node, ATTR_right_window_size) >= 0;
  if (!node_int(node, ATTR_is_causal) && !windowed && !node_input(node, 6)) return NULL;
  if (places_known(node, a)) return constant_places(f, node, a);
  return as_bias(f, allowed_places(f, node, q, k));
}

/* The mask of true and false in numbers, as a constant if it is one. */
static Value *mask_in_numbers(const Formula *f, Value *mask) {
  int64_t shape[MAX_RANK];
  if (mask->dtype != RNNCC_BOOL) return mask;
  if (!mask->data) return as_bias(f, mask);
  float *bias = ARENA_ARRAY(f->graph->arena, float, value_count(mask));
  for (int64_t i = 0; i < value_count(mask); i++) bias[i] = value_element(mask, i) != 0 ? 0 : -INFINITY;
  for (int axis = 0; axis < mask->rank; axis++) shape[axis] = dim_value(mask->shape[axis]);
  return floats(f, mask->rank, shape, bias);
}

/* Keys that the mask does not reach are masked. */
static Value *reaching(const Formula *f, Value *bias, const Dim *keys) {
  int last = bias->rank - 1;
  int64_t pads[2 * MAX_RANK] = {0};
  if (same_dim(bias->shape[last], keys)) return bias;
  pads[2 * bias->rank - 1] = dim_value(keys) - dim_value(bias->shape[last]);
  Value *const inputs[] = {bias, integers(f, 2 * bias->rank, pads), floats(f, 0, NULL, (const float[]){-INFINITY})};
  return build_op(f, OP_Pad, 3, inputs, 1, 0, NULL)->outputs[0];
}

static Value *bias_of(const Formula *f, const Node *node, const Attention *a, Value *q, Value *k) {
  Value *mask = node_input(node, 3), *by_place = bias_of_places(f, node, a, q, k);
  if (!mask) return by_place;
  mask = reaching(f, mask_in_numbers(f, mask), a->keys);
  return by_place ? plus(f, mask, by_place) : mask;
}

/* Does each row of a constant bias leave a key? Other biases may not. */
static bool leaves_keys(const Value *bias) {
  int64_t T = bias->data ? dim_value(bias->shape[bias->rank - 1]) : 0;
  for (int64_t row = 0; T && row < value_count(bias) / T; row++) {
    int64_t masked = 0;
    while (masked < T && value_element(bias, row * T + masked) == -INFINITY) masked++;
    if (masked == T) return false;
  }
  return T > 0;
}

/* Is the place of a key first, and nothing else masked? Then each query sees that one. */
static bool only_causal(const Node *node) {
  return !node_input(node, 3) && !node_input(node, 6) && node_int(node, ATTR_left_window_size) < 0;
}

/* Rows of queries that see no key are 0, where softmax is not a number. */
static Value *without_blind_rows(const Formula *f, const Node *node, Value *bias, Value *x) {
  if (!bias || only_causal(node) || leaves_keys(bias)) return x;
  const int64_t last = -1;
  Value *most = reduced(f, OP_ReduceMax, bias, 1, &last);
  Value *blind = apply2(f, OP_Equal, most, floats(f, 0, NULL, (const float[]){-INFINITY}));
  return apply3(f, OP_Where, blind, number(f, x, 0), x);
}

/* ---- scores ---- */

/* Keys as [B, kv_heads, D, T]: of packed ones nobody else reads, in one step. */
static Value *keys_turned(const Formula *f, const Node *node, const Attention *a, Value *k) {
  static const int64_t packed[] = {0, 2, 3, 1}, apart_already[] = {0, 1, 3, 2};
  bool whole = a->packed && !node_input(node, 4) && !node_output(node, 1);
  if (whole) return build_transpose(f, apart(f, node->inputs[1], a->kv_heads, a->head), packed);
  return build_transpose(f, k, apart_already);
}

/* [B, q_heads, S, X] as [B, kv_heads, group S, X], or back. */
static Value *grouped(const Formula *f, const Attention *a, Value *x, bool back) {
  int64_t group = a->q_heads / a->kv_heads;
  const Dim *rows = back ? a->queries : dim_mul(f->graph->dims, a->queries, constant(f, group));
  const Dim *shape[] = {x->shape[0], constant(f, back ? a->q_heads : a->kv_heads), rows, x->shape[3]};
  return group == 1 ? x : reshaped(f, x, 4, shape);
}

static Value *scaled(const Formula *f, Value *x, double scale) {
  return scale == 1 ? x : times(f, x, number(f, x, scale));
}

static Value *capped(const Formula *f, Value *x, double cap) {
  if (cap == 0) return x;
  Value *limit = number(f, x, cap);
  return times(f, apply(f, OP_Tanh, over(f, x, limit)), limit);
}

/* Over the keys; in f64 if the node asks for it. */
static Value *softmax(const Formula *f, const Node *node, Value *x) {
  const int64_t keys = -1;
  const Attribute last = attribute_int(ATTR_axis, keys);
  if (node_dtype(node, ATTR_softmax_precision) != RNNCC_F64)
    return build_op(f, OP_Softmax, 1, &x, 1, 1, &last)->outputs[0];
  Value *wide = cast(f, x, RNNCC_F64);
  Value *power = apply(f, OP_Exp, minus(f, wide, reduced(f, OP_ReduceMax, wide, 1, &keys)));
  return cast(f, over(f, power, reduced(f, OP_ReduceSum, power, 1, &keys)), x->dtype);
}

/* What output 3 shows of the scores: as they are, capped, with the bias, after softmax. */
static Value *shown(const Formula *f, const Node *node, Value *bias, Value *const stages[4]) {
  int64_t mode = node_int(node, ATTR_qk_matmul_output_mode);
  return mode == 3 ? without_blind_rows(f, node, bias, stages[3]) : stages[mode];
}

static bool same_for_heads(const Value *bias) { return bias->rank < 3 || dim_equals(bias->shape[bias->rank - 3], 1); }

/* The bias of a head for the rows of a group of heads. */
static Value *for_group(const Formula *f, const Attention *a, Value *bias) {
  int64_t group = a->q_heads / a->kv_heads;
  if (!bias || group == 1 || bias->rank < 2 || dim_equals(bias->shape[bias->rank - 2], 1)) return bias;
  Value **copies = ARENA_ARRAY(f->graph->arena, Value *, group);
  for (int64_t i = 0; i < group; i++) copies[i] = bias;
  return build_concat(f, (int)group, copies, bias->rank - 2);
}

/* [B, q_heads, S, V]. Groups of heads stay together unless the scores of each head are wanted. */
static Value *attended(const Formula *f, const Node *node, const Attention *a, Value *q, Value *k, Value *v,
                       Value **scores_shown) {
  Value *bias = bias_of(f, node, a, q, k), *stages[4];
  Value *product = apply2(f, OP_MatMul, grouped(f, a, q, false), keys_turned(f, node, a, k));
  bool heads_apart = node_output(node, 3) || (bias && !same_for_heads(bias));
  Value *added = heads_apart ? bias : for_group(f, a, bias);
  if (heads_apart) product = grouped(f, a, product, true);
  stages[0] = scaled(f, product, a->scale);
  stages[1] = capped(f, stages[0], node_float(node, ATTR_softcap));
  stages[2] = added ? plus(f, stages[1], added) : stages[1];
  stages[3] = softmax(f, node, stages[2]);
  if (node_output(node, 3)) *scores_shown = shown(f, node, bias, stages);
  Value *weights = heads_apart ? grouped(f, a, stages[3], false) : stages[3];
  Value *y = grouped(f, a, apply2(f, OP_MatMul, weights, v), true);
  return without_blind_rows(f, node, bias, y);
}

void expand_attention(const Formula *f, const Node *node, Value **results) {
  static const int64_t perm[] = {0, 2, 1, 3};
  Attention a;
  if (!read_attention(f->graph, node, &a)) bug("Attention was good before");
  Value *q = by_heads(f, &a, node->inputs[0], a.q_heads, a.head);
  Value *k = with_past(f, node_input(node, 4), by_heads(f, &a, node->inputs[1], a.kv_heads, a.head));
  Value *v = with_past(f, node_input(node, 5), by_heads(f, &a, node->inputs[2], a.kv_heads, a.v_head));
  Value *scores = NULL, *y = attended(f, node, &a, q, k, v, &scores);
  Value *const all[] = {a.packed ? build_transpose(f, y, perm) : y, k, v, scores};
  for (int i = 0; i < node->n_outputs; i++) results[i] = all[i];
  if (!a.packed) return;
  const Dim *shape[] = {a.batch, a.queries, constant(f, a.q_heads * a.v_head)};
  results[0] = reshaped(f, results[0], 3, shape);
}
