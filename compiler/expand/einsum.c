/* SPDX-License-Identifier: MIT */
/*
 * Einsum as matrix products, operand by operand: labels of both operands are summed over if nothing needs them
 * afterwards, else they are the batch; labels of one operand are rows or columns. If nothing is summed over, the
 * product is element-wise.
 */
#include <string.h>

#include "expand/expansion.h"
#include "shapes/einsum.h"
#include "shapes/shape.h"
#include "support/diagnostics.h"

/* A value and the labels of its axes, each once. */
typedef struct Term {
  Value *value;
  int n, labels[MAX_RANK];
} Term;

typedef bool LabelSet[EINSUM_LABELS];

static int axis_of(const Term *term, int label) {
  for (int axis = 0; axis < term->n; axis++)
    if (term->labels[axis] == label) return axis;
  return -1;
}

static void drop_axis(Term *term, int axis) {
  term->n--;
  memmove(term->labels + axis, term->labels + axis + 1, (size_t)(term->n - axis) * sizeof *term->labels);
}

/* ---- one operand ---- */

/* Two axes of extent n become one, of every n + 1st element: they are moved to the end and merged. */
static void take_diagonal(const Formula *f, Term *term, int a, int b) {
  int64_t perm[MAX_RANK], n = dim_value(term->value->shape[a]), *indices = ARENA_ARRAY(f->graph->arena, int64_t, n);
  const Dim *shape[MAX_RANK];
  int kept = 0, label = term->labels[a];
  for (int axis = 0; axis < term->n; axis++)
    if (axis != a && axis != b) perm[kept++] = axis;
  perm[kept] = a;
  perm[kept + 1] = b;
  for (int axis = 0; axis < kept; axis++) shape[axis] = term->value->shape[perm[axis]];
  shape[kept] = dim_const(f->graph->dims, n * n);
  for (int64_t i = 0; i < n; i++) indices[i] = i * (n + 1);
  Value *merged = reshaped(f, build_transpose(f, term->value, perm), kept + 1, shape);
  term->value = gathered(f, merged, integers(f, (int)n, indices), kept);
  drop_axis(term, b);
  drop_axis(term, a);
  term->labels[term->n++] = label;
}

static void take_diagonals(const Formula *f, Term *term) {
  for (int a = 0; a < term->n; a++)
    for (int b = a + 1; b < term->n; b++)
      if (term->labels[a] == term->labels[b]) {
        take_diagonal(f, term, a, b);
        a = -1;
        break;
      }
}

static Term term_of_input(const Formula *f, const Node *node, const Einsum *einsum, int input) {
  Term term = {.value = node->inputs[input], .n = einsum->terms[input].n};
  memcpy(term.labels, einsum->terms[input].labels, sizeof term.labels);
  take_diagonals(f, &term);
  return term;
}

/* Adds up along the axes whose labels are not `kept`. */
static void sum_others(const Formula *f, Term *term, const bool *kept) {
  int64_t axes[MAX_RANK];
  int n = 0;
  for (int axis = 0; axis < term->n; axis++)
    if (!kept[term->labels[axis]]) axes[n++] = axis;
  if (n) term->value = summed_away(f, term->value, n, axes);
  for (int k = n - 1; k >= 0; k--) drop_axis(term, (int)axes[k]);
}

static Value *in_order(const Formula *f, const Term *term, int n, const int *labels) {
  int64_t perm[MAX_RANK];
  bool moved = false;
  for (int axis = 0; axis < n; axis++) {
    perm[axis] = axis_of(term, labels[axis]);
    moved |= perm[axis] != axis;
  }
  return moved ? build_transpose(f, term->value, perm) : term->value;
}

/* ---- two operands ---- */

/* The labels of both operands: batch, left, right, and those summed over. */
typedef struct Pairing {
  int n_batch, n_left, n_right, n_summed;
  int batch[MAX_RANK], left[MAX_RANK], right[MAX_RANK], summed[MAX_RANK];
} Pairing;

