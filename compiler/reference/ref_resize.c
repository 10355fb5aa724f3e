/* SPDX-License-Identifier: MIT */
/* Resize: an output element is the sum over a box of taps, whose weight is the product of their axes' weights. */
#include "reference/kernels.h"
#include "reference/resize_taps.h"

typedef struct Resizing {
  int rank;
  ResizeTaps taps[MAX_RANK];
} Resizing;

static const Tensor *list(const Node *node, const Tensor *const *inputs, int k) {
  return optional_input(node, inputs, k) && tensor_count(inputs[k]) ? inputs[k] : NULL;
}

/* One scale for all, if the policy asks for it. */
static float common_scale(const Node *node, const Tensor *x, const Tensor *sizes) {
  int64_t in[MAX_RANK], out[MAX_RANK];
  for (int axis = 0; axis < x->rank; axis++) {
    int k = resize_position(node, axis, x->rank);
    if (k >= 0) in[k] = x->shape[axis];
    if (k >= 0) out[k] = tensor_get_int(sizes, k);
  }
  return resize_keep_aspect(node, (int)tensor_count(sizes), in, out);
}

static ResizeAxis axis_of(const Node *node, const Tensor *const *inputs, const Tensor *y, int axis) {
  const Tensor *x = inputs[0], *roi = list(node, inputs, 1), *scales = list(node, inputs, 2);
  int k = resize_position(node, axis, x->rank);
  if (k < 0) return resize_axis(x->shape[axis], y->shape[axis], 0);
  float scale = scales ? (float)tensor_get(scales, k) : common_scale(node, x, list(node, inputs, 3));
  ResizeAxis result = resize_axis(x->shape[axis], y->shape[axis], scale);
  for (int end = 0; roi && end < 2; end++) result.roi[end] = (float)tensor_get(roi, k + end * (tensor_count(roi) / 2));
  return result;
}

/* The input element that tap `point` of output `o` reads. */
static int64_t input_of(const Resizing *r, const Tensor *x, const int64_t *o, const int64_t *point) {
  int64_t at = 0;
  for (int axis = 0; axis < r->rank; axis++) at = at * x->shape[axis] + r->taps[axis].start[o[axis]] + point[axis];
  return at;
}

static double weight_of(const Resizing *r, const int64_t *o, const int64_t *point) {
  double weight = 1;
  for (int axis = 0; axis < r->rank; axis++)
    weight *= (double)r->taps[axis].weight[o[axis] * r->taps[axis].n + point[axis]];
  return weight;
}

static bool lies_outside(const Resizing *r, const int64_t *o) {
  for (int axis = 0; axis < r->rank; axis++)
    if (r->taps[axis].start[o[axis]] < 0) return true;
  return false;
}

static double weighted_sum(const Resizing *r, const Tensor *x, const int64_t *o) {
  int64_t box[MAX_RANK];
  double sum = 0;
  for (int axis = 0; axis < r->rank; axis++) box[axis] = r->taps[axis].n;
  Walk point = walk_over(r->rank, box);
  for (bool on = walk_begin(&point); on; on = walk_next(&point))
    sum += weight_of(r, o, point.index) * tensor_get(x, input_of(r, x, o, point.index));
  return sum;
}

const char *ref_resize(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  static const int64_t origin[MAX_RANK] = {0};
  const Tensor *x = inputs[0];
  Tensor *y = outputs[0];
  bool nearest = node_word(node, ATTR_mode) == RESIZE_nearest;
  Resizing r = {.rank = x->rank};
  Arena *arena = arena_new();
  for (int axis = 0; axis < x->rank; axis++) {
    ResizeAxis own = axis_of(node, inputs, y, axis);
    bool copied = resize_is_identity(node, &own);
    r.taps[axis] = copied ? resize_identity(arena, own.out) : resize_taps(arena, node, &own);
  }
  Walk out = walk_over(y->rank, y->shape);
  int64_t i = 0;
  for (bool on = walk_begin(&out); on; on = walk_next(&out), i++) {
    if (lies_outside(&r, out.index))
      tensor_set(y, i, node_float(node, ATTR_extrapolation_value));
    else if (nearest)
      copy_element(y, i, x, input_of(&r, x, out.index, origin));
    else
      tensor_set(y, i, weighted_sum(&r, x, out.index));
  }
  arena_free(arena);
  return NULL;
}
