/* SPDX-License-Identifier: MIT */
/* A concrete tensor, as the reference kernels see it. */
#ifndef RNNCC_TENSOR_H
#define RNNCC_TENSOR_H

#include "ir/graph.h"

typedef struct Tensor {
  DType dtype;
  int rank;
  int64_t shape[MAX_RANK];
  void *data; /* row-major */
} Tensor;

Tensor *tensor_new(Arena *arena, DType dtype, int rank, const int64_t *shape); /* zeroed */
int64_t tensor_count(const Tensor *tensor);
/* Element by row-major index, whatever the dtype. Integers pass through double exactly up to 2^53; what is stored as
 * f32 or narrower is rounded once, and saturated if its type is MOVED. An u64 passes through int64_t as its bits. Of a
 * double that no i64 is near, an integer is the end of i64 (of u64 its own), and 0 of NaN. */
double tensor_get(const Tensor *tensor, int64_t index);
void tensor_set(Tensor *tensor, int64_t index, double value);
int64_t tensor_get_int(const Tensor *tensor, int64_t index);
void tensor_set_int(Tensor *tensor, int64_t index, int64_t value);

/* An element of a constant, as tensor_get() and tensor_get_int() give it. */
double value_element(const Value *value, int64_t index);
int64_t value_integer(const Value *value, int64_t index);
/* The number of a constant of one element. False for other values. */
bool value_number(const Value *value, double *number);

#endif
