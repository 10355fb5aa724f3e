/* SPDX-License-Identifier: MIT */
/* A value as elements of an earlier one, which it was cut, turned and reshaped from: what a kernel that reads by
 * strides need not have copied. */
#ifndef RNNCC_STRIDED_VIEW_H
#define RNNCC_STRIDED_VIEW_H

#include "ir/graph.h"

typedef struct StridedView {
  Value *base;
  const Dim *offset; /* elements of the base before the first one */
  int rank;
  const Dim *shape[MAX_RANK], *stride[MAX_RANK]; /* strides in elements */
} StridedView;

/* Through Transpose, Split, Slice, Gather of one index, and views whose axes divide or join those before. */
StridedView strided_view(Graph *graph, Value *value);

#endif
