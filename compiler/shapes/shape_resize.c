/* SPDX-License-Identifier: MIT */
/* Resize's operands: regions and scales must be known at compile time; sizes may be computed from shapes. */
#include <math.h>

#include "reference/resize_taps.h"
#include "shapes/shape.h"

enum { ROI = 1, SCALES = 2, SIZES = 3 };

/* Older exporters write an empty tensor for an absent input. */
static bool given(const Node *node, int input) {
  if (input >= node->n_inputs || !node->inputs[input]) return false;
  const Value *value = node->inputs[input];
  return value->rank != 1 || dim_upper(value->shape[0]) > 0;
}

/* The list's numbers; NULL after an error. */
static const float *floats_of(Graph *graph, const Node *node, int input, int64_t count) {
  const Value *value = node->inputs[input];
  if (!value->data) {
    shape_unsupported(node, "input %d (`%.200s`) must be known at compile time: a constant%s", input, value->name,
                      value->is_input ? " (--freeze makes the input one)" : "");
    return NULL;
  }
  if (value->rank == 1 && value_count(value) == count) return value->data;
  shape_error(node, "input %d is %s; it must be a list of %lld numbers", input, shape_text(graph, value),
              (long long)count);
  return NULL;
}

static bool check_axes(const Node *node, int rank, int *n) {
  const Attribute *axes = node_attribute(node, ATTR_axes);
  bool marked[MAX_RANK];
  *n = axes ? (int)axes->count : rank;
  return !axes || operand_axes(node, &(IntList){true, (int)axes->count, axes->ints}, rank, marked);
}

static bool static_extent(Graph *graph, const Node *node, int axis) {
  return dim_is_const(node->inputs[0]->shape[axis]) ||
         shape_unsupported(node, "axis %d of %s is resized by `keep_aspect_ratio_policy`; its extent must be constant",
                           axis, shape_text(graph, node->inputs[0]));
}

/* A filter against aliasing has as many taps as the scale says. */
static bool check_antialias(Graph *graph, const Node *node, int axis, const Dim *out) {
  const Dim *in = node->inputs[0]->shape[axis];
  if (!node_int(node, ATTR_antialias) || node_word(node, ATTR_mode) == RESIZE_nearest) return true;
  return dim_at_most(graph->dims, in, out) ||
         shape_unsupported(node,
                           "`antialias` where axis %d of %s shrinks to %s; it needs constant extents, or `scales` in "
                           "place of sizes",
                           axis, shape_text(graph, node->inputs[0]), dim_text(graph, out));
}

/* scale 0: that of the extents. */
static bool resize_to(Graph *graph, const Node *node, Resize *resize, int axis, const Dim *out, float scale) {
  const Dim *in = node->inputs[0]->shape[axis];
  resize->out[axis] = out;
  resize->resized[axis] = true;
  resize->at_run_time[axis] = !dim_is_const(in) || !dim_is_const(out);
  resize->axis[axis] = (ResizeAxis){.scale = scale, .roi = {0, 1}};
  if (resize->at_run_time[axis]) return scale != 0 || check_antialias(graph, node, axis, out);
  resize->axis[axis] = resize_axis(dim_value(in), dim_value(out), scale);
  return true;
}

/* floor(in * scale), whose product is in f32: NULL where that may be rounded. */
static const Dim *scaled_extent(Graph *graph, const Dim *in, float scale) {
  enum { FLOAT_BITS = 24, MAX_SHIFT = 62 };
  DimTable *dims = graph->dims;
  if (dim_is_const(in)) return dim_const(dims, (int64_t)fmin(floor((double)(scale * (float)dim_value(in))), 0x1p40));
  int exponent;
  int64_t mantissa = (int64_t)ldexpf(frexpf(scale, &exponent), FLOAT_BITS);
  for (exponent -= FLOAT_BITS; mantissa % 2 == 0; exponent++) mantissa /= 2;
  if (exponent > FLOAT_BITS || exponent < -MAX_SHIFT) return NULL;
  if (dim_upper(in) > ((int64_t)1 << FLOAT_BITS) / mantissa) return NULL;
  int64_t up = exponent > 0 ? mantissa << exponent : mantissa, down = exponent < 0 ? (int64_t)1 << -exponent : 1;
  return dim_div(dims, dim_mul(dims, in, dim_const(dims, up)), dim_const(dims, down));
}

static bool by_scale(Graph *graph, const Node *node, Resize *resize, int axis, float scale) {
  const Dim *in = node->inputs[0]->shape[axis];
  if (!(scale > 0 && scale < INFINITY))
    return shape_error(node, "the scale of axis %d is %g; it must be greater than 0", axis, (double)scale);
  if (scale == 1) return true;
  const Dim *out = scaled_extent(graph, in, scale);
  if (!out)
    return shape_unsupported(
        node,
        "axis %d of %s times %.9g, which may be rounded; its extent must be constant, or the scale "
        "a fraction of fewer bits, such as 1.5%s",
        axis, shape_text(graph, node->inputs[0]), (double)scale, dims_places(graph, 1, &in));
  if (dim_lower(out) < 1 || dim_upper(out) > INT32_MAX)
    return shape_error(node, "a scale of %g leaves axis %d of %s an extent of %s%s%s", (double)scale, axis,
                       shape_text(graph, node->inputs[0]), dim_text(graph, out),
                       dim_is_const(out) ? "" : ", which may be 0 or too large; change its dimensions' bounds",
                       dims_places(graph, 1, &out));
  return resize_to(graph, node, resize, axis, out, scale);
}

