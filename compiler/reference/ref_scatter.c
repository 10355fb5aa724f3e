/* SPDX-License-Identifier: MIT */
/* ScatterElements and ScatterND: the data with updates in the places that indices name, in the order of the updates. */
#include <math.h>
#include <string.h>

#include "reference/kernels.h"

/* Combines the element at `at` with the update. */
typedef void Place(Tensor *y, int64_t at, const Tensor *updates, int64_t from);

static void place_update(Tensor *y, int64_t at, const Tensor *updates, int64_t from) {
  copy_element(y, at, updates, from);
}

static void place_sum(Tensor *y, int64_t at, const Tensor *updates, int64_t from) {
  if (dtype_is_float(y->dtype))
    tensor_set(y, at, tensor_get(y, at) + tensor_get(updates, from));
  else
    tensor_set_int(y, at, wrap_int(y->dtype, wrap_add(tensor_get_int(y, at), tensor_get_int(updates, from))));
}

static void place_product(Tensor *y, int64_t at, const Tensor *updates, int64_t from) {
  if (dtype_is_float(y->dtype))
    tensor_set(y, at, tensor_get(y, at) * tensor_get(updates, from));
  else
    tensor_set_int(y, at, wrap_int(y->dtype, wrap_mul(tensor_get_int(y, at), tensor_get_int(updates, from))));
}

/* NaN wins. */
static void place_extreme(Tensor *y, int64_t at, const Tensor *updates, int64_t from, bool greater) {
  bool keep;
  if (dtype_is_float(y->dtype)) {
    double held = tensor_get(y, at), update = tensor_get(updates, from);
    keep = isnan(held) || (greater ? held > update : held < update);
  } else {
    int64_t held = tensor_get_int(y, at), update = tensor_get_int(updates, from);
    keep = greater ? held > update : held < update;
  }
  if (!keep) copy_element(y, at, updates, from);
}

static void place_minimum(Tensor *y, int64_t at, const Tensor *updates, int64_t from) {
  place_extreme(y, at, updates, from, false);
}
static void place_maximum(Tensor *y, int64_t at, const Tensor *updates, int64_t from) {
  place_extreme(y, at, updates, from, true);
}

static Place *const places[] = {[SCATTER_none] = place_update,
                                [SCATTER_add] = place_sum,
                                [SCATTER_mul] = place_product,
                                [SCATTER_min] = place_minimum,
                                [SCATTER_max] = place_maximum};

static Place *place_of(const Node *node) { return places[node_word(node, ATTR_reduction)]; }

static void copy_data(Tensor *y, const Tensor *x) {
  int64_t count = tensor_count(x);
  if (count) memcpy(y->data, x->data, (size_t)count * dtype_size(x->dtype));
}

const char *ref_scatter_elements(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *indices = inputs[1], *updates = inputs[2];
  Place *place = place_of(node);
  int axis = normal_axis(node_int(node, ATTR_axis), x->rank);
  if (axis < 0 || indices->rank != x->rank) return "axis out of range, or ranks differ";
  int64_t stride, i = 0;
  copy_data(outputs[0], x);
  Walk walk = walk_lines(x, indices, axis, &stride);
  for (bool on = walk_begin(&walk); on; on = walk_next(&walk), i++) {
    int64_t index = index_position(tensor_get_int(indices, i), x->shape[axis]);
    if (index < 0) return "index out of range";
    place(outputs[0], walk.offset[0] + index * stride, updates, i);
  }
  return NULL;
}

const char *ref_scatter_nd(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0], *indices = inputs[1], *updates = inputs[2];
  Place *place = place_of(node);
  int length = (int)indices->shape[indices->rank - 1];
  if (length > x->rank) return "more indices than axes";
  int64_t inner = tensor_extent(x, length, x->rank);
  copy_data(outputs[0], x);
  for (int64_t tuple = 0, tuples = tensor_count(indices) / length; tuple < tuples; tuple++) {
    int64_t offset = tuple_offset(x, 0, indices, tuple, length);
    if (offset < 0) return "index out of range";
    for (int64_t i = 0; i < inner; i++) place(outputs[0], offset + i, updates, tuple * inner + i);
  }
  return NULL;
}
