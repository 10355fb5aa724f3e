/* SPDX-License-Identifier: MIT */
/* Attention and what stands around it: rotary positions, gates, causal convolutions. */
#include "shapes/attention.h"

#include <math.h>

#include "shapes/shape.h"

/* ---- Attention ---- */

/* The last axis of [B, S, heads * D] in heads; 0 after an error. */
static int64_t packed_head(Graph *graph, const Node *node, int input, int64_t heads, AttributeName name) {
  const Value *x = node->inputs[input];
  const Dim *hidden = x->shape[2];
  if (!node_has(node, name)) {
    shape_error(node, "`%s` is needed, because input %d has rank 3: %s", attribute_name(name), input,
                shape_text(graph, x));
    return 0;
  }
  if (heads < 1) {
    shape_error(node, "`%s` is %lld; it must be at least 1", attribute_name(name), (long long)heads);
    return 0;
  }
  if (!dim_is_const(hidden)) {
    shape_unsupported(node, "axis 2 of %s must be constant", shape_text(graph, x));
    return 0;
  }
  if (dim_value(hidden) % heads || dim_value(hidden) == 0) {
    shape_error(node, "`%s` is %lld; it must divide axis 2 of %s", attribute_name(name), (long long)heads,
                shape_text(graph, x));
    return 0;
  }
  return dim_value(hidden) / heads;
}

/* The heads and their size of [B, heads, S, D]. */
static bool read_heads(Graph *graph, const Node *node, int input, AttributeName name, int64_t *heads, int64_t *head) {
  const Value *x = node->inputs[input];
  if (!dim_is_const(x->shape[1]) || !dim_is_const(x->shape[3]) || dim_value(x->shape[3]) == 0)
    return shape_unsupported(node, "the heads, axis 1, and their size, axis 3, must be constant and not 0, found %s",
                             shape_text(graph, x));
  *heads = dim_value(x->shape[1]);
  *head = dim_value(x->shape[3]);
  if (!node_has(node, name) || node_int(node, name) == *heads) return true;
  return shape_error(node, "`%s` is %lld; axis 1 of %s says otherwise", attribute_name(name),
                     (long long)node_int(node, name), shape_text(graph, x));
}

static bool read_operand(Graph *graph, const Node *node, int input, AttributeName name, bool packed, int64_t *heads,
                         int64_t *head) {
  if (!packed) return read_heads(graph, node, input, name, heads, head);
  *heads = node_has(node, name) ? node_int(node, name) : 0;
  *head = packed_head(graph, node, input, *heads, name);
  return *head > 0;
}

/* Heads and sizes of Q, K and V. */
static bool read_sizes(Graph *graph, const Node *node, Attention *a) {
  int64_t v_heads, k_head;
  if (!read_operand(graph, node, 0, ATTR_q_num_heads, a->packed, &a->q_heads, &a->head) ||
      !read_operand(graph, node, 1, ATTR_kv_num_heads, a->packed, &a->kv_heads, &k_head) ||
      !read_operand(graph, node, 2, ATTR_kv_num_heads, a->packed, &v_heads, &a->v_head))
    return false;
  if (k_head != a->head || v_heads != a->kv_heads)
    return shape_error(node, "%lld heads of %lld in %s and %lld of %lld in %s do not fit queries' heads of %lld",
                       (long long)a->kv_heads, (long long)k_head, shape_text(graph, node->inputs[1]),
                       (long long)v_heads, (long long)a->v_head, shape_text(graph, node->inputs[2]),
                       (long long)a->head);
  return (a->kv_heads > 0 && a->q_heads % a->kv_heads == 0) ||
         shape_error(node, "%lld heads of queries must be a multiple of the %lld of keys", (long long)a->q_heads,
                     (long long)a->kv_heads);
}

/* Batches, and as many keys as values. */
static bool check_extents(Graph *graph, const Node *node, const Attention *a) {
  int along = a->packed ? 1 : 2;
  const Value *const *x = (const Value *const *)node->inputs;
  for (int i = 1; i < 3; i++)
    if (!same_dim(x[i]->shape[0], a->batch))
      return shape_error(node, "the batches of %s and %s differ", shape_text(graph, x[0]), shape_text(graph, x[i]));
  return same_dim(x[1]->shape[along], x[2]->shape[along]) ||
         shape_error(node, "%s and %s must have as many keys as values", shape_text(graph, x[1]),
                     shape_text(graph, x[2]));
}

