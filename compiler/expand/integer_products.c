/* SPDX-License-Identifier: MIT */
/*
 * Matrix products and convolutions of quantised numbers, which are small integers: while no sum of magnitudes exceeds
 * 2^24, f32 holds every partial sum, and f32 kernels are exact in any order of addition. Constant weights bound the
 * sums, usually to less than half of that. Larger products are split along the depth, and the parts added as i32, or as
 * i64 where i32 might not hold the sum; a result in i32 wraps around, as ONNX allows. Matrix products of constant
 * weights stay, for kernels of 8-bit numbers.
 */
#include <math.h>

#include "expand/quantised.h"
#include "ir/integer_product.h"
#include "ir/tensor.h"
#include "shapes/integer_conv.h"

static const double EXACT = 0x1p24; /* f32 holds all integers up to here */

/* An operand and its zero points: one, one for each element of an axis, or as many as broadcast to its rank. */
typedef struct Whole {
  Value *x, *zero;
  int axis; /* negative: from the end */
} Whole;

/* sum over k < depth and p < points of a[.., k, ..] * w[m, k, p], m < outputs; w has the strides. */
typedef struct Product {
  Whole a, w;
  int64_t batches, outputs, depth, points;
  int64_t output_stride, depth_stride;
  DType sums; /* of whole sums, where f32 does not hold them */
} Product;

static bool is_known(const Whole *it) { return it->x->data && (!it->zero || it->zero->data); }

/* Of element i of x. */
static double zero_at(const Whole *it, int64_t i) {
  if (!it->zero) return 0;
  int own_axis = normal_axis(it->axis, it->x->rank);
  int64_t place = 0, stride = 1;
  for (int axis = it->x->rank - 1; axis >= 0; axis--) {
    int64_t extent = dim_value(it->x->shape[axis]), numbers = axis == own_axis ? value_count(it->zero) : 1;
    if (it->zero->rank > 1) numbers = dim_value(it->zero->shape[axis]);
    if (numbers > 1) place += i % extent * stride;
    stride *= numbers;
    i /= extent;
  }
  return value_element(it->zero, place);
}

/* Weights minus zero point, computed here: constant folding does not fold what grows. */
static Value *constant_centred(const Formula *f, const Whole *it) {
  int64_t count = value_count(it->x), shape[MAX_RANK];
  float *data = ARENA_ARRAY(f->graph->arena, float, count);
  for (int64_t i = 0; i < count; i++) data[i] = (float)(value_element(it->x, i) - zero_at(it, i));
  for (int axis = 0; axis < it->x->rank; axis++) shape[axis] = dim_value(it->x->shape[axis]);
  return graph_constant(f->graph, f->name, RNNCC_F32, it->x->rank, shape, data);
}

static Value *centred(const Formula *f, const Whole *it) {
  if (is_known(it)) return constant_centred(f, it);
  return less_zero_point(f, it->x, along_axis(f, it->zero, it->axis, it->x->rank));
}

/* The largest magnitude of a number minus its zero point. */
static double greatest_magnitude(const Whole *it) {
  double least = it->x->dtype == RNNCC_I8 ? INT8_MIN : 0, most = 0;
  if (!it->zero) return 255 + least > -least ? 255 + least : -least;
  if (!it->zero->data) return 255;
  for (int64_t i = 0; i < value_count(it->zero); i++) {
    double zero = value_element(it->zero, i);
    most = fmax(most, fmax(zero - least, least + 255 - zero));
  }
  return most;
}

/* One for each output, the same in all matrices? */
static bool is_of_outputs(const Value *zero, const Product *p) {
  return value_count(zero) == p->outputs && (zero->rank == 1 || dim_equals(zero->shape[zero->rank - 1], p->outputs));
}

static bool weights_known(const Product *p) {
  const Value *zero = p->w.zero;
  return p->w.x->data && (!zero || (zero->data && (value_count(zero) == 1 || is_of_outputs(zero, p))));
}

