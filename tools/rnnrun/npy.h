/* SPDX-License-Identifier: MIT */
/* NumPy's .npy format, versions 1 and 2: the types of runtime/dtypes.def, little-endian, in C order. */
#ifndef RNNRUN_NPY_H
#define RNNRUN_NPY_H

#include <stdio.h>

#include "support.h"

/* Reads the whole file; fails, naming the file, if it is anything else. The caller frees data. Types of ml_dtypes are
 * raw bytes in such a file: those of the size of `expected` are of that type. */
rnncc_tensor npy_read(const char *path, rnncc_dtype expected);

/* `tensor->shape` must be set. Returns 0 if the stream is in error. */
int npy_write(FILE *stream, const rnncc_tensor *tensor);

/* The bytes of a file that must be exactly `bytes` long. */
void *raw_read(const char *path, size_t bytes);

#endif
