/* SPDX-License-Identifier: MIT */
/* NumPy's .npy format, versions 1 and 2: the types that NumPy itself has, little-endian, in C order. */
#ifndef RNNCC_QUANTISE_NPY_H
#define RNNCC_QUANTISE_NPY_H

#include "ir/tensor.h"
#include "support/files.h"

/* The file's bytes as a tensor, whose data point into them. fatal_at(where) if they are anything else. Text that is
 * two types' is taken for `expected`. */
Tensor npy_read(FileBytes bytes, DType expected, Location where);

#endif
