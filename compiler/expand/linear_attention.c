/* SPDX-License-Identifier: MIT */
/*
 * Linear attention: a state of the size of a head, S, to which each step adds an outer product and which it reads.
 * One step is a formula; more of them are a Scan whose body it is.
 *   S' = exp(decay) S;  v' = beta (v - k S')  or v;  S = S' + k' v';  y = scale q S
 */
#include "expand/expansion.h"
#include "ir/bodies.h"
#include "shapes/attention.h"
#include "shapes/shape.h"
#include "support/diagnostics.h"

/* Of one step: q [B, kv_heads, group, D], k [B, kv_heads, 1, D], v [B, kv_heads, 1, V], decay [B, kv_heads, D or 1, 1],
 * beta [B, kv_heads or 1, 1, 1]; the state is [B, kv_heads, D, V]. */
typedef struct Step {
  Value *state, *q, *k, *v, *decay, *beta;
} Step;
enum { MAX_SCANNED = 5 };

/* The state after the step; *y [B, kv_heads, group, V] is what the queries read. */
static Value *stepped(const Formula *f, const Step *s, double scale, Value **y) {
  static const int64_t turned[] = {0, 1, 3, 2};
  Value *state = s->state, *v = s->v;
  if (s->decay) state = times(f, state, apply(f, OP_Exp, s->decay));
  if (s->beta) v = times(f, s->beta, minus(f, v, apply2(f, OP_MatMul, s->k, state)));
  state = plus(f, state, times(f, build_transpose(f, s->k, turned), v));
  *y = times(f, apply2(f, OP_MatMul, s->q, state), number(f, state, scale));
  return state;
}

/* [B, T, heads * rows * columns] as [T, B, heads, rows, columns]. */
static Value *by_steps(const Formula *f, Value *x, int64_t heads, int64_t rows, int64_t columns) {
  static const int64_t perm[] = {1, 0, 2, 3, 4};
  DimTable *dims = f->graph->dims;
  const Dim *shape[] = {x->shape[0], x->shape[1], dim_const(dims, heads), dim_const(dims, rows),
                        dim_const(dims, columns)};
  return build_transpose(f, reshaped(f, x, 5, shape), perm);
}

/* What each step reads, in the order of Step's fields; returns how many there are. */
static int scanned_values(const Formula *f, const Node *node, const LinearAttention *l, Value **values) {
  Value *decay = node_input(node, 4), *beta = node_input(node, 5);
  int n = 0;
  values[n++] = by_steps(f, node->inputs[0], l->kv_heads, l->q_heads / l->kv_heads, l->head);
  values[n++] = by_steps(f, node->inputs[1], l->kv_heads, 1, l->head);
  values[n++] = by_steps(f, node->inputs[2], l->kv_heads, 1, l->v_head);
  if (decay) values[n++] = by_steps(f, decay, l->kv_heads, dim_value(decay->shape[2]) / l->kv_heads, 1);
  if (beta) values[n++] = by_steps(f, beta, dim_value(beta->shape[2]), 1, 1);
  return n;
}

static Step step_of(const LinearAttention *l, Value *state, Value *const *read) {
  Step step = {.state = state, .q = read[0], .k = read[1], .v = read[2]};
  if (l->gated) step.decay = read[3];
  if (l->delta) step.beta = read[l->gated ? 4 : 3];
  return step;
}

/* The given one, or zeros. */
static Value *first_state(const Formula *f, const Node *node, const LinearAttention *l) {
  const int64_t shape[] = {l->kv_heads, l->head, l->v_head};
  if (node_input(node, 3)) return node->inputs[3];
  Value *batch = build_extent(f, node->inputs[0], 0);
  Value *wanted = build_concat(f, 2, (Value *const[]){batch, integers(f, 3, shape)}, 0);
  return apply2(f, OP_Expand, floats(f, 0, NULL, (const float[]){0}), wanted);
}

/* An input of the body, like one step of the value or, of the state, like it. */
static Value *body_input(const Formula *f, Graph *body, const Value *outer, int first_axis) {
  Value *input = graph_value(body, f->name, f->where);
  input->is_input = true;
  input->dtype = outer->dtype;
  input->rank = outer->rank - first_axis;
  input->shape = outer->shape + first_axis;
  body->inputs[body->n_inputs++] = input;
  return input;
}

static Graph *body_of(const Formula *f, const LinearAttention *l, const Value *state, int n, Value *const *scanned) {
  Graph *body = body_new(f->graph, f->name);
  const Formula inner = {body, f->name, f->where};
  Value *read[MAX_SCANNED];
  body->inputs = ARENA_ARRAY(f->graph->arena, Value *, n + 1);
  body->outputs = ARENA_ARRAY(f->graph->arena, Value *, 2);
  Value *carried = body_input(f, body, state, 0);
  for (int i = 0; i < n; i++) read[i] = body_input(f, body, scanned[i], 1);
  Step step = step_of(l, carried, read);
  body->outputs[0] = stepped(&inner, &step, l->scale, &body->outputs[1]);
  body->n_outputs = 2;
  return body;
}

/* y [T, B, kv_heads, group, V]; *state becomes the last one. */
static Value *scanned_steps(const Formula *f, const LinearAttention *l, Value **state, int n, Value *const *scanned) {
  Value *inputs[MAX_SCANNED + 1] = {*state};
  for (int i = 0; i < n; i++) inputs[i + 1] = scanned[i];
  const Attribute attributes[] = {
      {.id = ATTR_body, .kind = ATTRIBUTE_GRAPH, .graph = body_of(f, l, *state, n, scanned)},
      attribute_int(ATTR_num_scan_inputs, n)};
  Node *scan = build_op(f, OP_Scan, n + 1, inputs, 2, 2, attributes);
  *state = scan->outputs[0];
  return scan->outputs[1];
}

/* A single step needs no loop. */
static Value *one_step(const Formula *f, const LinearAttention *l, Value **state, int n, Value *const *scanned) {
  Value *read[MAX_SCANNED], *y, *first = integers(f, 1, (const int64_t[]){0});
  for (int i = 0; i < n; i++) read[i] = apply2(f, OP_Squeeze, scanned[i], first);
  Step step = step_of(l, *state, read);
  *state = stepped(f, &step, l->scale, &y);
  return with_axis(f, y, 0);
}

void expand_linear_attention(const Formula *f, const Node *node, Value **results) {
  static const int64_t perm[] = {1, 0, 2, 3, 4};
  LinearAttention l;
  Value *scanned[MAX_SCANNED];
  if (!read_linear_attention(f->graph, node, &l)) bug("LinearAttention was good before");
  int n = scanned_values(f, node, &l, scanned);
  Value *state = first_state(f, node, &l);
  Value *y = dim_equals(l.steps, 1) ? one_step(f, &l, &state, n, scanned) : scanned_steps(f, &l, &state, n, scanned);
  const Dim *shape[] = {l.batch, l.steps, dim_const(f->graph->dims, l.q_heads * l.v_head)};
  results[0] = reshaped(f, build_transpose(f, y, perm), 3, shape);
  if (node_output(node, 1)) results[1] = state;
}