/* [B, heads, P, D] and [B, heads, P, V], or neither. */
static bool read_past(Graph *graph, const Node *node, Attention *a) {
  const Value *key = node_input(node, 4), *value = node_input(node, 5);
  DimTable *dims = graph->dims;
  a->past = dim_const(dims, 0);
  if (!key && !value) return true;
  if (!key || !value) return shape_error(node, "past_key (input 4) and past_value (input 5) belong together");
  if (node_input(node, 6))
    return shape_error(node, "past_key (input 4) and nonpad_kv_seqlen (input 6) exclude each other");
  if (!check_rank(graph, node, 4, 4, 4)) return false;
  a->past = key->shape[2];
  const Dim *heads = dim_const(dims, a->kv_heads);
  const Dim *keys[] = {a->batch, heads, a->past, dim_const(dims, a->head)};
  const Dim *values[] = {a->batch, heads, a->past, dim_const(dims, a->v_head)};
  return check_shape(graph, node, 4, 4, keys, "[batch, kv_heads, past, head]") &&
         check_shape(graph, node, 5, 4, values, "[batch, kv_heads, past, v_head]");
}

/* Broadcasts to [B, heads, S, T]; the last axis may be shorter, and more is masked then. */
static bool check_mask(Graph *graph, const Node *node, const Attention *a) {
  const Value *mask = node_input(node, 3);
  const Dim *wanted[] = {a->batch, dim_const(graph->dims, a->q_heads), a->queries, a->keys};
  if (!mask) return true;
  if (!check_rank(graph, node, 3, 1, 4)) return false;
  for (int axis = 0; axis < mask->rank - 1; axis++)
    if (!dim_equals(mask->shape[axis], 1) && !same_dim(mask->shape[axis], wanted[axis + 4 - mask->rank])) {
      Text text = text_new(graph->arena);
      dims_print(&text, 4, wanted);
      return shape_error(node, "the mask, %s, does not broadcast to %s", shape_text(graph, mask), text.data);
    }
  const Dim *last = mask->shape[mask->rank - 1];
  if (same_dim(last, a->keys)) return true;
  if (!dim_is_const(last) || !dim_is_const(a->keys))
    return shape_unsupported(node, "the mask, %s, must have an element for each of %s keys", shape_text(graph, mask),
                             dim_text(graph, a->keys));
  return dim_value(last) < dim_value(a->keys) ||
         shape_error(node, "the mask, %s, has more elements in a row than there are keys, %s", shape_text(graph, mask),
                     dim_text(graph, a->keys));
}

static bool check_int(const Node *node, AttributeName name, int64_t least, int64_t most) {
  int64_t value = node_int(node, name);
  return (value >= least && value <= most) ||
         shape_error(node, "`%s` is %lld; it must be in %lld..%lld", attribute_name(name), (long long)value,
                     (long long)least, (long long)most);
}

/* A narrower softmax is computed in f32. */
static bool check_attributes(const Node *node) {
  const Attribute *precision = node_attribute(node, ATTR_softmax_precision);
  if (precision && !dtype_is_float(node_dtype(node, ATTR_softmax_precision)))
    return shape_error(node, "`softmax_precision` is \"%.40s\"; it must be a type of floats", precision->s);
  if (node_float(node, ATTR_softcap) < 0)
    return shape_error(node, "`softcap` is %g; it must not be negative", node_float(node, ATTR_softcap));
  return check_int(node, ATTR_is_causal, 0, 1) && check_int(node, ATTR_qk_matmul_output_mode, 0, 3) &&
         check_int(node, ATTR_left_window_size, -1, INT32_MAX) &&
         check_int(node, ATTR_right_window_size, -1, INT32_MAX);
}

bool read_attention(Graph *graph, const Node *node, Attention *a) {
  int rank = node->inputs[0]->rank;
  if (!check_rank(graph, node, 0, 3, 4)) return false;
  for (int input = 1; input < 3; input++)
    if (!check_rank(graph, node, input, rank, rank)) return false;
  *a = (Attention){.packed = rank == 3, .batch = node->inputs[0]->shape[0]};
  a->queries = node->inputs[0]->shape[a->packed ? 1 : 2];
  if (!check_attributes(node) || !read_sizes(graph, node, a) || !check_extents(graph, node, a) ||
      !read_past(graph, node, a))
    return false;
  a->keys = dim_add(graph->dims, a->past, node->inputs[1]->shape[a->packed ? 1 : 2]);
  a->scale = node_has(node, ATTR_scale) ? node_float(node, ATTR_scale) : 1 / sqrt((double)a->head);
  return check_mask(graph, node, a) && check_shape(graph, node, 6, 1, &a->batch, "the lengths, [batch]");
}