static Pairing pair_labels(const Term *a, const Term *b, const bool *kept) {
  Pairing pairing = {0};
  for (int axis = 0; axis < a->n; axis++) {
    int label = a->labels[axis];
    if (axis_of(b, label) < 0)
      pairing.left[pairing.n_left++] = label;
    else if (kept[label])
      pairing.batch[pairing.n_batch++] = label;
    else
      pairing.summed[pairing.n_summed++] = label;
  }
  for (int axis = 0; axis < b->n; axis++)
    if (axis_of(a, b->labels[axis]) < 0) pairing.right[pairing.n_right++] = b->labels[axis];
  return pairing;
}

/* Removes axes of extent 1 that the other operand's are longer than: they are broadcast. */
static void squeeze_ones(const Formula *f, Term *term, const Term *other) {
  for (int axis = term->n - 1; axis >= 0; axis--) {
    int at = axis_of(other, term->labels[axis]);
    if (at < 0 || same_dim(term->value->shape[axis], other->value->shape[at])) continue;
    if (dim_lower(term->value->shape[axis]) != 1 || !dim_is_const(term->value->shape[axis])) continue;
    term->value = without_axis(f, term->value, axis);
    drop_axis(term, axis);
  }
}

/* The term's axes as [batch, first, second]. */
static Value *sorted(const Formula *f, const Term *term, const Pairing *p, int n_first, const int *first, int n_second,
                     const int *second) {
  int labels[MAX_RANK];
  memcpy(labels, p->batch, (size_t)p->n_batch * sizeof *labels);
  memcpy(labels + p->n_batch, first, (size_t)n_first * sizeof *labels);
  memcpy(labels + p->n_batch + n_first, second, (size_t)n_second * sizeof *labels);
  return in_order(f, term, term->n, labels);
}

/* The axes of `first` and of `second` each merged into one: the first n_first behind the batch, and all others. */
static Value *as_matrices(const Formula *f, Value *value, int n_batch, int n_first) {
  const Dim *shape[MAX_RANK + 2], *one = dim_const(f->graph->dims, 1);
  int second = n_batch + n_first;
  for (int axis = 0; axis < n_batch; axis++) shape[axis] = value->shape[axis];
  shape[n_batch] = n_first ? value_count_dim(f->graph, value, n_batch, second) : one;
  shape[n_batch + 1] = second < value->rank ? value_count_dim(f->graph, value, second, value->rank) : one;
  return reshaped(f, value, n_batch + 2, shape);
}

/* Adds the extents of the axes [begin, end), as the run finds them. */
static void add_extents(const Formula *f, Value *value, int begin, int end, Value **extents, int *count) {
  const Attribute part[] = {attribute_int(ATTR_start, begin), attribute_int(ATTR_end, end)};
  if (begin < end) extents[(*count)++] = build_op(f, OP_Shape, 1, &value, 1, 2, part)->outputs[0];
}

/* The product in its shape, in which axes are apart that were merged in `rows`, of [batch, left, summed], and in
 * `columns`, of [batch, summed, right]. */
static Value *with_axes_apart(const Formula *f, const Pairing *p, Value *product, Value *rows, Value *columns,
                              const Dim *const *shape) {
  int rank = p->n_batch + p->n_left + p->n_right, unknown = 0, count = 0;
  bool empty = false;
  Value *extents[2];
  for (int axis = 0; axis < rank; axis++) {
    unknown += !dim_is_const(shape[axis]);
    empty |= dim_upper(shape[axis]) == 0;
  }
  if ((unknown <= 1 && !empty) || has_shape(product, rank, shape)) return reshaped(f, product, rank, shape);
  add_extents(f, rows, 0, p->n_batch + p->n_left, extents, &count);
  add_extents(f, columns, p->n_batch + p->n_summed, columns->rank, extents, &count);
  return reshaped_to(f, product, build_concat(f, count, extents, 0));
}

static void add_labels(const Term *from, Term *term, const Dim **shape, int n, const int *labels) {
  for (int k = 0; k < n; k++) {
    shape[term->n] = from->value->shape[axis_of(from, labels[k])];
    term->labels[term->n++] = labels[k];
  }
}

static void check_axes(const Formula *f, int axes) {
  if (axes > MAX_RANK)
    fatal_at(f->where, EXIT_UNSUPPORTED, "Einsum: a product of two operands has %d axes; at most %d are supported",
             axes, MAX_RANK);
}

