/* SPDX-License-Identifier: MIT */
/* Copies between two strided boxes, for all ops that only move elements. */
#ifndef RNNCC_STRIDED_COPY_H
#define RNNCC_STRIDED_COPY_H

#include "program/build.h"

/* Strides and offsets in elements. A stride may be 0 in the input (broadcast) or negative. */
typedef struct StridedBox {
  int rank;
  const Dim *shape[MAX_RANK], *in_stride[MAX_RANK], *out_stride[MAX_RANK];
  const Dim *in_offset, *out_offset; /* of the box's first element */
} StridedBox;

/* Row-major strides of the value. */
void dense_strides(Graph *graph, const Value *value, const Dim *strides[MAX_RANK]);

/* The box that is all of `shape`, read and written by these strides, from offset 0. */
StridedBox strided_box(Graph *graph, int rank, const Dim *const *shape, const Dim *const *in_stride,
                       const Dim *const *out_stride);

/* The same offset in the value, of which the bounds of its dims show that it is inside. */
const Dim *offset_inside(Graph *graph, const Value *value, const Dim *offset);

/* Adds the call. `in` NULL: fills with zero bytes. */
Call *lower_strided_copy(Program *program, const Node *node, const StridedBox *box, const Value *in, const Value *out);

/* All elements, in row-major order; both values have one shape. */
void lower_whole_copy(Program *program, const Node *node, const Value *from, const Value *to);

#endif
