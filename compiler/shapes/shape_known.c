/* SPDX-License-Identifier: MIT */
/* Ops whose results are known at compile time, or from the run's dimensions alone. */
#include <string.h>

#include "shapes/shape.h"

static void become(Graph *graph, Value *value, DType dtype, int rank, const int64_t *shape, const void *data) {
  value->dtype = dtype;
  value->rank = rank;
  value->shape = ARENA_ARRAY(graph->arena, const Dim *, rank);
  for (int axis = 0; axis < rank; axis++) value->shape[axis] = dim_const(graph->dims, shape[axis]);
  value->data = data;
}

static float *floats_of(Graph *graph, const double *values, size_t count) {
  float *data = ARENA_ARRAY(graph->arena, float, count);
  for (size_t i = 0; i < count; i++) data[i] = (float)values[i];
  return data;
}

/* ONNX Constant: exactly one value_* attribute. Plain numbers are f32 and i64. */
bool shape_constant(Graph *graph, Node *node) {
  if (node->n_attributes != 1)
    return shape_error(node, "exactly one of value, value_float, value_floats, value_int and value_ints must be given");
  const Attribute *given = &node->attributes[0];
  Value *output = node->outputs[0];
  int64_t count = (int64_t)given->count;
  switch (given->kind) {
  case ATTRIBUTE_TENSOR:
    output->dtype = given->tensor->dtype;
    output->data = given->tensor->data;
    set_shape(graph, node, 0, given->tensor->rank, given->tensor->shape);
    return true;
  case ATTRIBUTE_INT:
    become(graph, output, RNNCC_I64, 0, NULL, arena_copy(graph->arena, &given->i, sizeof given->i));
    if (!strcmp(given->name, "value_float")) {
      double value = (double)given->i;
      become(graph, output, RNNCC_F32, 0, NULL, floats_of(graph, &value, 1));
    }
    return true;
  case ATTRIBUTE_FLOAT:
    become(graph, output, RNNCC_F32, 0, NULL, floats_of(graph, &given->f, 1));
    return true;
  case ATTRIBUTE_INTS:
    become(graph, output, RNNCC_I64, 1, &count, arena_copy(graph->arena, given->ints, given->count * sizeof(int64_t)));
    return true;
  case ATTRIBUTE_FLOATS:
    become(graph, output, RNNCC_F32, 1, &count, floats_of(graph, given->floats, given->count));
    return true;
  default:
    bug("a Constant of attribute %s", given->name);
  }
}

/* ONNX Shape: the extents from `start` to `end`, both clamped to the rank. */
bool shape_shape(Graph *graph, Node *node) {
  const Value *input = node->inputs[0];
  int64_t bounds[2] = {node_int(node, ATTR_start), node_has(node, ATTR_end) ? node_int(node, ATTR_end) : input->rank};
  for (int i = 0; i < 2; i++) {
    if (bounds[i] < 0) bounds[i] = bounds[i] < -input->rank ? 0 : bounds[i] + input->rank;
    if (bounds[i] > input->rank) bounds[i] = input->rank;
  }
  int64_t count = bounds[1] > bounds[0] ? bounds[1] - bounds[0] : 0;
  const Dim *extent = dim_const(graph->dims, count);
  set_shape(graph, node, 0, 1, &extent);
  node->outputs[0]->elements = ARENA_ARRAY(graph->arena, const Dim *, count);
  for (int64_t i = 0; i < count; i++) node->outputs[0]->elements[i] = input->shape[bounds[0] + i];
  return true;
}