/* The largest sum of an output's magnitudes of weights in a part of the depth. */
static double weight_reach(const Product *p, int64_t begin, int64_t end) {
  if (!weights_known(p)) return greatest_magnitude(&p->w) * (double)((end - begin) * p->points);
  bool each = p->w.zero && value_count(p->w.zero) > 1;
  double most = 0;
  for (int64_t i = 0; i < p->batches * p->outputs; i++) {
    int64_t batch = i / p->outputs, m = i % p->outputs;
    int64_t first = batch * p->outputs * p->depth * p->points + m * p->output_stride;
    double zero = p->w.zero ? value_element(p->w.zero, each ? m : 0) : 0, sum = 0;
    for (int64_t k = begin; k < end; k++)
      for (int64_t q = 0; q < p->points; q++)
        sum += fabs(value_element(p->w.x, first + k * p->depth_stride + q) - zero);
    most = fmax(most, sum);
  }
  return most;
}

static double largest_magnitude(const Value *bias) {
  double most = 0;
  if (bias && !bias->data) return INFINITY;
  for (int64_t i = 0; bias && i < value_count(bias); i++) most = fmax(most, fabs(value_element(bias, i)));
  return most;
}

static int64_t part_begin(const Product *p, int64_t part, int64_t parts) { return p->depth * part / parts; }

static bool parts_fit(const Product *p, int64_t parts, double room) {
  double a = greatest_magnitude(&p->a);
  for (int64_t i = 0; i < parts; i++)
    if (a * weight_reach(p, part_begin(p, i, parts), part_begin(p, i + 1, parts)) > room) return false;
  return true;
}

/* `bias`: in i32, or NULL. */
static DType type_of_sums(const Node *node, const Product *p, const Value *bias) {
  bool wraps = node->outputs[0]->dtype == RNNCC_I32;
  return wraps || parts_fit(p, 1, INT32_MAX - largest_magnitude(bias)) ? RNNCC_I32 : RNNCC_I64;
}

static int64_t parts_of(const Product *p) {
  int64_t parts = 1;
  while (parts < p->depth && !parts_fit(p, parts, EXACT)) parts++;
  return parts;
}

/* The product of a part of the depth, in f32. */
typedef Value *PartProduct(const Formula *f, const Node *node, Value *a, Value *w, Value *bias);

static Value *sum_of_parts(const Formula *f, const Node *node, const Product *p, int64_t parts, int a_axis, int w_axis,
                           PartProduct *product) {
  Value *a = centred(f, &p->a), *w = centred(f, &p->w), *sum = NULL;
  for (int64_t i = 0; i < parts; i++) {
    int64_t begin = part_begin(p, i, parts), end = part_begin(p, i + 1, parts);
    const Range of_a = {a_axis, begin, end}, of_w = {w_axis, begin, end};
    Value *part = product(f, node, build_slice(f, a, 1, &of_a), build_slice(f, w, 1, &of_w), NULL);
    part = cast(f, part, p->sums);
    sum = sum ? plus(f, sum, part) : part;
  }
  return sum;
}

/* ---- matrix products ---- */

static Value *matmul_part(const Formula *f, const Node *node, Value *a, Value *w, Value *bias) {
  (void)node, (void)bias;
  return apply2(f, OP_MatMul, a, w);
}

static Product matmul_of(Whole a, Whole b) {
  bool column = b.x->rank == 1, known = value_static(b.x);
  Product p = {.a = a, .w = b, .points = 1, .batches = 1};
  const Dim *depth = a.x->shape[a.x->rank - 1];
  p.depth = dim_upper(depth);
  p.outputs = column ? 1 : dim_upper(b.x->shape[b.x->rank - 1]);
  p.output_stride = 1;
  p.depth_stride = p.outputs;
  if (known) p.batches = value_count(b.x) / (p.outputs * p.depth);
  return p;
}

