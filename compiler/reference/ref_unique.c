/* SPDX-License-Identifier: MIT */
#include "reference/kernels.h"

typedef struct Slices {
  const Tensor *x;
  int64_t outer, n, inner;
} Slices;

static int64_t element(const Slices *s, int64_t slice, int64_t k) {
  return (k / s->inner * s->n + slice) * s->inner + k % s->inner;
}

static int compare(const Slices *s, int64_t a, int64_t b) {
  for (int64_t k = 0; k < s->outer * s->inner; k++) {
    double p = tensor_get(s->x, element(s, a, k)), q = tensor_get(s->x, element(s, b, k));
    int64_t p_int = tensor_get_int(s->x, element(s, a, k)), q_int = tensor_get_int(s->x, element(s, b, k));
    bool is_float = dtype_is_float(s->x->dtype);
    if (is_float && (p != p || q != q)) {
      if ((p != p) != (q != q)) return p != p ? 1 : -1;
    } else if (is_float ? p != q : p_int != q_int) {
      return (is_float ? p > q : p_int > q_int) ? 1 : -1;
    }
  }
  return 0;
}

/* Is the slice the first of its kind? */
static bool is_first(const Slices *s, int64_t slice) {
  for (int64_t i = 0; i < slice; i++)
    if (compare(s, i, slice) == 0) return false;
  return true;
}

static int64_t first_of_kind(const Slices *s, int64_t slice) {
  int64_t first = 0;
  while (compare(s, first, slice)) first++;
  return first;
}

/* The number of kinds before this slice's: smaller ones, or with `by_place`, earlier ones. */
static int64_t kinds_before(const Slices *s, int64_t slice, bool by_place) {
  int64_t first = first_of_kind(s, slice), kinds = 0;
  for (int64_t i = 0; i < s->n; i++) kinds += is_first(s, i) && (by_place ? i < first : compare(s, i, slice) < 0);
  return kinds;
}

/* Axes before, at and after `axis`; all in a row if it is -1. */
static Slices slices_of(const Tensor *x, int axis) {
  Slices s = {x, 1, 1, 1};
  for (int i = 0; i < x->rank; i++) {
    int64_t *part = i == axis || axis < 0 ? &s.n : i < axis ? &s.outer : &s.inner;
    *part *= x->shape[i];
  }
  return s;
}

const char *ref_unique(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  bool by_place = !node_int(node, ATTR_sorted);
  int given = node_has(node, ATTR_axis) ? normal_axis(node_int(node, ATTR_axis), x->rank) : -1,
      axis = given < 0 ? 0 : given;
  Slices s = slices_of(x, given);
  Tensor *y = outputs[0], *more[3] = {0};
  for (int k = 1; k < node->n_outputs; k++) more[k - 1] = outputs[k];
  int64_t found = 0;
  for (int64_t i = 0; i < s.n; i++) found += is_first(&s, i);
  y->shape[axis] = found;
  if (more[0]) more[0]->shape[0] = found;
  if (more[2]) more[2]->shape[0] = found;
  for (int64_t i = s.n - 1; i >= 0; i--) {
    int64_t kind = kinds_before(&s, i, by_place);
    if (more[1]) tensor_set_int(more[1], i, kind);
    if (more[2]) tensor_set_int(more[2], kind, tensor_get_int(more[2], kind) + 1);
    if (!is_first(&s, i)) continue;
    if (more[0]) tensor_set_int(more[0], kind, i);
    for (int64_t k = 0; k < s.outer * s.inner; k++)
      copy_element(y, (k / s.inner * found + kind) * s.inner + k % s.inner, x, element(&s, i, k));
  }
  return NULL;
}
