/* SPDX-License-Identifier: MIT */
/* A constant of a model file, from a weights file or inline. It becomes a Value when a node reads it. */
#ifndef RNNCC_CONSTANT_H
#define RNNCC_CONSTANT_H

#include "ir/graph.h"
#include "json/json.h"

typedef struct Constant {
  const char *name;
  const char *dtype_name; /* as written: "F32", "BF16", "i64" */
  DType dtype;            /* RNNCC_NONE: a type that no op takes; an error only if a node reads it */
  int rank;
  int64_t *shape;
  size_t count;     /* elements */
  const void *data; /* row-major, aligned to its element */
  Location where;
  bool is_weight; /* as of Value */
} Constant;

/* `{"dtype": "i64", "shape": [2], "data": [0, 1]}`. False after an error. */
bool constant_read(Json json, const char *name, Constant *constant);

/* A number, a bool, or a special float as a string, to an element of that type. False after an error. */
bool constant_read_element(Json json, DType dtype, void *out);

/* Checks the bytes of a constant of bools: 0 or 1 each. False after an error. */
bool constant_check_bool(const Constant *constant, const uint8_t *data);

/* A Value outside the graph's list; NULL after an error. */
Value *constant_value(Graph *graph, const Constant *constant);

/* Sets `rank`, `shape` and `count`. False after an error. */
bool constant_read_shape(Json json, Constant *constant);

/* A dtype's name in the model format; RNNCC_NONE after an error. */
DType read_dtype(Json json);

#endif