bool shape_attention(Graph *graph, Node *node) {
  Attention a;
  if (!read_attention(graph, node, &a)) return false;
  DimTable *dims = graph->dims;
  const Dim *q_heads = dim_const(dims, a.q_heads), *kv_heads = dim_const(dims, a.kv_heads);
  const Dim *packed[] = {a.batch, a.queries, dim_mul(dims, q_heads, dim_const(dims, a.v_head))};
  const Dim *apart[] = {a.batch, q_heads, a.queries, dim_const(dims, a.v_head)};
  const Dim *keys[] = {a.batch, kv_heads, a.keys, dim_const(dims, a.head)};
  const Dim *values[] = {a.batch, kv_heads, a.keys, dim_const(dims, a.v_head)};
  const Dim *scores[] = {a.batch, q_heads, a.queries, a.keys};
  set_shape(graph, node, 1, 4, keys);
  set_shape(graph, node, 2, 4, values);
  set_shape(graph, node, 3, 4, scores);
  return set_shape(graph, node, 0, a.packed ? 3 : 4, a.packed ? packed : apart);
}

/* ---- RotaryEmbedding ---- */

/* Cosines or sines: [positions, turned / 2] with position_ids [B, S], else [B, S, turned / 2]. */
static bool check_turns(Graph *graph, const Node *node, int input, const Rotary *rotary, const Dim *const *rows) {
  const Value *table = node->inputs[input];
  bool by_position = node_input(node, 3);
  if (!check_rank(graph, node, input, by_position ? 2 : 3, by_position ? 2 : 3)) return false;
  if (!dim_equals(table->shape[table->rank - 1], rotary->turned / 2))
    return shape_error(node, "the last axis of %s must be %lld, half of the elements that are turned",
                       shape_text(graph, table), (long long)(rotary->turned / 2));
  const Dim *wanted[] = {rows[0], rows[1], table->shape[table->rank - 1]};
  return by_position || check_shape(graph, node, input, 3, wanted, "[batch, sequence, half of a head]");
}

bool read_rotary(Graph *graph, const Node *node, Rotary *rotary) {
  const Value *x = node->inputs[0];
  if (!check_rank(graph, node, 0, 3, 4)) return false;
  *rotary = (Rotary){.packed = x->rank == 3};
  if (!read_operand(graph, node, 0, ATTR_num_heads, rotary->packed, &rotary->heads, &rotary->head)) return false;
  rotary->turned = node_int(node, ATTR_rotary_embedding_dim);
  if (rotary->turned == 0) rotary->turned = rotary->head;
  if (rotary->turned < 0 || rotary->turned > rotary->head || rotary->turned % 2)
    return shape_error(node, "%lld elements of heads of %lld cannot be turned; expected an even number of them",
                       (long long)rotary->turned, (long long)rotary->head);
  const Dim *rows[] = {x->shape[0], x->shape[rotary->packed ? 1 : 2]};
  return check_shape(graph, node, 3, 2, rows, "the positions, [batch, sequence]") &&
         check_turns(graph, node, 1, rotary, rows) && check_turns(graph, node, 2, rotary, rows);
}

bool shape_rotary(Graph *graph, Node *node) {
  Rotary rotary;
  return read_rotary(graph, node, &rotary) && shape_same(graph, node);
}

/* ---- gates and causal convolutions ---- */

bool shape_swiglu(Graph *graph, Node *node) {
  const Value *x = node->inputs[0];
  return check_shape(graph, node, 1, x->rank, x->shape, "like input 0") && shape_same(graph, node);
}

/* x [B, C, L], w [C, 1, K], bias [C], past [B, C, K - 1]. */
bool shape_causal_conv(Graph *graph, Node *node) {
  if (!check_rank(graph, node, 0, 3, 3) || !check_rank(graph, node, 1, 3, 3)) return false;
  const Value *x = node->inputs[0], *w = node->inputs[1];
  if (!dim_is_const(x->shape[1]) || !dim_is_const(w->shape[2]) || dim_value(w->shape[2]) < 1)
    return shape_unsupported(node, "the channels of %s and the taps of %s must be constant, at least 1",
                             shape_text(graph, x), shape_text(graph, w));
  DimTable *dims = graph->dims;
  const Dim *taps[] = {x->shape[1], dim_const(dims, 1), w->shape[2]};
  const Dim *past[] = {x->shape[0], x->shape[1], dim_sub(dims, w->shape[2], dim_const(dims, 1))};
  if (!check_shape(graph, node, 1, 3, taps, "the taps, [channels, 1, k]") ||
      !check_shape(graph, node, 2, 1, &x->shape[1], "the bias, [channels]") ||
      !check_shape(graph, node, 3, 3, past, "the state, [batch, channels, k - 1]"))
    return false;
  set_shape(graph, node, 1, 3, past);
  return shape_same(graph, node);
}

