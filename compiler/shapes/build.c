/* SPDX-License-Identifier: MIT */
#include "shapes/build.h"

#include <string.h>

#include "shapes/shape.h"

Attribute attribute_int(AttributeName name, int64_t value) {
  return (Attribute){.id = name, .kind = ATTRIBUTE_INT, .i = value};
}

Attribute attribute_ints(Arena *arena, AttributeName name, int n, const int64_t *values) {
  return (Attribute){.id = name,
                     .kind = ATTRIBUTE_INTS,
                     .count = (size_t)n,
                     .ints = arena_copy(arena, values, (size_t)n * sizeof *values)};
}

Attribute attribute_strings(Arena *arena, AttributeName name, int n, const char *const *values) {
  return (Attribute){.id = name,
                     .kind = ATTRIBUTE_STRINGS,
                     .count = (size_t)n,
                     .strings = arena_copy(arena, values, (size_t)n * sizeof *values)};
}

Attribute attribute_float(AttributeName name, double value) {
  return (Attribute){.id = name, .kind = ATTRIBUTE_FLOAT, .f = value};
}

Attribute attribute_floats(Arena *arena, AttributeName name, int n, const double *values) {
  return (Attribute){.id = name,
                     .kind = ATTRIBUTE_FLOATS,
                     .count = (size_t)n,
                     .floats = arena_copy(arena, values, (size_t)n * sizeof *values)};
}

Attribute attribute_one_of(AttributeName name, int word) {
  return (Attribute){.id = name, .kind = ATTRIBUTE_WORD, .i = word};
}

Attribute attribute_type(AttributeName name, DType dtype) {
  return (Attribute){.id = name, .kind = ATTRIBUTE_TYPE, .i = dtype};
}

static Node *build_node(const Builder *builder, OpKind op, int n_inputs, Value *const *inputs, int n_captures,
                        int n_outputs, int n_attributes, const Attribute *attributes) {
  Graph *graph = builder->graph;
  Node *node = graph_node(graph, op_info(op), builder->name, n_inputs, n_outputs);
  node->where = builder->where;
  node->n_captures = n_captures;
  memcpy(node->inputs, inputs, (size_t)n_inputs * sizeof *inputs);
  for (int i = 0; i < n_outputs; i++) graph_set_output(node, i, graph_value(graph, builder->name, builder->where));
  node->n_attributes = n_attributes;
  node->attributes = ARENA_ARRAY(graph->arena, Attribute, n_attributes);
  for (int i = 0; i < n_attributes; i++) {
    node->attributes[i] = attributes[i];
    node->attributes[i].where = builder->where;
    attribute_settle(node->op, &node->attributes[i]);
  }
  if (!infer_node(graph, node)) {
    stop_on_errors();
    bug("a new %s has no shape", node->op->name);
  }
  return node;
}

Node *build_op(const Builder *builder, OpKind op, int n_inputs, Value *const *inputs, int n_outputs, int n_attributes,
               const Attribute *attributes) {
  return build_node(builder, op, n_inputs, inputs, 0, n_outputs, n_attributes, attributes);
}

Node *build_loop(const Builder *builder, Graph *body, int n_inputs, Value *const *inputs, int n_captures,
                 int n_outputs) {
  const Attribute attribute = {.id = ATTR_body, .kind = ATTRIBUTE_GRAPH, .graph = body};
  return build_node(builder, OP_Loop, n_inputs, inputs, n_captures, n_outputs, 1, &attribute);
}

void set_attribute(Graph *graph, Node *node, Attribute attribute) {
  Attribute *list = ARENA_ARRAY(graph->arena, Attribute, node->n_attributes + 1);
  int n = 0;
  for (int i = 0; i < node->n_attributes; i++)
    if (node->attributes[i].id != attribute.id) list[n++] = node->attributes[i];
  attribute.where = node->where;
  attribute_settle(node->op, &attribute);
  list[n++] = attribute;
  node->attributes = list;
  node->n_attributes = n;
}

