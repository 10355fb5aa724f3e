/* SPDX-License-Identifier: MIT */
/*
 * FlexAttention of the domain ai.onnx.preview: attention whose scores and whose weights of the keys may pass through
 * bodies. Q [B, heads, L, D], K [B, kv_heads, S, D], V [B, kv_heads, S, V]; a body sees [B, heads, L, S].
 */
#include <math.h>
#include <string.h>

#include "ir/bodies.h"
#include "load/onnx/adapt.h"

static bool refuse(OnnxReader *reader, const Draft *draft, const char *what) {
  unsupported_add(&reader->unsupported, draft->name, "%s of FlexAttention", what);
  return false;
}

static bool check_body(OnnxReader *reader, const Draft *draft, const char *name) {
  const Attribute *given = draft_attribute(draft, name);
  if (!given) return true;
  bool fits = given->kind == ATTRIBUTE_GRAPH && given->graph->n_inputs == 1 && given->graph->n_outputs == 1;
  if (!fits) {
    error_at(draft->where, EXIT_INVALID, "`%s` of FlexAttention must be a graph of one input and one output", name);
    return false;
  }
  return !body_reads_outside(given->graph) || refuse(reader, draft, "a body that reads what is around it");
}

/* What the body makes of x; x without one. */
static Value *through_body(OnnxReader *reader, const Draft *draft, const char *name, Value *x) {
  const Attribute *given = draft_attribute(draft, name);
  if (!given) return x;
  Node **nodes = ARENA_ARRAY(reader->arena, Node *, given->graph->n_nodes);
  Value *result;
  int n = body_copy_nodes(draft->scope->graph, given->graph, &x, nodes, &result);
  for (int i = 0; i < n; i++) graph_append(draft->scope->graph, nodes[i]);
  return result;
}

/* [B, *, *, n] as [B, heads, *, n]: heads of queries that share keys are rows of one. */
static Value *with_heads(OnnxReader *reader, const Draft *draft, Value *x, int64_t heads) {
  const int64_t shape[] = {0, heads, -1, 0};
  return draft_node(reader, draft, "Reshape", 2, (Value *[]){x, draft_ints(reader, draft, 4, shape)});
}

/* scale Q K', [B, heads, L, S]. */
static Value *scores(OnnxReader *reader, const Draft *draft, int64_t heads, int64_t kv_heads, double scale) {
  static int64_t perm[] = {0, 1, 3, 2};
  const Attribute turned = {.name = "perm", .kind = ATTRIBUTE_INTS, .count = 4, .ints = perm};
  Value *keys = draft_node_with(reader, draft, "Transpose", 1, &draft->inputs[1], 1, &turned, NULL);
  Value *queries = with_heads(reader, draft, draft->inputs[0], kv_heads);
  Value *products = draft_node(reader, draft, "MatMul", 2, (Value *[]){queries, keys});
  Value *factor = draft_number(reader, draft, draft->inputs[0]->dtype, scale);
  Value *scaled = draft_node(reader, draft, "Mul", 2, (Value *[]){products, factor});
  return with_heads(reader, draft, scaled, heads);
}

/* Softmax is in f32, or in f64 of f64, which rnncc has no kernel of. */
static bool softmax_fits(const Draft *draft) {
  enum { FLOAT = 1 };
  return draft_int(draft, "softmax_precision", FLOAT) == FLOAT;
}

static bool read_heads(OnnxReader *reader, const Draft *draft, int64_t *heads, int64_t *kv_heads, int64_t *head) {
  for (int i = 0; i < 3; i++)
    if (!draft_input(draft, i) || draft_rank(reader, draft, draft->inputs[i]) != 4)
      return refuse(reader, draft, "an input that has not 4 axes");
  const Dim *const *q = draft->inputs[0]->shape, *const *k = draft->inputs[1]->shape;
  if (!dim_is_const(q[1]) || !dim_is_const(q[3]) || !dim_is_const(k[1]))
    return refuse(reader, draft, "heads of unknown number or size");
  *heads = dim_value(q[1]);
  *kv_heads = dim_value(k[1]);
  *head = dim_value(q[3]);
  if (*kv_heads > 0 && *heads % *kv_heads == 0 && *head > 0) return true;
  error_at(draft->where, EXIT_INVALID, "FlexAttention: %lld heads of queries must be a multiple of the %lld of keys",
           (long long)*heads, (long long)*kv_heads);
  return false;
}

bool adapt_flex_attention(OnnxReader *reader, Draft *draft) {
  const Attribute *given = draft_attribute(draft, "scale");
  const Attribute last = {.name = "axis", .kind = ATTRIBUTE_INT, .i = -1};
  int64_t heads, kv_heads, head;
  if (!read_heads(reader, draft, &heads, &kv_heads, &head) || !check_body(reader, draft, "score_mod") ||
      !check_body(reader, draft, "prob_mod"))
    return false;
  if (!softmax_fits(draft)) return refuse(reader, draft, "a `softmax_precision` other than f32");
  DType dtype = draft->inputs[0]->dtype;
  bool narrow = dtype_is_stored(dtype);
  Value *x = scores(reader, draft, heads, kv_heads,
                    given && given->kind == ATTRIBUTE_FLOAT ? given->f : 1 / sqrt((double)head));
  if (narrow) x = draft_cast(reader, draft, x, RNNCC_F32);
  x = through_body(reader, draft, "score_mod", x);
  x = draft_node_with(reader, draft, "Softmax", 1, &x, 1, &last, NULL);
  x = through_body(reader, draft, "prob_mod", x);
  if (narrow) x = draft_cast(reader, draft, x, dtype);
  x = with_heads(reader, draft, x, kv_heads);
  x = draft_node(reader, draft, "MatMul", 2, (Value *[]){x, draft->inputs[2]});
  const int64_t shape[] = {0, heads, -1, 0};
  Value *const inputs[] = {x, draft_ints(reader, draft, 4, shape)};
  draft->op = "Reshape";
  draft->inputs = arena_copy(reader->arena, inputs, sizeof inputs);
  draft->n_inputs = 2;
  draft->n_attributes = 0;
  return true;
}
