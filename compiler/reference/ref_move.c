/* SPDX-License-Identifier: MIT */
/* Data movement: every op here copies elements bit for bit, whatever their type. */
#include "reference/kernels.h"

/* The box of `shape` from one place to another. */
static void copy_box(int rank, const int64_t *shape, Tensor *to, int64_t to_offset, const int64_t *to_strides,
                     const Tensor *from, int64_t from_offset, const int64_t *from_strides) {
  Walk walk = walk_over(rank, shape);
  walk_add(&walk, to_offset, to_strides);
  walk_add(&walk, from_offset, from_strides);
  for (bool on = walk_begin(&walk); on; on = walk_next(&walk)) copy_element(to, walk.offset[0], from, walk.offset[1]);
}

/* Does `part` have the shape of `whole`, except along `axis`, where it must fit in from `first` on? */
static bool is_part(const Tensor *part, const Tensor *whole, int axis, int64_t first) {
  if (part->rank != whole->rank) return false;
  for (int k = 0; k < part->rank; k++)
    if (k != axis && part->shape[k] != whole->shape[k]) return false;
  return first + part->shape[axis] <= whole->shape[axis];
}

const char *ref_concat(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  Tensor *y = outputs[0];
  int axis = normal_axis(node_int(node, ATTR_axis), y->rank);
  if (axis < 0) return "axis out of range";
  int64_t x_strides[MAX_RANK], y_strides[MAX_RANK], first = 0;
  tensor_strides(y, y_strides);
  for (int k = 0; k < node->n_inputs; k++) {
    const Tensor *x = inputs[k];
    if (!is_part(x, y, axis, first)) return "an input does not fit";
    tensor_strides(x, x_strides);
    copy_box(x->rank, x->shape, y, first * y_strides[axis], y_strides, x, 0, x_strides);
    first += x->shape[axis];
  }
  return first == y->shape[axis] ? NULL : "the inputs do not fill the output";
}

const char *ref_split(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *lengths = optional_input(node, inputs, 1);
  int axis = normal_axis(node_int(node, ATTR_axis), x->rank);
  if (axis < 0) return "axis out of range";
  int64_t x_strides[MAX_RANK], y_strides[MAX_RANK], first = 0;
  tensor_strides(x, x_strides);
  for (int k = 0; k < node->n_outputs; k++) {
    Tensor *y = outputs[k];
    if (!is_part(y, x, axis, first)) return "an output does not fit";
    if (lengths && (k >= tensor_count(lengths) || tensor_get_int(lengths, k) != y->shape[axis]))
      return "lengths differ from the outputs' shapes";
    tensor_strides(y, y_strides);
    copy_box(y->rank, y->shape, y, 0, y_strides, x, first * x_strides[axis], x_strides);
    first += y->shape[axis];
  }
  return NULL;
}

/* Element i of a list that is an input or, in older opsets, an attribute. */
typedef struct IntList {
  const Tensor *tensor;
  const Attribute *attribute;
} IntList;

static IntList int_list(const Node *node, const Tensor *const *inputs, int input, AttributeName attribute) {
  return (IntList){optional_input(node, inputs, input), attribute ? node_attribute(node, attribute) : NULL};
}
static bool list_given(IntList list) { return list.tensor || list.attribute; }
static int64_t list_count(IntList list) {
  return list.tensor ? tensor_count(list.tensor) : list.attribute ? (int64_t)list.attribute->count : 0;
}
static int64_t list_at(IntList list, int64_t i) {
  return list.tensor ? tensor_get_int(list.tensor, i) : list.attribute->ints[i];
}

/* A bound of Slice, counted from the end if negative, clamped to [least, most]. INT64_MAX and INT64_MIN are usual. */
static int64_t slice_bound(int64_t bound, int64_t length, int64_t least, int64_t most) {
  if (bound < 0) bound = bound < -length ? -1 : bound + length;
  return bound < least ? least : bound > most ? most : bound;
}

typedef struct SliceAxis {
  int64_t start, step, count;
} SliceAxis;

