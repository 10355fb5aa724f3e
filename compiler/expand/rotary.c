/* SPDX-License-Identifier: MIT */
/* Rotary positions: pairs of elements of a head are turned by angles whose cosines and sines are given. */
#include "expand/expansion.h"
#include "shapes/attention.h"
#include "shapes/shape.h"
#include "support/diagnostics.h"

typedef struct Pair {
  Value *first, *second;
} Pair;

/* The elements [begin, end) of the last axis. */
static Value *part(const Formula *f, Value *x, int64_t begin, int64_t end) {
  const Range range = {x->rank - 1, begin, end};
  return dim_equals(x->shape[x->rank - 1], end - begin) ? x : build_slice(f, x, 1, &range);
}

/* Neighbours on the last axis. */
static Pair neighbours(const Formula *f, Value *x, int64_t n) {
  const Dim *shape[] = {x->shape[0], x->shape[1], x->shape[2], dim_const(f->graph->dims, n / 2),
                        dim_const(f->graph->dims, 2)};
  Value *pairs = reshaped(f, x, 5, shape);
  Value *first = integers(f, 1, (const int64_t[]){0}), *second = integers(f, 1, (const int64_t[]){1});
  return (Pair){gathered(f, pairs, first, 4), gathered(f, pairs, second, 4)};
}

/* Turned pairs as one axis again, like x. */
static Value *joined(const Formula *f, Pair turned, const Value *x, bool interleaved) {
  Value *both = build_concat(f, 2, (Value *const[]){turned.first, turned.second}, turned.first->rank - 1);
  return interleaved ? reshaped(f, both, x->rank, (const Dim *const *)x->shape) : both;
}

/* Of each row, and the same for all heads: along `heads_axis`. */
static Value *of_rows(const Formula *f, const Node *node, int input, int64_t heads_axis, bool interleaved) {
  Value *table = node->inputs[input], *positions = node_input(node, 3);
  if (positions) table = gathered(f, table, counted_from_start(f, positions), 0);
  table = with_axis(f, table, heads_axis);
  return interleaved ? with_axis(f, table, 4) : table;
}

void expand_rotary(const Formula *f, const Node *node, Value **results) {
  Rotary r;
  if (!read_rotary(f->graph, node, &r)) bug("RotaryEmbedding was good before");
  Value *x = node->inputs[0];
  const Dim *shape[] = {x->shape[0], x->shape[1], dim_const(f->graph->dims, r.heads),
                        dim_const(f->graph->dims, r.head)};
  bool interleaved = node_int(node, ATTR_interleaved) != 0;
  Value *heads = r.packed ? reshaped(f, x, 4, shape) : x, *turned = part(f, heads, 0, r.turned);
  Value *cosine = of_rows(f, node, 1, r.packed ? 2 : 1, interleaved);
  Value *sine = of_rows(f, node, 2, r.packed ? 2 : 1, interleaved);
  Pair halves = {part(f, turned, 0, r.turned / 2), part(f, turned, r.turned / 2, r.turned)};
  Pair p = interleaved ? neighbours(f, turned, r.turned) : halves;
  Pair rotated = {minus(f, times(f, cosine, p.first), times(f, sine, p.second)),
                  plus(f, times(f, sine, p.first), times(f, cosine, p.second))};
  Value *y = joined(f, rotated, turned, interleaved);
  if (r.turned < r.head) y = build_concat(f, 2, (Value *const[]){y, part(f, heads, r.turned, r.head)}, 3);
  results[0] = r.packed ? reshaped(f, y, 3, (const Dim *const *)x->shape) : y;
}
