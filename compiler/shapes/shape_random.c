/* SPDX-License-Identifier: MIT */
/* Random numbers: in a given shape, that of a tensor, or so many of each row. */
#include "ir/tensor.h"
#include "shapes/shape.h"

static bool is_float(DType dtype) { return dtype == RNNCC_F64 || dtype == RNNCC_F32 || dtype_is_stored(dtype); }

/* The type of the attribute `dtype`, or else this one. */
static bool set_type(const Node *node, DType otherwise, bool floats) {
  const Attribute *given = node_attribute(node, ATTR_dtype);
  DType dtype = given ? node_dtype(node, ATTR_dtype) : otherwise;
  if (dtype == RNNCC_NONE) return shape_unsupported(node, "`dtype` is \"%.100s\"", given->s);
  if (floats && !is_float(dtype))
    return shape_error(node, "%s is drawn, found `dtype` %s; it must be a type of floats", node->op->name,
                       dtype_name(dtype));
  node->outputs[0]->dtype = dtype;
  return true;
}

bool shape_random(Graph *graph, Node *node) {
  DimList shape;
  if (!set_type(node, RNNCC_F32, true) || !operand_dims(graph, node, ATTR_shape, -1, &shape)) return false;
  return check_made_rank(node, "the result", shape.n) && set_shape(graph, node, 0, shape.n, shape.items);
}

bool shape_random_like(Graph *graph, Node *node) {
  return set_type(node, node->inputs[0]->dtype, true) && shape_same(graph, node);
}

bool shape_bernoulli(Graph *graph, Node *node) {
  return set_type(node, node->inputs[0]->dtype, false) && shape_same(graph, node);
}

/* False after an error. */
static bool check_ratio(const Node *node) {
  const Value *given = node_input(node, DROPOUT_RATIO);
  double ratio = node_float(node, ATTR_ratio);
  if ((given && !value_number(given, &ratio)) || (ratio >= 0 && ratio <= 1)) return true;
  return shape_error(node, "the ratio is %.9g; it must be in 0..1", ratio);
}

bool shape_dropout(Graph *graph, Node *node) {
  const Value *mode = node_input(node, DROPOUT_MODE);
  if (!check_scalar(graph, node, DROPOUT_RATIO) || !check_scalar(graph, node, DROPOUT_MODE)) return false;
  if (mode && !mode->data)
    return shape_unsupported(node, "training_mode (input 2) must be a constant, or absent: then --train says it");
  if (!check_ratio(node) || !shape_same(graph, node)) return false;
  return !node_output(node, 1) || set_shape(graph, node, 1, node->inputs[0]->rank, node->inputs[0]->shape);
}

/* [N, classes] -> [N, sample_size] */
bool shape_multinomial(Graph *graph, Node *node) {
  int64_t samples = node_int(node, ATTR_sample_size);
  if (!set_type(node, RNNCC_I32, false) || !check_rank(graph, node, 0, 2, 2)) return false;
  DType dtype = node->outputs[0]->dtype;
  if (dtype != RNNCC_I32 && dtype != RNNCC_I64)
    return shape_error(node, "`dtype` is %s; classes are i32 or i64", dtype_name(dtype));
  if (samples < 1) return shape_error(node, "`sample_size` is %lld; it must be at least 1", (long long)samples);
  const Dim *shape[] = {node->inputs[0]->shape[0], dim_const(graph->dims, samples)};
  return set_shape(graph, node, 0, 2, shape);
}