static SliceAxis slice_axis(int64_t start, int64_t end, int64_t step, int64_t length) {
  bool forward = step > 0;
  /* ONNX Runtime reads the largest integers as "to the end", backwards too. */
  if (!forward && (end == INT64_MAX || end == INT32_MAX)) end = INT64_MIN;
  start = slice_bound(start, length, 0, forward ? length : length - 1);
  end = slice_bound(end, length, forward ? 0 : -1, forward ? length : length - 1);
  int64_t distance = forward ? end - start : start - end;
  uint64_t stride = forward ? (uint64_t)step : 0 - (uint64_t)step;
  int64_t count = distance <= 0 || length == 0 ? 0 : (int64_t)(((uint64_t)distance - 1) / stride) + 1;
  return (SliceAxis){start, count > 1 ? step : 1, count};
}

const char *ref_slice(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  Tensor *y = outputs[0];
  IntList starts = int_list(node, inputs, 1, ATTR_starts), ends = int_list(node, inputs, 2, ATTR_ends);
  IntList axes = int_list(node, inputs, 3, ATTR_axes), steps = int_list(node, inputs, 4, ATTR_NONE);
  int64_t n = list_count(starts), first = 0, x_strides[MAX_RANK], y_strides[MAX_RANK];
  if (list_count(ends) != n || (list_given(axes) && list_count(axes) != n) ||
      (list_given(steps) && list_count(steps) != n) || n > x->rank)
    return "starts, ends, axes and steps differ in length";

  SliceAxis slices[MAX_RANK];
  for (int axis = 0; axis < x->rank; axis++) slices[axis] = (SliceAxis){0, 1, x->shape[axis]};
  for (int64_t i = 0; i < n; i++) {
    int axis = list_given(axes) ? normal_axis(list_at(axes, i), x->rank) : (int)i;
    int64_t step = list_given(steps) ? list_at(steps, i) : 1;
    if (axis < 0) return "axis out of range";
    if (step == 0) return "a step of zero";
    slices[axis] = slice_axis(list_at(starts, i), list_at(ends, i), step, x->shape[axis]);
  }

  tensor_strides(x, x_strides);
  tensor_strides(y, y_strides);
  for (int axis = 0; axis < x->rank; axis++) {
    if (slices[axis].count != y->shape[axis]) return "bounds differ from the output's shape";
    first += slices[axis].start * x_strides[axis];
    x_strides[axis] *= slices[axis].step;
  }
  copy_box(y->rank, y->shape, y, 0, y_strides, x, first, x_strides);
  return NULL;
}

/* Without `perm` the axes are reversed. */
const char *ref_transpose(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  Tensor *y = outputs[0];
  const Attribute *perm = node_attribute(node, ATTR_perm);
  if (perm && perm->count != (size_t)x->rank) return "perm does not name every axis";
  int64_t dense[MAX_RANK], x_strides[MAX_RANK], y_strides[MAX_RANK];
  tensor_strides(x, dense);
  tensor_strides(y, y_strides);
  for (int axis = 0; axis < x->rank; axis++) {
    int64_t from = perm ? perm->ints[axis] : x->rank - 1 - axis;
    if (from < 0 || from >= x->rank || x->shape[from] != y->shape[axis]) return "perm does not fit the output";
    x_strides[axis] = dense[from];
  }
  copy_box(y->rank, y->shape, y, 0, y_strides, x, 0, x_strides);
  return NULL;
}

const char *ref_expand(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  (void)node;
  Walk walk = walk_over(outputs[0]->rank, outputs[0]->shape);
  if (!walk_add_broadcast(&walk, inputs[0])) return "the shape does not broadcast";
  int64_t i = 0;
  for (bool on = walk_begin(&walk); on; on = walk_next(&walk)) copy_element(outputs[0], i++, inputs[0], walk.offset[0]);
  return NULL;
}

/* The position, in 0..n-1, that an index before the start or past the end of an axis reads; -1: the fill value. */
typedef int64_t PadMap(int64_t index, int64_t n);

static int64_t positive_modulo(int64_t a, int64_t n) { return (a % n + n) % n; }
static int64_t pad_constant(int64_t index, int64_t n) { return index < 0 || index >= n ? -1 : index; }
static int64_t pad_edge(int64_t index, int64_t n) { return index < 0 ? 0 : index >= n ? n - 1 : index; }
static int64_t pad_wrap(int64_t index, int64_t n) { return positive_modulo(index, n); }
static int64_t pad_reflect(int64_t index, int64_t n) { /* the edge itself is not repeated; the period is 2(n-1) */
  int64_t period = n > 1 ? 2 * (n - 1) : 1, at = positive_modulo(index, period);
  return at < n ? at : period - at;
}

