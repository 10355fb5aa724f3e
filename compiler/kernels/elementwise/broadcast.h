/* SPDX-License-Identifier: MIT */
/*
 * The loop nest of an element-wise op: the output's axes without those of extent 1. Neighbours are merged if every
 * operand moves along both or is broadcast along both. Works on symbolic dimensions.
 */
#ifndef RNNCC_BROADCAST_H
#define RNNCC_BROADCAST_H

#include "ir/graph.h"

/* The most operands of one op; and of a chain of them, with the result of a reduction. */
enum { ELEMENTWISE_OPERANDS = 3, MAX_BROADCAST = 9 };

typedef struct Broadcast {
  int rank; /* at least 1: a scalar is a row of one element */
  int operands;
  const Dim *extent[MAX_RANK];
  bool moves[MAX_BROADCAST][MAX_RANK];
  const Dim *stride[MAX_BROADCAST][MAX_RANK]; /* in elements; 0 where it does not move */
} Broadcast;

/* Operands align with the output at their last axes, by ONNX's rule. */
Broadcast broadcast_of(Graph *graph, const Value *output, int n, const Value *const *operands);

#endif