/* The labels of the result, and its shape. */
static Term paired_term(const Formula *f, const Term *a, const Term *b, const Pairing *p, const Dim **shape) {
  Term term = {0};
  check_axes(f, p->n_batch + p->n_left + p->n_right);
  add_labels(a, &term, shape, p->n_batch, p->batch);
  add_labels(a, &term, shape, p->n_left, p->left);
  add_labels(b, &term, shape, p->n_right, p->right);
  return term;
}

/* Nothing is summed over: [batch, left, 1...] times [batch, 1..., right]. */
static Value *product_by_element(const Formula *f, const Term *a, const Term *b, const Pairing *p) {
  int left[MAX_RANK], right[MAX_RANK];
  int64_t ones[MAX_RANK];
  memcpy(left, p->batch, sizeof left);
  memcpy(left + p->n_batch, p->left, (size_t)p->n_left * sizeof *left);
  memcpy(right, p->batch, sizeof right);
  memcpy(right + p->n_batch, p->right, (size_t)p->n_right * sizeof *right);
  Value *x = in_order(f, a, a->n, left), *y = in_order(f, b, b->n, right);
  for (int k = 0; k < p->n_right; k++) ones[k] = a->n + k;
  if (p->n_right) x = apply2(f, OP_Unsqueeze, x, integers(f, p->n_right, ones));
  for (int k = 0; k < p->n_left; k++) ones[k] = p->n_batch + k;
  if (p->n_left) y = apply2(f, OP_Unsqueeze, y, integers(f, p->n_left, ones));
  return times(f, x, y);
}

static Term product_of(const Formula *f, Term a, Term b, const bool *kept) {
  bool kept_by_a[EINSUM_LABELS], kept_by_b[EINSUM_LABELS];
  const Dim *shape[3 * MAX_RANK];
  squeeze_ones(f, &a, &b);
  squeeze_ones(f, &b, &a);
  for (int label = 0; label < EINSUM_LABELS; label++) {
    kept_by_a[label] = kept[label] || axis_of(&b, label) >= 0;
    kept_by_b[label] = kept[label] || axis_of(&a, label) >= 0;
  }
  sum_others(f, &a, kept_by_a);
  sum_others(f, &b, kept_by_b);
  Pairing p = pair_labels(&a, &b, kept);
  Term term = paired_term(f, &a, &b, &p, shape);
  if (p.n_summed == 0) {
    term.value = product_by_element(f, &a, &b, &p);
    return term;
  }
  check_axes(f, p.n_batch + 2);
  Value *rows = sorted(f, &a, &p, p.n_left, p.left, p.n_summed, p.summed);
  Value *columns = sorted(f, &b, &p, p.n_summed, p.summed, p.n_right, p.right);
  Value *product =
      apply2(f, OP_MatMul, as_matrices(f, rows, p.n_batch, p.n_left), as_matrices(f, columns, p.n_batch, p.n_summed));
  term.value = with_axes_apart(f, &p, product, rows, columns, shape);
  return term;
}

/* The labels that the result and the operands from `first` on have. */
static void find_kept(const Einsum *einsum, int first, LabelSet kept) {
  memset(kept, 0, sizeof(LabelSet));
  for (int axis = 0; axis < einsum->output.n; axis++) kept[einsum->output.labels[axis]] = true;
  for (int term = first; term < einsum->n_terms; term++)
    for (int axis = 0; axis < einsum->terms[term].n; axis++) kept[einsum->terms[term].labels[axis]] = true;
}

void expand_einsum(const Formula *f, const Node *node, Value **results) {
  Einsum einsum;
  LabelSet kept;
  if (!read_einsum(f->graph, node, &einsum)) bug("the equation was good before");
  Term term = term_of_input(f, node, &einsum, 0);
  for (int input = 1; input < node->n_inputs; input++) {
    find_kept(&einsum, input + 1, kept);
    term = product_of(f, term, term_of_input(f, node, &einsum, input), kept);
  }
  find_kept(&einsum, einsum.n_terms, kept);
  sum_others(f, &term, kept);
  results[0] = in_order(f, &term, einsum.output.n, einsum.output.labels);
}