static PadMap *const pad_maps[] = {
    [PAD_constant] = pad_constant, [PAD_edge] = pad_edge, [PAD_reflect] = pad_reflect, [PAD_wrap] = pad_wrap};

/* Padding along one axis. Negative padding crops first, then the mode applies to what is left, as in ONNX Runtime. */
typedef struct PadAxis {
  int64_t origin, extent; /* of what is left after cropping */
  int64_t before;
} PadAxis;

static const char *read_pads(const Node *node, const Tensor *const *inputs, const Tensor *y, PadAxis *pads) {
  const Tensor *x = inputs[0], *axes = optional_input(node, inputs, 3);
  IntList list = int_list(node, inputs, 1, ATTR_pads);
  int64_t n = axes ? tensor_count(axes) : x->rank;
  if (list_count(list) != 2 * n) return "pads needs two values an axis";
  for (int axis = 0; axis < x->rank; axis++) pads[axis] = (PadAxis){0, x->shape[axis], 0};
  for (int64_t i = 0; i < n; i++) {
    int axis = axes ? normal_axis(tensor_get_int(axes, i), x->rank) : (int)i;
    if (axis < 0) return "axis out of range";
    int64_t before = list_at(list, i), after = list_at(list, n + i), length = x->shape[axis];
    if (before < -length || after < -length) return "cropped to less than nothing";
    pads[axis].origin = before < 0 ? -before : 0;
    pads[axis].extent = length - pads[axis].origin + (after < 0 ? after : 0);
    pads[axis].before = before > 0 ? before : 0;
    if (pads[axis].extent < 0) return "cropped to less than nothing";
    if (wrap_sub(wrap_sub(y->shape[axis], pads[axis].extent), pads[axis].before) != (after > 0 ? after : 0))
      return "pads differ from the output's shape";
  }
  return NULL;
}

/* The offset in x that output point `at` reads, or -1 for the fill value. */
static int64_t padded_offset(const PadAxis *pads, PadMap *map, const int64_t *strides, int rank, const int64_t *at) {
  int64_t offset = 0;
  for (int axis = 0; axis < rank; axis++) {
    if (pads[axis].extent == 0) return -1;
    int64_t from = map(at[axis] - pads[axis].before, pads[axis].extent);
    if (from < 0) return -1;
    offset += (from + pads[axis].origin) * strides[axis];
  }
  return offset;
}

const char *ref_pad(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *fill = optional_input(node, inputs, 2);
  Tensor *y = outputs[0];
  if (fill && tensor_count(fill) != 1) return "the fill value must be a scalar";
  PadAxis pads[MAX_RANK];
  const char *wrong = read_pads(node, inputs, y, pads);
  if (wrong) return wrong;
  PadMap *map = pad_maps[node_word(node, ATTR_mode)];
  int64_t strides[MAX_RANK], i = 0;
  tensor_strides(x, strides);
  Walk walk = walk_over(y->rank, y->shape);
  for (bool on = walk_begin(&walk); on; on = walk_next(&walk), i++) {
    int64_t from = padded_offset(pads, map, strides, x->rank, walk.index);
    if (from >= 0)
      copy_element(y, i, x, from);
    else if (map != pad_constant)
      return "nothing to repeat along an empty axis";
    else if (fill)
      copy_element(y, i, fill, 0);
    else
      tensor_set(y, i, node_float(node, ATTR_value));
  }
  return NULL;
}

const char *ref_gather(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *indices = inputs[1];
  Tensor *y = outputs[0];
  int axis = normal_axis(node_int(node, ATTR_axis), x->rank);
  if (axis < 0) return "axis out of range";
  int64_t outer = tensor_extent(x, 0, axis), inner = tensor_extent(x, axis + 1, x->rank);
  int64_t n = tensor_count(indices), length = x->shape[axis];
  if (tensor_count(y) != outer * n * inner) return "indices do not match the output's shape";
  for (int64_t i = 0; i < outer * n; i++) {
    int64_t index = index_position(tensor_get_int(indices, i % n), length);
    if (index < 0) return "index out of range";
    for (int64_t k = 0; k < inner; k++) copy_element(y, i * inner + k, x, (i / n * length + index) * inner + k);
  }
  return NULL;
}
