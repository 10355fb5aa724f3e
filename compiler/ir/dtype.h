/* SPDX-License-Identifier: MIT */
/* Element types, as runtime/dtypes.def lists them. */
#ifndef RNNCC_DTYPE_H
#define RNNCC_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rnncc.h"

typedef rnncc_dtype DType;

typedef enum DTypeKind { DTYPE_NONE, DTYPE_FLOAT, DTYPE_SIGNED, DTYPE_UNSIGNED, DTYPE_BOOL } DTypeKind;

typedef struct DTypeInfo {
  const char *name;        /* "f32", as in the model file */
  const char *constant;    /* "RNNCC_F32" */
  const char *c;           /* "float", "int64_t"; of f16 "uint16_t", its bits */
  const char *safetensors; /* "F32" */
  const char *onnx;        /* "FLOAT" */
  int bits;
  DTypeKind kind;
  bool stored; /* kernels compute it in f32 */
  bool moved;  /* kernels move and cast it only */
} DTypeInfo;

const DTypeInfo *dtype_info(DType dtype);
size_t dtype_size(DType dtype); /* bytes that an element takes; types of less than 8 bits take one */
bool dtype_is_float(DType dtype);
bool dtype_is_integer(DType dtype); /* signed or not; bool is none */
bool dtype_is_byte(DType dtype);    /* u8 or i8 */
bool dtype_is_stored(DType dtype);
bool dtype_is_moved(DType dtype);
bool dtype_is_coded(DType dtype); /* a float that is stored as bits: runtime/small_float.h */
const char *dtype_name(DType dtype);
const char *dtype_c(DType dtype);
DType dtype_from_name(const char *name); /* RNNCC_NONE if unknown */
DType dtype_of_bits(DTypeKind kind, int bits);
extern const DType all_dtypes[];      /* in the table's order; the last one RNNCC_NONE */
extern const char *const dtype_names; /* "f64, f32, ..., bool" */

/* The range of an integer type; the greatest u64 counts as INT64_MAX. */
int64_t dtype_min(DType dtype);
int64_t dtype_max(DType dtype);

#endif
