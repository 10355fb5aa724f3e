/* SPDX-License-Identifier: MIT */
/* Size, ConstantOfShape, EyeLike, Range; and what is left of a tensor or repeated: Trilu, Tile, DepthToSpace,
 * SpaceToDepth. */
#include "reference/kernels.h"

const char *ref_size(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  (void)node;
  tensor_set_int(outputs[0], 0, tensor_count(inputs[0]));
  return NULL;
}

const char *ref_constant_of_shape(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  (void)inputs;
  const Attribute *value = node_attribute(node, ATTR_value);
  Tensor one = {.rank = 0};
  if (!value) return NULL; /* outputs are zero from the start */
  one.dtype = value->tensor->dtype;
  one.data = (void *)value->tensor->data;
  for (int64_t i = 0, n = tensor_count(outputs[0]); i < n; i++) copy_element(outputs[0], i, &one, 0);
  return NULL;
}

const char *ref_eye_like(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  (void)inputs;
  Tensor *y = outputs[0];
  int64_t rows = y->shape[0], columns = y->shape[1], k = node_int(node, ATTR_k);
  for (int64_t row = 0; row < rows; row++)
    if (k >= -row && k < columns - row) tensor_set_int(y, row * columns + row + k, 1);
  return NULL;
}

/* Of integers; `delta` is not 0. */
static int64_t range_length(int64_t start, int64_t limit, int64_t delta) {
  __int128 distance = (__int128)limit - start, step = delta;
  if (delta == 0 || (distance < 0) != (delta < 0)) return 0;
  return (int64_t)(distance / step + (distance % step != 0));
}

/* Its length may be known in the run only. */
const char *ref_range(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  (void)node;
  const Tensor *start = inputs[0], *delta = inputs[2];
  Tensor *y = outputs[0];
  if (!dtype_is_float(y->dtype))
    y->shape[0] = range_length(tensor_get_int(start, 0), tensor_get_int(inputs[1], 0), tensor_get_int(delta, 0));
  for (int64_t i = 0, n = tensor_count(y); i < n; i++) {
    if (dtype_is_float(y->dtype))
      tensor_set(y, i, tensor_get(start, 0) + (double)i * tensor_get(delta, 0));
    else
      tensor_set_int(y, i, wrap_add(tensor_get_int(start, 0), wrap_mul(i, tensor_get_int(delta, 0))));
  }
  return NULL;
}

const char *ref_trilu(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  const Tensor *x = inputs[0];
  bool upper = node_int(node, ATTR_upper) != 0;
  int64_t rows = x->shape[x->rank - 2], columns = x->shape[x->rank - 1];
  const Tensor *diagonal_of = optional_input(node, inputs, 1);
  int64_t k = diagonal_of ? tensor_get_int(diagonal_of, 0) : 0;
  for (int64_t i = 0, count = tensor_count(x); i < count; i++) {
    int64_t diagonal = i % columns - i / columns % rows;
    if (upper ? diagonal >= k : diagonal <= k) copy_element(outputs[0], i, x, i);
  }
  return NULL;
}

const char *ref_tile(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  (void)node;
  const Tensor *x = inputs[0];
  int64_t strides[MAX_RANK], i = 0;
  tensor_strides(x, strides);
  Walk walk = walk_over(outputs[0]->rank, outputs[0]->shape);
  for (bool on = walk_begin(&walk); on; on = walk_next(&walk), i++) {
    int64_t from = 0;
    for (int axis = 0; axis < x->rank; axis++) from += walk.index[axis] % x->shape[axis] * strides[axis];
    copy_element(outputs[0], i, x, from);
  }
  return NULL;
}

/* A block's pixels become channels, or the reverse. DCR: the pixel's place counts before the channel, CRD: after it.
 * `deep` has the channels, `wide` the pixels. */
static void rearrange(const Tensor *deep, const Tensor *wide, int64_t block, bool pixel_first, Tensor *y) {
  int64_t channels = wide->shape[1], i = 0, deep_strides[MAX_RANK];
  tensor_strides(deep, deep_strides);
  Walk walk = walk_over(4, wide->shape);
  for (bool on = walk_begin(&walk); on; on = walk_next(&walk), i++) {
    int64_t n = walk.index[0], c = walk.index[1], h = walk.index[2], w = walk.index[3];
    int64_t pixel = h % block * block + w % block;
    int64_t channel = pixel_first ? pixel * channels + c : c * block * block + pixel;
    int64_t at = n * deep_strides[0] + channel * deep_strides[1] + h / block * deep_strides[2] + w / block;
    if (y == wide)
      copy_element(y, i, deep, at);
    else
      copy_element(y, at, wide, i);
  }
}

const char *ref_depth_to_space(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  rearrange(inputs[0], outputs[0], node_int(node, ATTR_blocksize), node_word(node, ATTR_mode) == DEPTH_DCR, outputs[0]);
  return NULL;
}

const char *ref_space_to_depth(const Node *node, const Tensor *const *inputs, Tensor *const *outputs) {
  rearrange(outputs[0], inputs[0], node_int(node, ATTR_blocksize), node_word(node, ATTR_mode) == DEPTH_DCR, outputs[0]);
  return NULL;
}