Value *build_slice(const Builder *builder, Value *value, int n, const Range *ranges) {
  int64_t axes[MAX_RANK], starts[MAX_RANK], ends[MAX_RANK];
  for (int i = 0; i < n; i++) {
    axes[i] = ranges[i].axis;
    starts[i] = ranges[i].start;
    ends[i] = ranges[i].end;
  }
  Arena *arena = builder->graph->arena;
  const Attribute attributes[] = {attribute_ints(arena, ATTR_axes, n, axes),
                                  attribute_ints(arena, ATTR_starts, n, starts),
                                  attribute_ints(arena, ATTR_ends, n, ends)};
  return build_op(builder, OP_Slice, 1, &value, 1, 3, attributes)->outputs[0];
}

Value *build_concat(const Builder *builder, int n, Value *const *values, int64_t axis) {
  const Attribute attribute = attribute_int(ATTR_axis, axis);
  return n == 1 ? values[0] : build_op(builder, OP_Concat, n, values, 1, 1, &attribute)->outputs[0];
}

Value *build_repeated(const Builder *builder, const Value *from, int64_t times) {
  int64_t all = value_count(from) * times;
  float *numbers = ARENA_ARRAY(builder->graph->arena, float, all);
  for (int64_t i = 0; i < all; i++) numbers[i] = ((const float *)from->data)[i / times];
  return graph_constant(builder->graph, from->name, RNNCC_F32, 1, &all, numbers);
}

Value *build_extent(const Builder *builder, Value *value, int64_t axis) {
  const Attribute part[] = {attribute_int(ATTR_start, axis), attribute_int(ATTR_end, axis + 1)};
  return build_op(builder, OP_Shape, 1, &value, 1, 2, part)->outputs[0];
}

Value *build_transpose(const Builder *builder, Value *value, const int64_t *perm) {
  const Attribute attribute = attribute_ints(builder->graph->arena, ATTR_perm, value->rank, perm);
  return build_op(builder, OP_Transpose, 1, &value, 1, 1, &attribute)->outputs[0];
}

static Node *reshape_node(const Builder *builder, Value *value, int rank, const Dim *const *shape) {
  Graph *graph = builder->graph;
  int64_t count = rank, *target = ARENA_ARRAY(graph->arena, int64_t, rank);
  for (int axis = 0; axis < rank; axis++) target[axis] = dim_is_const(shape[axis]) ? dim_value(shape[axis]) : -1;
  Value *const inputs[] = {value, graph_constant(graph, builder->name, RNNCC_I64, 1, &count, target)};
  return build_op(builder, OP_Reshape, 2, inputs, 1, 0, NULL);
}

Value *build_reshape(const Builder *builder, Value *value, int rank, const Dim *const *shape) {
  return has_shape(value, rank, shape) ? value : reshape_node(builder, value, rank, shape)->outputs[0];
}

Value *build_activated(const Builder *builder, const UseList *uses, Value *made, Value **result) {
  Node *node = uses->single[(*result)->id];
  while (node && node->op->layout == LAYOUT_OBLIVIOUS && node->n_inputs == 1 && node->n_outputs == 1) {
    *result = node->outputs[0];
    node->inputs[0] = made;
    made = graph_value(builder->graph, (*result)->name, node->where);
    graph_set_output(node, 0, made);
    if (!infer_node(builder->graph, node)) bug("an activation does not fit where it fitted before");
    node = uses->single[(*result)->id];
  }
  return made;
}

void build_instead(const Builder *builder, Value *target, Value *source) {
  Graph *graph = builder->graph;
  Value *unread = graph_value(graph, target->name, target->where);
  unread->dtype = target->dtype;
  unread->rank = target->rank;
  unread->shape = target->shape;
  graph_set_output(target->producer, target->producer_output, unread);
  graph_set_output(reshape_node(builder, source, target->rank, target->shape), 0, target);
}