/* In p->sums, or in f32 if that is exact. Plain loops for large depths and those known at run time only. */
static Value *matmul_sums(const Formula *f, const Node *node, const Product *p) {
  enum { MAX_PARTS = 64 };
  const Value *a = p->a.x, *b = p->w.x;
  if (parts_fit(p, 1, EXACT)) return matmul_part(f, node, centred(f, &p->a), centred(f, &p->w), NULL);
  int64_t parts = parts_of(p);
  if (dim_is_const(a->shape[a->rank - 1]) && parts <= MAX_PARTS)
    return sum_of_parts(f, node, p, parts, a->rank - 1, b->rank > 1 ? b->rank - 2 : 0, matmul_part);
  return apply2(f, OP_MatMul, cast(f, centred(f, &p->a), p->sums), cast(f, centred(f, &p->w), p->sums));
}

/* `addend`: in i32, or NULL. */
static Value *integer_matmul(const Formula *f, const Node *node, Whole a, Whole b, Value *addend) {
  Product p = matmul_of(a, b);
  p.sums = type_of_sums(node, &p, addend);
  Value *sums = matmul_sums(f, node, &p);
  return addend ? plus(f, cast(f, sums, p.sums), cast(f, addend, p.sums)) : sums;
}

static int row_axis(const Value *a) { return a->rank > 1 ? -2 : -1; }

void expand_matmul_integer(const Formula *f, const Node *node, Value **results) {
  if (integer_product_has_kernel(node)) return;
  const Whole a = {node->inputs[0], node_input(node, 2), row_axis(node->inputs[0])};
  const Whole b = {node->inputs[1], node_input(node, 3), -1};
  results[0] = cast(f, integer_matmul(f, node, a, b, NULL), RNNCC_I32);
}

/* Scales of the rows or columns of `it` as they broadcast to its product with `other`: a vector there leaves no axis.
 */
static Value *scales_of(const Formula *f, const Whole *it, Value *scales, const Whole *other) {
  const Dim *shape[MAX_RANK];
  Value *along = along_axis(f, scales, it->axis, it->x->rank);
  if (other->x->rank > 1 || along->rank < 2) return along;
  int rank = 0, across = along->rank - (it->axis == -1 ? 2 : 1);
  for (int axis = 0; axis < along->rank; axis++)
    if (axis != across) shape[rank++] = along->shape[axis];
  return build_reshape(f, along, rank, shape);
}

/* The product's scale, a_scale * b_scale / y_scale, is rounded before it is used, as ONNX Runtime does. */
void expand_qlinear_matmul(const Formula *f, const Node *node, Value **results) {
  if (integer_product_has_kernel(node)) return;
  Value *const *in = node->inputs;
  const Whole a = {in[0], in[2], row_axis(in[0])}, b = {in[3], in[5], -1};
  Value *sums = cast(f, integer_matmul(f, node, a, b, NULL), RNNCC_F32);
  Value *scale = over(f, times(f, scales_of(f, &a, in[1], &b), scales_of(f, &b, in[4], &a)), in[6]);
  results[0] = quantised(f, times(f, sums, scale), in[7], node->outputs[0]->dtype);
}

/* ---- matrix products in floats ---- */

/* The matrix with its axes swapped; a constant stays one, which bounds the sums. */
static Value *matrix_turned(const Formula *f, Value *x) {
  static const int64_t perm[] = {1, 0};
  if (!x->data) return build_transpose(f, x, perm);
  const int64_t shape[] = {dim_value(x->shape[1]), dim_value(x->shape[0])};
  Tensor *turned = tensor_new(f->graph->arena, x->dtype, 2, shape);
  for (int64_t i = 0; i < shape[0]; i++)
    for (int64_t k = 0; k < shape[1]; k++) tensor_set(turned, i * shape[1] + k, value_element(x, k * shape[0] + i));
  return graph_constant(f->graph, f->name, x->dtype, 2, shape, turned->data);
}