static bool by_scales(Graph *graph, const Node *node, Resize *resize, int n) {
  const float *scales = floats_of(graph, node, SCALES, n);
  for (int axis = 0; scales && axis < resize->rank; axis++) {
    int k = resize_position(node, axis, resize->rank);
    if (k >= 0 && !by_scale(graph, node, resize, axis, scales[k])) return false;
  }
  return scales != NULL;
}

static bool by_size(Graph *graph, const Node *node, Resize *resize, int axis, const Dim *size) {
  if (same_dim(node->inputs[0]->shape[axis], size)) return true;
  if (dim_lower(size) < 1 || dim_upper(size) > INT32_MAX)
    return shape_error(node, "the size of axis %d is %s; it must be at least 1%s%s", axis, dim_text(graph, size),
                       dim_is_const(size) ? "" : ": give its dimensions a larger minimum",
                       dims_places(graph, 1, &size));
  return resize_to(graph, node, resize, axis, size, 0);
}

/* One scale for all listed axes, which must be constant. */
static bool by_aspect(Graph *graph, const Node *node, Resize *resize, const DimList *sizes) {
  int64_t in[MAX_RANK], out[MAX_RANK];
  for (int axis = 0; axis < resize->rank; axis++) {
    int k = resize_position(node, axis, resize->rank);
    if (k < 0) continue;
    if (!static_extent(graph, node, axis)) return false;
    if (!dim_is_const(sizes->items[k]) || dim_value(sizes->items[k]) < 1 || dim_value(sizes->items[k]) > INT32_MAX)
      return shape_error(node, "size %d is %s; it must be a constant of at least 1", k,
                         dim_text(graph, sizes->items[k]));
    in[k] = dim_value(node->inputs[0]->shape[axis]);
    out[k] = dim_value(sizes->items[k]);
  }
  float scale = resize_keep_aspect(node, sizes->n, in, out);
  for (int axis = 0; axis < resize->rank; axis++) {
    int k = resize_position(node, axis, resize->rank);
    if (k < 0) continue;
    if (out[k] < 1) return shape_error(node, "axis %d is left an extent of 0", axis);
    if (!resize_to(graph, node, resize, axis, dim_const(graph->dims, out[k]), scale)) return false;
  }
  return true;
}

static bool by_sizes(Graph *graph, const Node *node, Resize *resize, int n) {
  DimList sizes;
  if (!operand_dims(graph, node, ATTR_NONE, SIZES, &sizes)) return false;
  if (sizes.n != n) return shape_error(node, "there are %d sizes; %d are needed", sizes.n, n);
  if (node_word(node, ATTR_keep_aspect_ratio_policy) != ASPECT_stretch) return by_aspect(graph, node, resize, &sizes);
  for (int axis = 0; axis < resize->rank; axis++) {
    int k = resize_position(node, axis, resize->rank);
    if (k >= 0 && !by_size(graph, node, resize, axis, sizes.items[k])) return false;
  }
  return true;
}

/* Only tf_crop_and_resize has regions; it also crops axes that keep their extent. */
static bool read_regions(Graph *graph, const Node *node, Resize *resize, int n) {
  if (node_word(node, ATTR_coordinate_transformation_mode) != COORDINATES_tf_crop_and_resize) return true;
  if (!given(node, ROI)) return shape_error(node, "tf_crop_and_resize needs the regions, input %d", ROI);
  const float *regions = floats_of(graph, node, ROI, 2 * (int64_t)n);
  for (int axis = 0; regions && axis < resize->rank; axis++) {
    int k = resize_position(node, axis, resize->rank);
    if (k < 0) continue;
    bool whole = regions[k] == 0 && regions[n + k] == 1;
    if (!resize->resized[axis] && whole) continue;
    if (!resize->resized[axis] && !resize_to(graph, node, resize, axis, resize->out[axis], 0)) return false;
    resize->axis[axis].roi[0] = regions[k];
    resize->axis[axis].roi[1] = regions[n + k];
  }
  return regions != NULL;
}

bool read_resize(Graph *graph, const Node *node, Resize *resize) {
  const Value *x = node->inputs[0];
  int n;
  *resize = (Resize){.rank = x->rank};
  for (int axis = 0; axis < x->rank; axis++) resize->out[axis] = x->shape[axis];
  if (!check_axes(node, x->rank, &n)) return false;
  bool scaled = given(node, SCALES), sized = given(node, SIZES);
  if (scaled == sized)
    return shape_error(node, "one of scales, input %d, and sizes, input %d, must be given", SCALES, SIZES);
  if (!(scaled ? by_scales : by_sizes)(graph, node, resize, n)) return false;
  if (!read_regions(graph, node, resize, n)) return false;
  for (int axis = 0; axis < x->rank; axis++)
    resize->resized[axis] &= resize->at_run_time[axis] || !resize_is_identity(node, &resize->axis[axis]);
  return true;
}

bool shape_resize(Graph *graph, Node *node) {
  Resize resize;
  if (!read_resize(graph, node, &resize)) return false;
  DType dtype = node->inputs[0]->dtype;
  if (node_word(node, ATTR_mode) != RESIZE_nearest && dtype != RNNCC_F32 && !dtype_is_stored(dtype))
    return shape_unsupported(node, "only the nearest element is taken of %s; interpolation needs f32, f16 or bf16",
                             shape_text(graph, node->inputs[0]));
  bool crops = node_word(node, ATTR_coordinate_transformation_mode) == COORDINATES_tf_crop_and_resize;
  if (crops && !dtype_is_float(dtype))
    return shape_unsupported(node, "only floats are extrapolated, found %s", shape_text(graph, node->inputs[0]));
  return set_shape(graph, node, 0, resize.rank, resize.out);
}
