/* SPDX-License-Identifier: MIT */
#include "ir/dtype.h"

#include <string.h>

enum { USE_COMPUTED, USE_STORED, USE_MOVED };

static const DTypeInfo rows[] = {
    [RNNCC_NONE] = {.name = "none", .c = "void"},
#define DTYPE(id, code, type, text, bits_, kind_, use, safetensors_, onnx_code, onnx_name, npy)                        \
  [RNNCC_##id] = {.name = (text),                                                                                      \
                  .constant = "RNNCC_" #id,                                                                            \
                  .c = #type,                                                                                          \
                  .safetensors = (safetensors_),                                                                       \
                  .onnx = (onnx_name),                                                                                 \
                  .bits = (bits_),                                                                                     \
                  .kind = DTYPE_##kind_,                                                                               \
                  .stored = USE_##use == USE_STORED,                                                                   \
                  .moved = USE_##use == USE_MOVED},
#include "dtypes.def"
};
enum { N_TYPES = sizeof rows / sizeof *rows };

const char *const dtype_names = &(
#define DTYPE(id, code, type, text, ...) ", " text
#include "dtypes.def"
    )[2];

const DType all_dtypes[] = {
#define DTYPE(id, ...) RNNCC_##id,
#include "dtypes.def"
    RNNCC_NONE};

const DTypeInfo *dtype_info(DType dtype) { return &rows[dtype]; }
size_t dtype_size(DType dtype) { return ((size_t)rows[dtype].bits + 7) / 8; }
bool dtype_is_float(DType dtype) { return rows[dtype].kind == DTYPE_FLOAT; }
bool dtype_is_integer(DType dtype) { return rows[dtype].kind == DTYPE_SIGNED || rows[dtype].kind == DTYPE_UNSIGNED; }
bool dtype_is_byte(DType dtype) { return dtype == RNNCC_U8 || dtype == RNNCC_I8; }
bool dtype_is_stored(DType dtype) { return rows[dtype].stored; }
bool dtype_is_moved(DType dtype) { return rows[dtype].moved; }
bool dtype_is_coded(DType dtype) { return dtype_is_float(dtype) && (rows[dtype].stored || rows[dtype].moved); }
const char *dtype_name(DType dtype) { return rows[dtype].name; }
const char *dtype_c(DType dtype) { return rows[dtype].c; }

DType dtype_from_name(const char *name) {
  for (int type = RNNCC_NONE + 1; type < N_TYPES; type++)
    if (!strcmp(rows[type].name, name)) return (DType)type;
  return RNNCC_NONE;
}

DType dtype_of_bits(DTypeKind kind, int bits) {
  for (int type = RNNCC_NONE + 1; type < N_TYPES; type++)
    if (rows[type].kind == kind && rows[type].bits == bits) return (DType)type;
  return RNNCC_NONE;
}

int64_t dtype_min(DType dtype) { return rows[dtype].kind == DTYPE_SIGNED ? INT64_MIN >> (64 - rows[dtype].bits) : 0; }

int64_t dtype_max(DType dtype) {
  if (rows[dtype].kind == DTYPE_BOOL) return 1;
  int magnitude = rows[dtype].kind == DTYPE_SIGNED ? rows[dtype].bits - 1 : rows[dtype].bits;
  return magnitude >= 63 ? INT64_MAX : ((int64_t)1 << magnitude) - 1;
}