/* alpha (A B + C) in the scale of A and B; C is in that scale. */
void expand_qgemm(const Formula *f, const Node *node, Value **results) {
  if (integer_product_has_kernel(node)) return;
  Value *const *in = node->inputs;
  bool turn_a = node_int(node, ATTR_transA) != 0, turn_b = node_int(node, ATTR_transB) != 0;
  const Whole a = {turn_a ? matrix_turned(f, in[0]) : in[0], in[2], -2};
  const Whole b = {turn_b ? matrix_turned(f, in[3]) : in[3], in[5], -1};
  Value *sums = integer_matmul(f, node, a, b, node_input(node, 6));
  Value *scale = times(f, times(f, in[1], in[4]), number(f, in[1], node_float(node, ATTR_alpha)));
  if (node_input(node, 7)) scale = over(f, scale, in[7]);
  Value *y = times(f, cast(f, sums, RNNCC_F32), scale);
  results[0] = node_input(node, 7) ? quantised(f, y, node_input(node, 8), node->outputs[0]->dtype) : y;
}

/* A B in floats, and the bias. */
static Value *float_matmul(const Formula *f, const Node *node, Whole a, Value *a_scale, Whole b, Value *b_scale,
                           Value *bias) {
  Value *scale = times(f, scales_of(f, &a, a_scale, &b), scales_of(f, &b, b_scale, &a));
  Value *y = times(f, cast(f, integer_matmul(f, node, a, b, NULL), RNNCC_F32), scale);
  return bias ? plus(f, y, bias) : y;
}

void expand_integer_to_float(const Formula *f, const Node *node, Value **results) {
  if (integer_product_has_kernel(node)) return;
  Value *const *in = node->inputs;
  const Whole a = {in[0], node_input(node, 4), row_axis(in[0])}, b = {in[1], node_input(node, 5), -1};
  results[0] = float_matmul(f, node, a, in[2], b, in[3], node_input(node, 6));
}

void expand_dynamic_matmul(const Formula *f, const Node *node, Value **results) {
  Value *const *in = node->inputs, *dynamic[3];
  dynamically_quantised(f, in[0], dynamic);
  Value *product[] = {dynamic[0], in[1], dynamic[1], in[2], dynamic[2], node_input(node, 3), node_input(node, 4)};
  const Node like = {.op = op_info(OP_MatMulIntegerToFloat), .inputs = product, .n_inputs = 7};
  if (integer_product_has_kernel(&like)) {
    results[0] = build_op(f, OP_MatMulIntegerToFloat, 7, product, 1, 0, NULL)->outputs[0];
    return;
  }
  const Whole a = {dynamic[0], dynamic[2], row_axis(in[0])}, b = {in[1], node_input(node, 3), -1};
  results[0] = float_matmul(f, node, a, dynamic[1], b, in[2], node_input(node, 4));
}

/* ---- convolutions ---- */

static Value *conv_part(const Formula *f, const Node *node, Value *x, Value *w, Value *bias) {
  Value *const inputs[] = {x, w, bias};
  Node *conv = build_op(f, OP_Conv, bias ? 3 : 2, inputs, 1, node->n_attributes, node->attributes);
  conv->exact = true;
  return conv->outputs[0];
}

static Product conv_of(Whole x, Whole w) {
  const Value *weights = w.x;
  Product p = {.a = x, .w = w, .batches = 1};
  p.outputs = dim_value(weights->shape[0]);
  p.depth = dim_value(weights->shape[1]);
  p.points = 1;
  for (int axis = 2; axis < weights->rank; axis++) p.points *= dim_value(weights->shape[axis]);
  p.depth_stride = p.points;
  p.output_stride = p.depth * p.points;
  return p;
}

