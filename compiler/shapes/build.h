/* SPDX-License-Identifier: MIT */
/* Appends new nodes with inferred shapes that replace a node and have its name. */
#ifndef RNNCC_BUILD_H
#define RNNCC_BUILD_H

#include "ir/op.h"

typedef struct Builder {
  Graph *graph;
  const char *name;
  Location where;
} Builder;

Attribute attribute_int(AttributeName name, int64_t value);
Attribute attribute_ints(Arena *arena, AttributeName name, int n, const int64_t *values);
Attribute attribute_strings(Arena *arena, AttributeName name, int n, const char *const *values);
Attribute attribute_float(AttributeName name, double value);
Attribute attribute_floats(Arena *arena, AttributeName name, int n, const double *values);
Attribute attribute_one_of(AttributeName name, int word); /* DIRECTION_reverse */
Attribute attribute_type(AttributeName name, DType dtype);

/* Adds or replaces the attribute. */
void set_attribute(Graph *graph, Node *node, Attribute attribute);

/* Inputs and attributes are copied; set_attribute() and build_op() look up what texts an attribute lacks. */
Node *build_op(const Builder *builder, OpKind op, int n_inputs, Value *const *inputs, int n_outputs, int n_attributes,
               const Attribute *attributes);

/* A Loop of this body, the last of whose inputs stand for the last `n_captures` inputs of the node. */
Node *build_loop(const Builder *builder, Graph *body, int n_inputs, Value *const *inputs, int n_captures,
                 int n_outputs);

/* The range [start, end) of an axis. */
typedef struct Range {
  int64_t axis, start, end;
} Range;
Value *build_slice(const Builder *builder, Value *value, int n, const Range *ranges);
Value *build_concat(const Builder *builder, int n, Value *const *values, int64_t axis);
/* A constant of f32, each number of `from`, which is one, so many times. */
Value *build_repeated(const Builder *builder, const Value *from, int64_t times);
Value *build_transpose(const Builder *builder, Value *value, const int64_t *perm);
/* The extent of the axis, i64[1]. */
Value *build_extent(const Builder *builder, Value *value, int64_t axis);
/* `value` itself if it has the shape already. At most one extent may be symbolic. */
Value *build_reshape(const Builder *builder, Value *value, int rank, const Dim *const *shape);

/* Activations that alone read `*result`, one after the other, take `made` instead, which has its elements in another
 * order, so that they become part of the kernel that makes it. Returns what they make of it; `*result` is then the last
 * one's, without a producer. */
Value *build_activated(const Builder *builder, const UseList *uses, Value *made, Value **result);

/* Makes `target` the elements of `source`, in its own shape. Its former producer gets a new output, which nothing
 * reads. */
void build_instead(const Builder *builder, Value *target, Value *source);

#endif