/* ---- LinearAttention ---- */

/* Which inputs the rule has: 4 is the decay, 5 the rate. */
static bool check_rule(const Node *node, int input, const char *what, bool wanted) {
  if (!node_input(node, input) == !wanted) return true;
  return shape_error(node, "`update_rule` \"%s\" %s %s (input %d)", node_string(node, ATTR_update_rule),
                     wanted ? "needs" : "has no", what, input);
}

static bool check_last(Graph *graph, const Node *node, int input, const LinearAttention *l, int64_t one,
                       int64_t other) {
  const Value *value = node_input(node, input);
  if (!value) return true;
  if (!check_rank(graph, node, input, 3, 3)) return false;
  if (!same_dim(value->shape[0], l->batch) || !same_dim(value->shape[1], l->steps) ||
      !(dim_equals(value->shape[2], one) || dim_equals(value->shape[2], other)))
    return shape_error(node, "input %d must be [batch, steps, %lld or %lld], found %s", input, (long long)one,
                       (long long)other, shape_text(graph, value));
  return true;
}

static bool read_linear_sizes(Graph *graph, const Node *node, LinearAttention *l) {
  int64_t heads = l->kv_heads = node_int(node, ATTR_kv_num_heads);
  l->q_heads = node_int(node, ATTR_q_num_heads);
  l->head = packed_head(graph, node, 0, l->q_heads, ATTR_q_num_heads);
  int64_t k_head = l->head ? packed_head(graph, node, 1, heads, ATTR_kv_num_heads) : 0;
  l->v_head = k_head ? packed_head(graph, node, 2, heads, ATTR_kv_num_heads) : 0;
  if (!l->v_head) return false;
  if (l->q_heads % heads)
    return shape_error(node, "`q_num_heads` is %lld; it must be a multiple of `kv_num_heads`, %lld",
                       (long long)l->q_heads, (long long)heads);
  return k_head == l->head || shape_error(node, "heads of %lld in %s do not fit queries' heads of %lld",
                                          (long long)k_head, shape_text(graph, node->inputs[1]), (long long)l->head);
}

static bool check_linear_inputs(Graph *graph, const Node *node, const LinearAttention *l) {
  for (int input = 1; input < 3; input++) {
    const Dim *wanted[] = {l->batch, l->steps, node->inputs[input]->shape[2]};
    if (!check_shape(graph, node, input, 3, wanted, "[batch, steps, heads]")) return false;
  }
  const Dim *state[] = {l->batch, dim_const(graph->dims, l->kv_heads), dim_const(graph->dims, l->head),
                        dim_const(graph->dims, l->v_head)};
  return check_shape(graph, node, 3, 4, state, "the state, [batch, kv_heads, head, v_head]") &&
         check_rule(node, 4, "decay", l->gated) && check_rule(node, 5, "beta", l->delta) &&
         check_last(graph, node, 4, l, l->kv_heads, l->kv_heads * l->head) &&
         check_last(graph, node, 5, l, l->kv_heads, 1);
}

bool read_linear_attention(Graph *graph, const Node *node, LinearAttention *l) {
  for (int input = 0; input < 3; input++)
    if (!check_rank(graph, node, input, 3, 3)) return false;
  int rule = node_word(node, ATTR_update_rule);
  *l = (LinearAttention){.batch = node->inputs[0]->shape[0], .steps = node->inputs[0]->shape[1]};
  l->gated = rule == UPDATE_gated || rule == UPDATE_gated_delta;
  l->delta = rule == UPDATE_delta || rule == UPDATE_gated_delta;
  if (!read_linear_sizes(graph, node, l)) return false;
  l->scale = node_float(node, ATTR_scale) != 0 ? node_float(node, ATTR_scale) : 1 / sqrt((double)l->head);
  return check_linear_inputs(graph, node, l);
}

bool shape_linear_attention(Graph *graph, Node *node) {
  LinearAttention l;
  if (!read_linear_attention(graph, node, &l)) return false;
  const Dim *width = dim_mul(graph->dims, dim_const(graph->dims, l.q_heads), dim_const(graph->dims, l.v_head));
  const Dim *output[] = {l.batch, l.steps, width};
  const Dim *state[] = {l.batch, dim_const(graph->dims, l.kv_heads), dim_const(graph->dims, l.head),
                        dim_const(graph->dims, l.v_head)};
  if (node_output(node, 1)) node->outputs[1]->dtype = (node_input(node, 3) ? node->inputs[3] : node->inputs[0])->dtype;
  set_shape(graph, node, 1, 4, state);
  return set_shape(graph, node, 0, 3, output);
}