/* One convolution for each group, because a part of the depth is not contiguous over groups. */
static Value *conv_by_groups(const Formula *f, const Node *node, const Product *p, int64_t groups, int64_t parts) {
  Value **results = ARENA_ARRAY(f->graph->arena, Value *, groups);
  Node one_group = *node;
  one_group.attributes = ARENA_ARRAY(f->graph->arena, Attribute, node->n_attributes);
  one_group.n_attributes = 0;
  for (int i = 0; i < node->n_attributes; i++)
    if (node_attribute(node, ATTR_group) != &node->attributes[i])
      one_group.attributes[one_group.n_attributes++] = node->attributes[i];
  int64_t rows = p->outputs / groups;
  for (int64_t g = 0; g < groups; g++) {
    const Range channels = {1, g * p->depth, (g + 1) * p->depth}, outputs = {0, g * rows, (g + 1) * rows};
    Product group = *p;
    group.outputs = rows;
    group.a.x = build_slice(f, p->a.x, 1, &channels);
    group.w.x = build_slice(f, p->w.x, 1, &outputs);
    if (p->w.zero && value_count(p->w.zero) > 1) group.w.zero = build_slice(f, p->w.zero, 1, &outputs);
    results[g] = sum_of_parts(f, &one_group, &group, parts, 1, 1, conv_part);
  }
  return build_concat(f, (int)groups, results, 1);
}

static Value *conv_sums(const Formula *f, const Node *node, const Product *p) {
  if (parts_fit(p, 1, EXACT)) return cast(f, conv_part(f, node, centred(f, &p->a), centred(f, &p->w), NULL), p->sums);
  int64_t groups = node_int(node, ATTR_group), parts = parts_of(p);
  if (groups > 1) return conv_by_groups(f, node, p, groups, parts);
  return sum_of_parts(f, node, p, parts, 1, 1, conv_part);
}

/* `bias` is i32 [M], or NULL. */
static Value *integer_conv(const Formula *f, const Node *node, Whole x, Whole w, Value *bias) {
  Product p = conv_of(x, w);
  p.sums = type_of_sums(node, &p, bias);
  if (parts_fit(&p, 1, EXACT - largest_magnitude(bias)))
    return conv_part(f, node, centred(f, &x), centred(f, &w), bias ? cast(f, bias, RNNCC_F32) : NULL);
  Value *sums = conv_sums(f, node, &p);
  return bias ? plus(f, sums, along_axis(f, cast(f, bias, p.sums), 1, x.x->rank)) : sums;
}

void expand_conv_integer(const Formula *f, const Node *node, Value **results) {
  const Whole x = {node->inputs[0], node_input(node, 2), 0}, w = {node->inputs[1], node_input(node, 3), 0};
  results[0] = cast(f, integer_conv(f, node, x, w, NULL), RNNCC_I32);
}

void expand_conv_to_float(const Formula *f, const Node *node, Value **results) {
  if (integer_conv_fits(f->graph, node)) return;
  Value *const *in = node->inputs, *bias = node_input(node, 6);
  const Whole x = {in[0], node_input(node, 4), 0}, w = {in[1], node_input(node, 5), 0};
  Value *scale = times(f, in[2], along_axis(f, in[3], 1, in[0]->rank));
  Value *y = times(f, cast(f, integer_conv(f, node, x, w, NULL), RNNCC_F32), scale);
  results[0] = bias ? plus(f, y, along_axis(f, bias, 1, in[0]->rank)) : y;
}

void expand_qlinear_conv(const Formula *f, const Node *node, Value **results) {
  if (integer_conv_fits(f->graph, node)) return;
  Value *const *in = node->inputs;
  const Whole x = {in[0], in[2], 0}, w = {in[3], in[5], 0};
  Value *sums = cast(f, integer_conv(f, node, x, w, node_input(node, 8)), RNNCC_F32);
  Value *scale = over(f, times(f, in[1], along_axis(f, in[4], 1, in[0]->rank)), in[6]);
  results[0] = quantised(f, times(f, sums, scale), in[7], node->outputs[0]->dtype);
}
