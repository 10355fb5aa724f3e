/* SPDX-License-Identifier: MIT */
/* A Slice whose bounds only the run knows gathers the places between them, of which a Range finds how many there are.
 */
#include "expand/expansion.h"
#include "shapes/shape.h"

static Value *integer(const Formula *f, int64_t value) { return integers(f, 1, &value); }

/* Bound i of n that the node gives: i64[1]. */
static Value *bound(const Formula *f, const Node *node, AttributeName name, int input, int n, int i) {
  const Attribute *given = node_attribute(node, name);
  if (given) return integer(f, given->ints[i]);
  Value *all = cast(f, node->inputs[input], RNNCC_I64);
  return n == 1 ? all : gathered(f, all, integer(f, i), 0);
}

/* "To the end" backwards, as ONNX Runtime reads the largest integers, is as far below 0 as there is. */
static Value *end_backwards(const Formula *f, Value *end) {
  Value *open = apply2(f, OP_Or, apply2(f, OP_Equal, end, integer(f, INT64_MAX)),
                       apply2(f, OP_Equal, end, integer(f, INT32_MAX)));
  return apply3(f, OP_Where, open, integer(f, INT64_MIN), end);
}

/* A negative place counts from the end; then it is brought into [least, most]. */
static Value *within(const Formula *f, Value *place, Value *extent, Value *least, Value *most) {
  Value *is_negative = apply2(f, OP_Less, place, integer(f, 0));
  Value *from_start = apply3(f, OP_Where, is_negative, plus(f, place, extent), place);
  return apply2(f, OP_Min, apply2(f, OP_Max, from_start, least), most);
}

/* The places that are taken of the axis, `count` of them. */
static Value *places(const Formula *f, Value *start, Value *end, Value *extent, int64_t step, const Dim *count) {
  Value *zero = integer(f, 0), *minus_one = integer(f, -1);
  if (step < 0) end = end_backwards(f, end);
  Value *most = step < 0 ? plus(f, extent, minus_one) : extent;
  Value *range = apply3(f, OP_Range, within(f, start, extent, zero, most),
                        within(f, end, extent, step < 0 ? minus_one : zero, most), integer(f, step));
  range->shape[0] = count;
  return range;
}

/* Those of an earlier Slice by the same bounds; or NULL. */
static Value *earlier_places(const Graph *graph, const Dim *count) {
  enum { LOOKED_AT = 1000 }; /* nodes: hostile graphs have many */
  for (int n = graph->n_nodes - 1; n >= 0 && n >= graph->n_nodes - LOOKED_AT; n--) {
    const Node *node = graph->nodes[n];
    if (is_op(node, OP_Range) && same_dim(node->outputs[0]->shape[0], count)) return node->outputs[0];
  }
  return NULL;
}

void expand_slice(const Formula *f, const Node *node, Value **results) {
  FoundSlice slice;
  if (!slice_is_found(f->graph, node)) return;
  if (!read_found_slice(f->graph, node, &slice)) bug("the slice was good before");
  Value *x = node->inputs[0];
  for (int i = 0; i < slice.n; i++) {
    int axis = slice.axes[i];
    const Dim *count = node->outputs[0]->shape[axis];
    Value *taken = earlier_places(f->graph, count);
    if (!taken)
      taken = places(f, bound(f, node, ATTR_starts, 1, slice.n, i), bound(f, node, ATTR_ends, 2, slice.n, i),
                     build_extent(f, x, axis), slice.steps[i], count);
    x = gathered(f, x, taken, axis);
  }
  results[0] = x;
}
